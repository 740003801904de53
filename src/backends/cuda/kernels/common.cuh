// SPDX-License-Identifier: Apache-2.0
// What the ready kernels share. They need no header of CUDA.
#pragma once

#ifndef TF_EMULATOR  // tests build this text for the host, whose headers have these names
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#endif

#define TF_DEVICE static __device__ __forceinline__
#define TF_KERNEL extern "C" __global__ void

// Lets the next kernel start, then waits until the one before has finished. Stands first in every
// kernel; without it an early start would read what is not written yet.
#if !defined(TF_EMULATOR) && __CUDA_ARCH__ >= 900
#define TF_WAIT                                               \
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); \
  asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define TF_WAIT
#endif

constexpr int kMaxRank = 8;

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};
struct alignas(16) Bytes16 {
  uint64_t a, b;
};

TF_DEVICE float widen(float x) { return x; }
TF_DEVICE double widen(double x) { return x; }
TF_DEVICE int32_t widen(int32_t x) { return x; }
TF_DEVICE int64_t widen(int64_t x) { return x; }
TF_DEVICE uint8_t widen(uint8_t x) { return x; }
TF_DEVICE float widen(f16 x) {
#ifdef TF_EMULATOR
  return (float)tf_emu_bits<_Float16>(x.bits);
#else
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
  return out;
#endif
}
TF_DEVICE float widen(bf16 x) { return __uint_as_float((uint32_t)x.bits << 16); }

TF_DEVICE void narrow(float x, float* out) { *out = x; }
TF_DEVICE void narrow(double x, double* out) { *out = x; }
TF_DEVICE void narrow(int32_t x, int32_t* out) { *out = x; }
TF_DEVICE void narrow(int64_t x, int64_t* out) { *out = x; }
TF_DEVICE void narrow(uint8_t x, uint8_t* out) { *out = x; }
TF_DEVICE void narrow(float x, f16* out) {
#ifdef TF_EMULATOR
  out->bits = tf_emu_bits<uint16_t>((_Float16)x);
#else
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out->bits) : "f"(x));
#endif
}
TF_DEVICE void narrow(float x, bf16* out) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    out->bits = (uint16_t)((bits >> 16) | 0x40u);  // NaN stays NaN
  } else {
    out->bits = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
}

// The run's error block: the first failure stays.
struct ErrorWord {
  uint32_t step_plus_one, code;
  int64_t detail;
};
constexpr uint32_t kIndexOutOfRange = 301;
TF_DEVICE void report(ErrorWord* error, uint32_t step, uint32_t code, int64_t detail) {
  if (error != nullptr && atomicCAS(&error->step_plus_one, 0u, step + 1u) == 0u) {
    error->code = code;
    error->detail = detail;
  }
}

// Sizes and strides of up to eight axes, outermost first.
struct Axes {
  int32_t rank;
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxRank];
};
// Offset of element `index` (row-major over the sizes) by the strides.
TF_DEVICE int64_t offset_of(const Axes& axes, int64_t index) {
  int64_t offset = 0;
#pragma unroll 1
  for (int axis = axes.rank - 1; axis > 0; --axis) {
    const int64_t size = axes.sizes[axis];
    const int64_t quotient = ((uint64_t)(index | size) >> 32) == 0
                                 ? (int64_t)((uint32_t)index / (uint32_t)size)
                                 : index / size;
    offset += (index - quotient * size) * axes.strides[axis];
    index = quotient;
  }
  return axes.rank > 0 ? offset + index * axes.strides[0] : 0;
}
