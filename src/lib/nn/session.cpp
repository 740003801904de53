// SPDX-License-Identifier: Apache-2.0
#include "lib/nn/session.h"

#include "core/base/status.h"

namespace tracefire::nn {
namespace {

const char* name_of(Activity activity) {
  switch (activity) {
    case Activity::kCompile:
      return "compile";
    case Activity::kFit:
      return "fit";
    case Activity::kEvaluate:
      return "evaluate";
    case Activity::kPredict:
      return "predict";
    case Activity::kNone:
      break;
  }
  return "nothing";
}

}  // namespace

Session::Session(std::shared_ptr<Busy> busy, const std::string& model, Activity activity)
    : busy_(std::move(busy)) {
  const std::thread::id here = std::this_thread::get_id();
  std::unique_lock<std::mutex> lock(busy_->mutex);
  if (activity == Activity::kPredict) {
    busy_->changed.wait(
        lock, [&] { return busy_->activity != Activity::kPredict || busy_->thread == here; });
  }
  const bool only_reads = activity == Activity::kEvaluate || activity == Activity::kPredict;
  const bool nested = busy_->between_epochs && busy_->thread == here && only_reads;
  if (busy_->activity != Activity::kNone && !nested) {
    const bool inside = busy_->thread == here;
    error(ErrorCode::kBadUsage, name_of(activity), " of model '", model, "' was called ",
          inside ? "inside its own " : "while another thread runs its ", name_of(busy_->activity),
          "; call it when that has returned. on_epoch may call evaluate and predict")
        .throw_if_error();
  }
  before_ = busy_->activity;
  busy_->activity = activity;
  busy_->thread = here;
  busy_->between_epochs = false;
}

Session::~Session() {
  {
    std::lock_guard<std::mutex> lock(busy_->mutex);
    busy_->activity = before_;
    busy_->between_epochs = before_ == Activity::kFit;  // only its on_epoch lets another call in
  }
  busy_->changed.notify_all();
}

void BetweenEpochs::set(bool between) {
  std::lock_guard<std::mutex> lock(busy_.mutex);
  busy_.between_epochs = between;
}

}  // namespace tracefire::nn
