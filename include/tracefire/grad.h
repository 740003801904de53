// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tracefire/tensor.h"

namespace tracefire {

/// Remembers what is computed while it is recording, so that gradients can be taken afterwards.
/// Keeps only the values that gradients name (residuals). Not needed inside a traced function.
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
  /// d outputs / d sources, summed over outputs; an undefined tensor where none flows.
  /// `output_grads` empty: ones. Throws kNoGradient naming the operation.
  std::vector<Tensor> gradients(const std::vector<Tensor>& outputs,
                                const std::vector<Tensor>& sources,
                                const std::vector<Tensor>& output_grads = {});
  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// The same inside a function being traced, where everything is remembered anyway.
TRACEFIRE_API std::vector<Tensor> gradients(const std::vector<Tensor>& outputs,
                                            const std::vector<Tensor>& sources,
                                            const std::vector<Tensor>& output_grads = {});

}  // namespace tracefire
