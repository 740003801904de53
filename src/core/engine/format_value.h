// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tracefire/control.h"

namespace tracefire {

/// A host array as NumPy prints it, nested brackets and all; long axes are shortened to the first
/// and last three elements.
std::string format_value(const HostArray& array);

/// Element `index` of a numeric array as text.
std::string format_element(const HostArray& array, size_t index);

}  // namespace tracefire
