// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compiles what stands between TF_TARGET_…_BEGIN and TF_TARGET_END for an instruction set that
// the machine may not have; callers choose at run time. Includes of the standard library stay
// outside, so that no shared inline function is compiled for it. cmake/Options.cmake forbids
// compilers to make fma of a product and a sum: every instruction set gives the same bits.

#if defined(__x86_64__)
#define TF_X86_64 1
#else
#define TF_X86_64 0
#endif

#if defined(__clang__)
#define TF_TARGET_AVX2_BEGIN \
  _Pragma("clang attribute push(__attribute__((target(\"avx2,fma,f16c\"))), apply_to = function)")
// One literal over two lines: _Pragma takes no literals side by side.
// clang-format off
#define TF_TARGET_AVX512_BEGIN                                                                    \
  _Pragma("clang attribute push(__attribute__((target(\"avx2,fma,f16c,avx512f,avx512bw,avx512dq,\
avx512vl\"))), apply_to = function)")
// clang-format on
#define TF_TARGET_END _Pragma("clang attribute pop")
/// The next loop has no dependency between its iterations.
#define TF_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TF_TARGET_AVX2_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma,f16c\")")
#define TF_TARGET_AVX512_BEGIN  \
  _Pragma("GCC push_options")   \
  _Pragma("GCC target(\"avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512\")")
#define TF_TARGET_END _Pragma("GCC pop_options")
#define TF_IVDEP _Pragma("GCC ivdep")
#endif
