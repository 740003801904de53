// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire {

/// Fewest letters to insert, delete or replace to get from `a` to `b`.
size_t edit_distance(std::string_view a, std::string_view b);

/// The name closest to `wanted`, or "" where none is close (more than a third of the letters
/// wrong).
std::string closest_name(std::string_view wanted, const std::vector<std::string_view>& names);

/// The shortest text that reads back as exactly `value`, always with a point, an exponent, "inf" or
/// "nan", so that it is no integer: "1.0", "0.1", "1e+300".
std::string real_text(double value);

}  // namespace tracefire
