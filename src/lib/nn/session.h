// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tracefire::nn {

/// What a model can be busy with.
enum class Activity : uint8_t { kNone, kCompile, kFit, kEvaluate, kPredict };

/// Which thread a model is busy on, and with what.
struct Busy {
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex:
  Activity activity = Activity::kNone;
  std::thread::id thread;
  bool between_epochs = false;  ///< fit waits for the user's on_epoch
};

/// A model's state changes while it is compiled, trained, evaluated or predicts, so one call at a
/// time may do so. Predictions of several threads wait for each other. Inside on_epoch the thread
/// that trains may evaluate and predict; every other second call is kBadUsage.
class Session {
 public:
  Session(std::shared_ptr<Busy> busy, const std::string& model, Activity activity);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::shared_ptr<Busy> busy_;  ///< lives on where the model is moved or destroyed meanwhile
  Activity before_;
};

/// While alive, on_epoch of a fit is running.
class BetweenEpochs {
 public:
  explicit BetweenEpochs(Busy& busy) : busy_(busy) { set(true); }
  ~BetweenEpochs() { set(false); }
  BetweenEpochs(const BetweenEpochs&) = delete;
  BetweenEpochs& operator=(const BetweenEpochs&) = delete;

 private:
  void set(bool between);
  Busy& busy_;
};

}  // namespace tracefire::nn
