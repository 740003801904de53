// SPDX-License-Identifier: Apache-2.0
// The end of the Python interpreter, which threads and graphs of the library outlive.
#pragma once

namespace tracefire::python {

/// True from the moment when the interpreter runs its exit functions: no Python object may be
/// touched from other threads any more.
bool runtime_ended();
void set_runtime_ended();

/// Deletes `object`, which holds Python references, from any thread; leaks it after the end.
template <class T>
void release_with_gil(T* object) {
  if (runtime_ended()) return;
  nb::gil_scoped_acquire acquired;
  delete object;
}

}  // namespace tracefire::python
