// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/stream.h"

namespace tracefire::cuda {

Result<std::unique_ptr<Event>> Event::make(std::shared_ptr<const Context> context, bool timed) {
  TF_RETURN_IF_ERROR(context->enter());
  std::unique_ptr<Event> made(new Event(std::move(context)));
  const unsigned flags = timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  TF_CUDA(*made->context_, cuEventCreate, &made->event_, flags);
  return made;
}

Event::~Event() {
  if (event_ != nullptr && context_->enter().ok()) context_->api().cuEventDestroy(event_);
}

Status Event::record(CUstream stream) {
  TF_RETURN_IF_ERROR(context_->enter());
  TF_CUDA(*context_, cuEventRecord, event_, stream);
  return {};
}

Status Event::synchronize() const {
  TF_RETURN_IF_ERROR(context_->enter());
  TF_CUDA(*context_, cuEventSynchronize, event_);
  return {};
}

bool Event::passed() const {
  if (!context_->enter().ok()) return true;
  const CUresult code = context_->api().cuEventQuery(event_);
  return code != CUDA_ERROR_NOT_READY;
}

Result<float> Event::since(const Event& start) const {
  TF_RETURN_IF_ERROR(context_->enter());
  float milliseconds = 0;
  TF_CUDA(*context_, cuEventElapsedTime, &milliseconds, start.event_, event_);
  return milliseconds;
}

Result<std::unique_ptr<Lane>> Lane::make(std::shared_ptr<const Context> context, int lane) {
  TF_RETURN_IF_ERROR(context->enter());
  std::unique_ptr<Lane> made(new Lane(std::move(context), lane));
  TF_CUDA(*made->context_, cuStreamCreateWithPriority, &made->stream_, CU_STREAM_NON_BLOCKING, 0);
  return made;
}

Lane::~Lane() {
  if (stream_ != nullptr && context_->enter().ok()) context_->api().cuStreamDestroy(stream_);
}

Status Lane::synchronize() {
  TF_RETURN_IF_ERROR(context_->enter());
  if (capturing_) {
    return error(ErrorCode::kInternal, "the host waited for ", device().str(),
                 " while its work was being recorded. Expected no wait inside a captured segment. "
                 "Please report it.");
  }
  TF_CUDA(*context_, cuStreamSynchronize, stream_);
  return {};
}

Status Lane::wait_for(Stream& other) {
  Lane& lane = lane_of(other);
  if (&lane == this) return {};
  TF_RETURN_IF_ERROR(context_->enter());
  const std::lock_guard<std::mutex> lock(lane.mutex_);
  if (lane.mark_ == nullptr) {
    TF_ASSIGN(lane.mark_, Event::make(lane.context_));
  }
  TF_RETURN_IF_ERROR(lane.mark_->record(lane.stream_));
  TF_CUDA(*context_, cuStreamWaitEvent, stream_, lane.mark_->handle(), 0);
  return {};
}

}  // namespace tracefire::cuda
