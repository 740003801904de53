// SPDX-License-Identifier: Apache-2.0
// The pieces that view.cpp puts together.
#pragma once

#include <string>
#include <vector>

#include "tools/monitor/show/view.h"

namespace tracefire::monitor {

Line gpu_heading(const ViewState& state);
/// The row of a GPU and, by `detail` (0 to 3), what is wrong with it, its MIG instances, links and
/// errors, and its history.
std::vector<Line> gpu_block(const Gpu& gpu, const std::vector<Point>& points,
                            const ViewState& state, int detail);
/// Heading and rows; at most `room` lines, 0 for all. The chosen row is kept in sight.
std::vector<Line> process_table(const std::vector<ProcessRow>& rows, const Snapshot& snapshot,
                                const ViewState& state, size_t room);
Line alert_view(const AlertEvent& event);
std::vector<Line> wrapped(const std::string& text, size_t width, Style style);

/// "████▌░░░" of `width` columns for 0 to 1; "####...." without Unicode.
std::string bar(double ratio, size_t width, bool unicode);
/// One column for each part of `values` (0 to 1, NaN is a gap), newest on the right.
std::string sparkline(const std::vector<float>& values, size_t width, bool unicode);

}  // namespace tracefire::monitor
