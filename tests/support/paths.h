// SPDX-License-Identifier: Apache-2.0
//
// Where a test finds files.
#pragma once

#include <string>

namespace tracefire::test {

/// The root of the source tree, absolute, without a slash at the end.
std::string source_dir();

/// The build folder, absolute, without a slash at the end. Tests write below `tests/` in it only.
std::string binary_dir();

/// A file in tests/data, by its path there.
std::string data_file(const std::string& name);

}  // namespace tracefire::test
