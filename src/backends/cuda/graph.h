// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backends/cuda/stream.h"

namespace tracefire::cuda {

/// A CUDA graph, instantiated and uploaded.
class Graph final : public CapturedGraph {
 public:
  ~Graph() override;
  Status launch(Stream& stream) override;
  size_t nodes() const override { return nodes_; }

 private:
  friend class Capture;
  explicit Graph(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  const std::shared_ptr<const Context> context_;
  CUgraphExec exec_ = nullptr;
  size_t nodes_ = 0;
  std::vector<BufferPtr> buffers_;  ///< allocated while recording: replays use them
};

/// Recording of one thread's work on one GPU. It has lanes of its own, so that other threads go on
/// to use the real ones; while it lasts, the device hands these out to the recording thread.
class Capture {
 public:
  /// Records what `body` enqueues and makes a graph of it. A failure leaves nothing behind.
  static Result<std::unique_ptr<Graph>> record(std::shared_ptr<const Context> context,
                                               const std::function<Status(Stream&)>& body);

  /// The calling thread's recording on this GPU, null where there is none.
  static Capture* current(const Context& context);

  /// The recording's own lane with this number.
  Result<Lane*> lane(int number);
  /// Keeps a buffer for as long as the graph lives.
  void keep(BufferPtr buffer) { buffers_.push_back(std::move(buffer)); }

 private:
  explicit Capture(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  Result<std::unique_ptr<Graph>> finish(const Status& recorded);

  const std::shared_ptr<const Context> context_;
  std::map<int, std::unique_ptr<Lane>> lanes_;
  std::vector<BufferPtr> buffers_;
};

}  // namespace tracefire::cuda
