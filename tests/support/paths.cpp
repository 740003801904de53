// SPDX-License-Identifier: Apache-2.0
#include "support/paths.h"

namespace tracefire::test {

std::string source_dir() { return TRACEFIRE_SOURCE_DIR; }

std::string binary_dir() { return TRACEFIRE_BINARY_DIR; }

std::string data_file(const std::string& name) { return source_dir() + "/tests/data/" + name; }

}  // namespace tracefire::test
