// SPDX-License-Identifier: Apache-2.0
// Leaving and entering the interpreter, also while it ends.
//
// Threads of the program (daemons) and of the library may be at work when the main thread ends the
// interpreter. Before Python 3.14 a thread that asks for the GIL then is ended by pthread_exit,
// which unwinds C++ frames that cannot be unwound so; such threads are stopped here instead.
#pragma once

#include <nanobind/nanobind.h>

namespace tracefire::python {

/// True from the moment when the interpreter runs its exit functions: only the main thread may
/// touch Python objects any more.
bool runtime_ended();
/// Never returns: for a thread that pthread_exit is unwinding.
[[noreturn]] void stop_thread();
/// Called by the main thread, with the GIL; waits until no other thread is on its way in or out.
void end_runtime_threads();

/// Releases the GIL for a call into the library.
class GilRelease {
 public:
  GilRelease() noexcept;
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

/// Takes the GIL on a thread of the library.
class GilAcquire {
 public:
  GilAcquire() noexcept;
  ~GilAcquire();
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;
  /// False where the interpreter has ended: no Python then.
  explicit operator bool() const { return entered_; }

 private:
  bool entered_;
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

/// Deletes `object`, which holds Python references, from any thread; leaks it after the end.
template <class T>
void release_with_gil(T* object) {
  if (GilAcquire acquired; acquired) delete object;
}

}  // namespace tracefire::python
