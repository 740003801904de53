// SPDX-License-Identifier: Apache-2.0
//
// `tracefire doctor`: why a GPU is not used, and what to do.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tools/text/layout.h"

namespace tracefire::doctor {

/// `arguments` are those after "doctor". Returns the exit status: 0 gpu-ok, 1 gpu-broken, 3
/// gpu-degraded, 4 cpu-only, 2 for wrong arguments. Text on `out` has the `look`. Throws nothing.
int doctor_main(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
                const text::Look& look = {});

}  // namespace tracefire::doctor
