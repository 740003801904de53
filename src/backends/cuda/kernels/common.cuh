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
// For blocks of up to 1,024 threads: registers have to suffice for all of them.
#define TF_LARGE_KERNEL extern "C" __global__ void __launch_bounds__(1024)

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

// What an element is computed in: half types in float, small integers in 32 bits.
template <class T> struct Wide { typedef T type; };
template <> struct Wide<f16> { typedef float type; };
template <> struct Wide<bf16> { typedef float type; };
template <> struct Wide<int8_t> { typedef int32_t type; };
template <> struct Wide<int16_t> { typedef int32_t type; };
template <> struct Wide<uint8_t> { typedef uint32_t type; };
template <> struct Wide<bool> { typedef uint32_t type; };
template <> struct Wide<uint16_t> { typedef uint32_t type; };

template <class T> TF_DEVICE typename Wide<T>::type widen(T x) { return x; }
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

template <class A, class T> TF_DEVICE void narrow(A x, T* out) { *out = (T)x; }
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

// The least and the greatest value of a type.
template <class T> struct Limits;
#define TF_LIMITS(T, least, most)                                    \
  template <> struct Limits<T> {                                     \
    static __device__ typename Wide<T>::type low() { return least; } \
    static __device__ typename Wide<T>::type high() { return most; } \
  };
TF_LIMITS(float, -INFINITY, INFINITY)
TF_LIMITS(double, -INFINITY, INFINITY)
TF_LIMITS(f16, -INFINITY, INFINITY)
TF_LIMITS(bf16, -INFINITY, INFINITY)
TF_LIMITS(int8_t, -128, 127)
TF_LIMITS(int16_t, -32768, 32767)
TF_LIMITS(uint8_t, 0, 0xff)
TF_LIMITS(uint16_t, 0, 0xffff)
TF_LIMITS(int32_t, (int32_t)0x80000000, 0x7fffffff)
TF_LIMITS(int64_t, (int64_t)0x8000000000000000ull, 0x7fffffffffffffffll)
TF_LIMITS(uint32_t, 0, 0xffffffffu)
TF_LIMITS(uint64_t, 0, 0xffffffffffffffffull)

// An index of any width; `bytes` is negative where the type has no sign.
TF_DEVICE int64_t load_index(const void* from, int64_t i, int bytes) {
  switch (bytes) {
    case 1: return ((const int8_t*)from)[i];
    case 2: return ((const int16_t*)from)[i];
    case 4: return ((const int32_t*)from)[i];
    case -1: return ((const uint8_t*)from)[i];
    case -2: return ((const uint16_t*)from)[i];
    case -4: return ((const uint32_t*)from)[i];
    default: return ((const int64_t*)from)[i];
  }
}

// Elements that one 16-byte load brings.
template <class T> struct alignas(16) Group {
  static constexpr int kSize = 16 / (int)sizeof(T);
  T at[kSize];
};
TF_DEVICE bool aligned16(const void* pointer) { return ((uint64_t)pointer & 15) == 0; }

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
