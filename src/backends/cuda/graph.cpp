// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/graph.h"

namespace tracefire::cuda {
namespace {

/// One recording a thread: recordings do not nest.
thread_local Capture* recording = nullptr;

/// Ends a recording of the thread on every way out.
struct Scope {
  explicit Scope(Capture* capture) { recording = capture; }
  ~Scope() { recording = nullptr; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
};

}  // namespace

Graph::~Graph() {
  if (exec_ != nullptr && context_->enter().ok()) context_->api().cuGraphExecDestroy(exec_);
}

Status Graph::launch(Stream& stream) {
  TF_RETURN_IF_ERROR(context_->enter());
  TF_CUDA(*context_, cuGraphLaunch, exec_, lane_of(stream).handle());
  return {};
}

Capture* Capture::current(const Context& context) {
  return recording != nullptr && recording->context_.get() == &context ? recording : nullptr;
}

Result<Lane*> Capture::lane(int number) {
  std::unique_ptr<Lane>& lane = lanes_[number];
  if (lane == nullptr) {
    TF_ASSIGN(lane, Lane::make(context_, number));
    if (number == 0) {
      // Relaxed: other threads go on to allocate and launch meanwhile.
      TF_CUDA(*context_, cuStreamBeginCapture, lane->handle(), CU_STREAM_CAPTURE_MODE_RELAXED);
    } else {
      // Waiting for a lane that records makes this one record too.
      TF_RETURN_IF_ERROR(lane->wait_for(*lanes_.at(0)));
    }
    lane->set_capturing(true);
  }
  return lane.get();
}

Result<std::unique_ptr<Graph>> Capture::record(std::shared_ptr<const Context> context,
                                               const std::function<Status(Stream&)>& body) {
  TF_RETURN_IF_ERROR(context->enter());
  if (recording != nullptr) {
    return error(ErrorCode::kInternal, "a captured segment began inside another one on ",
                 context->device().str(), ". Please report it.");
  }
  Capture capture(context);
  TF_ASSIGN(Lane* const first, capture.lane(0));
  Status recorded;
  try {
    const Scope scope(&capture);
    recorded = body(*first);
  } catch (...) {
    const Result<std::unique_ptr<Graph>> abandoned =
        capture.finish(error(ErrorCode::kInternal, "the recorded code threw"));
    (void)abandoned;
    throw;
  }
  return capture.finish(recorded);
}

Result<std::unique_ptr<Graph>> Capture::finish(const Status& recorded) {
  Status joined;
  for (auto& [number, lane] : lanes_) {
    if (number != 0 && joined.ok()) joined = lanes_.at(0)->wait_for(*lane);
  }
  CUgraph graph = nullptr;
  const CUresult ended = context_->api().cuStreamEndCapture(lanes_.at(0)->handle(), &graph);
  std::unique_ptr<Graph> made(new Graph(context_));
  const auto instantiate = [&]() -> Status {
    TF_RETURN_IF_ERROR(recorded);
    TF_RETURN_IF_ERROR(joined);
    TF_RETURN_IF_ERROR(context_->check(ended, "cuStreamEndCapture"));
    TF_CUDA(*context_, cuGraphGetNodes, graph, nullptr, &made->nodes_);
    TF_CUDA(*context_, cuGraphInstantiateWithFlags, &made->exec_, graph, 0);
    TF_CUDA(*context_, cuGraphUpload, made->exec_, lanes_.at(0)->handle());
    return {};
  };
  const Status status = instantiate();
  if (graph != nullptr) context_->api().cuGraphDestroy(graph);
  if (!status.ok()) return status;
  made->buffers_ = std::move(buffers_);
  return made;
}

}  // namespace tracefire::cuda
