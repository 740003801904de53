// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tracefire/tensor.h"

namespace tracefire {

/// Remembers what this thread computes while it is recording, so that gradients can be taken
/// afterwards. Keeps only the values that gradients name (residuals). Not needed inside a traced
/// function. May be destroyed on any thread.
class TRACEFIRE_API Tape {
 public:
  /// Starts recording on this thread.
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  /// Also follows `tensor`'s value as a source.
  void watch(const Tensor& tensor);
  /// Stops recording; gradients can still be taken.
  void stop();
  /// Goes on recording after stop().
  void resume();
  /// d outputs / d sources, summed over outputs: as many as sources, each with its source's type
  /// and device; an undefined tensor where none flows. `output_grads` [outputs] have the outputs'
  /// types; empty: ones. Throws kNoGradient naming the operation, kBadArity.
  Tensors gradients(const Tensors& outputs, const Tensors& sources,
                    const Tensors& output_grads = {});
  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// The same inside a function being traced, where everything is remembered anyway; elsewhere
/// kValueInTrace.
TRACEFIRE_API Tensors gradients(const Tensors& outputs, const Tensors& sources,
                                const Tensors& output_grads = {});

}  // namespace tracefire
