// SPDX-License-Identifier: Apache-2.0
// The module tracefire._core.
#include "python/bindings/common.h"

NB_MODULE(_core, m) {
  using namespace tracefire::python;
  // Modules may keep tensors until the interpreter is gone; that is no leak of ours.
  nb::set_leak_warnings(false);
  m.doc() = "The engine of Tracefire, as Python sees it. Use the package tracefire.";
  m.attr("__version__") = TRACEFIRE_VERSION;
  bind_errors(m);
  bind_shapes(m);
  bind_tensor(m);
  bind_views(m);
  bind_ops(m);
  bind_function(m);
  bind_gradients(m);
  bind_control(m);
  bind_observe(m);
  bind_profiler(m);
  bind_location(m);
  bind_config(m);
  name_wrong_arguments(m);
}
