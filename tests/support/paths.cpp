// SPDX-License-Identifier: Apache-2.0
#include "support/paths.h"

#include <cstdlib>

namespace tracefire::test {

namespace {

// Test programs may be carried to another machine, which says where their files lie there.
std::string moved(const char* variable, const char* built) {
  const char* place = std::getenv(variable);
  return place && *place ? place : built;
}

}  // namespace

std::string source_dir() { return moved("TRACEFIRE_TEST_SOURCE_DIR", TRACEFIRE_SOURCE_DIR); }

std::string binary_dir() { return moved("TRACEFIRE_TEST_BINARY_DIR", TRACEFIRE_BINARY_DIR); }

std::string data_file(const std::string& name) { return source_dir() + "/tests/data/" + name; }

}  // namespace tracefire::test
