// SPDX-License-Identifier: Apache-2.0
// Put before a CUDA kernel's text, it makes the text compile as C++ for the host. Blocks run one
// after another; the threads of a block are fibers, so that barriers and warp shuffles work.
#pragma once
#define TF_EMULATOR 1
#include <pthread.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#define __device__
#define __host__
#define __forceinline__ inline
#define __global__ extern "C" __attribute__((visibility("default")))
#define __shared__ static
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

// All of this is each translation unit's own: several files of kernels make one library.
namespace {

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

namespace tf_emu {

/// A thread of a block. It outlives the block and takes the same place in the next one. Contexts
/// only give it a stack; from then on it is entered and left by jumps, which call no system.
struct Fiber {
  ucontext_t context;
  jmp_buf place;
  std::vector<char> stack;
  uint3 index;
  bool done = false, entered = false;
};
struct Warp {
  int arrived = 0;
  unsigned generation = 0;
  unsigned long long slots[32] = {};
};
static std::vector<Fiber> fibers;
static std::vector<Warp> warps;
static jmp_buf scheduler;
static int current = 0;
static int barrier_arrived = 0;
static unsigned barrier_generation = 0;
static int barrier_sum = 0, barrier_result = 0;
static bool trapped = false;
static char* dynamic_shared = nullptr;
static void (*thread_body)(void*) = nullptr;
static void* thread_argument = nullptr;
static bool use_fibers = false;
static int live = 0;  // threads of the block that have not ended
static pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;  // the state here is one for all

__attribute__((noinline)) inline void yield() {
  if (_setjmp(fibers[current].place) == 0) _longjmp(scheduler, 1);
}

inline void entry() {
  while (true) {
    thread_body(thread_argument);
    fibers[current].done = true;
    --live;
    yield();
  }
}

/// Lets thread `current` run until it yields.
__attribute__((noinline)) inline void resume() {
  if (_setjmp(scheduler) != 0) return;
  Fiber& f = fibers[current];
  if (f.entered) _longjmp(f.place, 1);
  f.entered = true;
  setcontext(&f.context);
}

/// All live threads of the block have to come by; returns the sum of their values.
inline int barrier(int value = 0) {
  if (!use_fibers) return value;
  const unsigned generation = barrier_generation;
  barrier_sum += value;
  ++barrier_arrived;
  while (generation == barrier_generation) {
    if (barrier_arrived >= live) {
      barrier_arrived = 0;
      barrier_result = barrier_sum;
      barrier_sum = 0;
      ++barrier_generation;
      break;
    }
    yield();
  }
  return barrier_result;
}

inline int warp_threads(int warp) {
  int live = 0;
  for (size_t t = static_cast<size_t>(warp) * 32;
       t < fibers.size() && t < static_cast<size_t>(warp + 1) * 32; ++t) {
    live += fibers[t].done ? 0 : 1;
  }
  return live;
}

inline void warp_barrier() {
  if (!use_fibers) return;
  Warp& w = warps[current / 32];
  const unsigned generation = w.generation;
  ++w.arrived;
  while (generation == w.generation) {
    if (w.arrived >= warp_threads(current / 32)) {
      w.arrived = 0;
      ++w.generation;
      break;
    }
    yield();
  }
}

template <class T>
T shuffle(T value, int source) {
  static_assert(sizeof(T) <= 8);
  Warp& w = warps[current / 32];
  unsigned long long bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  w.slots[current % 32] = bits;
  warp_barrier();
  T result = value;
  if (source >= 0 && source < 32) std::memcpy(&result, &w.slots[source], sizeof result);
  warp_barrier();
  return result;
}

inline unsigned ballot(bool predicate) {
  Warp& w = warps[current / 32];
  w.slots[current % 32] = predicate ? 1 : 0;
  warp_barrier();
  unsigned mask = 0;
  const size_t first = static_cast<size_t>(current / 32) * 32;
  for (size_t i = 0; i < 32 && first + i < fibers.size(); ++i) {
    if (!fibers[first + i].done && w.slots[i] != 0) mask |= 1u << i;
  }
  warp_barrier();
  return mask;
}

/// Runs one block; `body(argument)` is the kernel with its arguments.
inline void run_block(unsigned threads, void (*body)(void*), void* argument) {
  thread_body = body;
  thread_argument = argument;
  const auto index = [](unsigned t) {
    return uint3{t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
  };
  if (!use_fibers) {
    for (unsigned t = 0; t < threads && !trapped; ++t) {
      threadIdx = index(t);
      body(argument);
    }
    return;
  }
  if (fibers.size() != threads) {
    fibers.assign(threads, Fiber());
    for (Fiber& f : fibers) {
      f.stack.resize(64 * 1024);
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data();
      f.context.uc_stack.ss_size = f.stack.size();
      f.context.uc_link = nullptr;
      makecontext(&f.context, entry, 0);
    }
  }
  warps.assign((threads + 31) / 32, Warp());
  barrier_arrived = 0;
  barrier_sum = 0;
  live = static_cast<int>(threads);
  for (unsigned t = 0; t < threads; ++t) {
    fibers[t].done = false;
    fibers[t].index = index(t);
  }
  for (bool alive = true; alive && !trapped;) {
    alive = false;
    for (unsigned t = 0; t < threads && !trapped; ++t) {
      if (fibers[t].done) continue;
      alive = true;
      current = static_cast<int>(t);
      threadIdx = fibers[t].index;
      resume();
    }
  }
  if (trapped) fibers.clear();  // some are in the middle of the kernel
}

template <class... Args, size_t... I>
void call(void (*kernel)(Args...), void** params, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<Args>*>(params[I])...);
}

template <class... Args>
int launch(void (*kernel)(Args...), const unsigned* grid, const unsigned* block, unsigned shared,
           void** params) {
  struct Closure {
    void (*kernel)(Args...);
    void** params;
  } closure{kernel, params};
  pthread_mutex_lock(&launching);
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  std::vector<char> memory(shared + 256);
  dynamic_shared = memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256) % 256;
  trapped = false;
  for (unsigned z = 0; z < grid[2]; ++z) {
    for (unsigned y = 0; y < grid[1]; ++y) {
      for (unsigned x = 0; x < grid[0] && !trapped; ++x) {
        blockIdx = {x, y, z};
        run_block(
            block[0] * block[1] * block[2],
            [](void* p) {
              auto* c = static_cast<Closure*>(p);
              call(c->kernel, c->params, std::index_sequence_for<Args...>());
            },
            &closure);
      }
    }
  }
  const int failed = trapped ? 1 : 0;
  pthread_mutex_unlock(&launching);
  return failed;
}

/// Sizes of the parameters, ended by 0.
template <class... Args>
void parameter_sizes(void (*)(Args...), int* sizes) {
  int i = 0;
  ((sizes[i++] = static_cast<int>(sizeof(Args))), ...);
  sizes[i] = 0;
}

}  // namespace tf_emu

