// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tracefire::cuda {

/// CUDA C++ text that stands before every kernel of ours: waiting for the predecessor, narrow
/// floating types, conversions, whole-number arithmetic that wraps, random words, error reports.
/// Needs no header, so that nothing has to be found at run time. Every name begins with tf_ or TF_.
std::string_view device_library();

}  // namespace tracefire::cuda
