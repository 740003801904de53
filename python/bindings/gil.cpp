// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/gil.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tracefire::python {
namespace {

std::atomic<bool> ended{false};
std::atomic<int> on_the_way{0};  ///< threads between interpreter and library, in either direction
std::atomic<std::thread::id> ending_thread;

bool must_stop() {
  return ended.load() && ending_thread.load() != std::this_thread::get_id();
}

}  // namespace

void stop_thread() {
  for (;;) pause();
}

bool runtime_ended() { return ended.load(std::memory_order_acquire); }

void end_runtime_threads() {
  ending_thread.store(std::this_thread::get_id());
  ended.store(true);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  PyThreadState* state = PyEval_SaveThread();
  while (on_the_way.load() > 0 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  PyEval_RestoreThread(state);
}

GilRelease::GilRelease() noexcept {
  on_the_way.fetch_add(1);
  state_ = PyEval_SaveThread();
  if (must_stop()) {
    on_the_way.fetch_sub(1);
    stop_thread();
  }
}

GilRelease::~GilRelease() {
  if (must_stop()) {
    on_the_way.fetch_sub(1);
    stop_thread();
  }
  try {
    PyEval_RestoreThread(state_);
  } catch (abi::__forced_unwind&) {
    stop_thread();
  }
  on_the_way.fetch_sub(1);
}

GilAcquire::GilAcquire() noexcept {
  on_the_way.fetch_add(1);
  entered_ = !must_stop();
  if (!entered_) return;
  try {
    state_ = PyGILState_Ensure();
  } catch (abi::__forced_unwind&) {
    stop_thread();
  }
}

GilAcquire::~GilAcquire() {
  if (entered_) PyGILState_Release(state_);
  on_the_way.fetch_sub(1);
}

}  // namespace tracefire::python
