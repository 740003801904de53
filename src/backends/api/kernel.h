// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/api/buffer.h"
#include "backends/api/loop.h"
#include "core/graph/graph.h"
#include "core/ops/op_table.h"

namespace tracefire {

class DeviceBackend;
class Stream;

/// How f32 products may be computed. kTf32 is TensorFlow's default on GPUs; kHighest is IEEE.
enum class Precision : uint8_t { kTf32, kHighest };

/// What a kernel is asked about: a node with the types of its inputs. While placing, shapes may be
/// symbolic; when binding they are numbers.
struct NodeView {
  const Node* node = nullptr;
  std::span<const ValueType> inputs;
  std::span<const ValueType> outputs;
  const LoopProgram* loop = nullptr;  ///< of element-wise, random and fused nodes
  Precision precision = Precision::kTf32;
  bool deterministic = false;
  /// Numbers of the symbols; set when binding.
  const DimEnv* env = nullptr;
};

/// "Yes", or the reason why not: "cublaslt: int32 products are not supported".
struct Answer {
  bool accepted = false;
  bool deterministic = true;
  std::string refusal;
  static Answer yes(bool deterministic = true) { return {true, deterministic, {}}; }
  static Answer no(std::string why) { return {false, true, std::move(why)}; }
};

struct LaunchArgs {
  Stream& stream;
  std::span<void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;     ///< Launch::workspace_bytes() of device memory
  ErrorWord* error = nullptr;    ///< in device memory
  uint32_t step = 0;             ///< what a failed check writes as step_plus_one - 1
};

/// A kernel bound to sizes. run() may be called from several threads with different arguments.
class Launch {
 public:
  virtual ~Launch() = default;
  virtual size_t workspace_bytes() const { return 0; }
  /// Puts the work on the stream (a CPU lane runs it before returning). While the stream is being
  /// captured it must only enqueue.
  virtual Status run(const LaunchArgs& args) const = 0;
  /// Device kernels that one run() launches, with their symbol names, for the proof.
  virtual std::vector<std::string> kernel_names() const = 0;
};

/// One implementation of one op (or pattern) on one kind of device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::string_view name() const = 0;     ///< "cublaslt_matmul"
  virtual std::string_view library() const = 0;  ///< "cuBLASLt 13.1", "oneDNN 3.2", "tracefire"
  virtual bool capturable() const { return true; }
  /// True where result i may be written over input i' of the same size, element by element.
  virtual bool in_place() const { return false; }
  virtual Answer accept(const NodeView& node) const = 0;
  virtual Result<std::unique_ptr<Launch>> bind(const NodeView& node,
                                               DeviceBackend& device) const = 0;
};

/// Implementations of an op on a device kind, best first; the first that accepts is taken.
using KernelList = std::vector<const Kernel*>;

}  // namespace tracefire
