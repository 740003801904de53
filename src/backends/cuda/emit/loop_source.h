// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/api/loop.h"

namespace tracefire::cuda {

/// What decides the text of a loop's kernel besides the program: how inputs are walked, how many
/// elements a thread computes, and how wide indices are. Sizes are arguments.
struct LoopVariant {
  std::vector<BoundLoop::Access> access;  ///< per input
  int axes = 1;                           ///< merged axes, where an input is strided
  int vector = 1;                         ///< elements a thread loads and stores at once: 1 or 4
  bool wide = false;                      ///< 64-bit indices

  /// "FFS a2 v4 i32": part of cache keys.
  std::string str() const;
};

/// The variant for a bound loop. `multiprocessors`: small loops use short threads to fill them all.
LoopVariant choose_variant(const LoopProgram& program, const BoundLoop& bound, int multiprocessors);
/// The same with one element a thread, for arrays at odd addresses.
LoopVariant scalar_variant(LoopVariant variant);

/// A kernel as text, without the device library.
struct LoopSource {
  std::string name;  ///< of the kernel: "tf_mul_add_relu_5f3a…"
  std::string text;
  std::vector<int> index_axes;  ///< axes whose coordinates are arguments, in order
  bool reports = false;         ///< takes the run's error word and the step's number
};

/// Name of the kernel of a program and variant: equal names are equal kernels.
std::string loop_kernel_name(const LoopProgram& program, const LoopVariant& variant);

/// Why loops of this kind have no kernel, or "".
std::string loop_refusal(const LoopProgram& program);

/// Text of an accepted program. Parameters, in order: inputs, outputs (pointers), the number of
/// elements (index type); where an input is strided, `axes - 1` divisors of the merged sizes (all
/// but the outermost, outermost first) and for each strided input its `axes` strides (index type);
/// for each of index_axes the divisors by its stride and its size; where `reports`, error word and
/// step.
LoopSource loop_source(const LoopProgram& program, const LoopVariant& variant);

}  // namespace tracefire::cuda