#define TF_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(tf_emu::dynamic_shared)

inline void __syncthreads() { tf_emu::barrier(); }
inline int __syncthreads_count(int p) { return tf_emu::barrier(p != 0); }
inline int __syncthreads_or(int p) { return tf_emu::barrier(p != 0) != 0; }
inline void __syncwarp(unsigned = ~0u) { tf_emu::warp_barrier(); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __trap() {
  tf_emu::trapped = true;
  if (tf_emu::use_fibers) tf_emu::yield();
}
inline int tf_emu_lane() { return tf_emu::current % 32; }
template <class T>
T __shfl_xor_sync(unsigned, T v, int m, int = 32) {
  return tf_emu::shuffle(v, tf_emu_lane() ^ m);
}
template <class T>
T __shfl_down_sync(unsigned, T v, int d, int = 32) {
  return tf_emu::shuffle(v, tf_emu_lane() + d);
}
template <class T>
T __shfl_up_sync(unsigned, T v, int d, int = 32) {
  return tf_emu::shuffle(v, tf_emu_lane() - d);
}
template <class T>
T __shfl_sync(unsigned, T v, int lane, int = 32) {
  return tf_emu::shuffle(v, lane);
}
inline unsigned __ballot_sync(unsigned, int p) { return tf_emu::ballot(p != 0); }
inline int __any_sync(unsigned, int p) { return tf_emu::ballot(p != 0) != 0; }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T atomicAdd(T* p, T v) {
  T old = *p;
  *p = old + v;
  return old;
}
template <class T>
T atomicMax(T* p, T v) {
  T old = *p;
  if (v > old) *p = v;
  return old;
}
template <class T>
T atomicExch(T* p, T v) {
  T old = *p;
  *p = v;
  return old;
}
template <class T>
T atomicCAS(T* p, T expected, T v) {
  T old = *p;
  if (old == expected) *p = v;
  return old;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
template <class To, class From>
To tf_emu_bits(From f) {
  static_assert(sizeof(To) == sizeof(From));
  To t;
  std::memcpy(&t, &f, sizeof t);
  return t;
}
inline float __uint_as_float(unsigned u) { return tf_emu_bits<float>(u); }
inline unsigned __float_as_uint(float f) { return tf_emu_bits<unsigned>(f); }
inline float __int_as_float(int u) { return tf_emu_bits<float>(u); }
inline int __float_as_int(float f) { return tf_emu_bits<int>(f); }
inline double __longlong_as_double(long long u) { return tf_emu_bits<double>(u); }
inline long long __double_as_longlong(double f) { return tf_emu_bits<long long>(f); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __expf(float a) { return std::exp(a); }
inline float __logf(float a) { return std::log(a); }
inline float __saturatef(float a) { return a < 0 ? 0 : a > 1 ? 1 : a; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline double tf_emu_erfinv(double y) {
  if (y <= -1 || y >= 1) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
  double x = 0, w = std::log((1 - y) * (1 + y)), a = 0.147;
  const double t = 2 / (M_PI * a) + w / 2;
  x = std::copysign(std::sqrt(std::sqrt(t * t - w / a) - t), y);
  for (int i = 0; i < 4; ++i) x -= (std::erf(x) - y) / (2 / std::sqrt(M_PI) * std::exp(-x * x));
  return x;
}
inline float erfinvf(float y) { return static_cast<float>(tf_emu_erfinv(y)); }
inline double erfinv(double y) { return tf_emu_erfinv(y); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }
using std::isfinite;
using std::isinf;
using std::isnan;

}  // namespace
