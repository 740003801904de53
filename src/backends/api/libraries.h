// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tracefire {

/// A library that the backends of this process compute with.
struct UsedLibrary {
  std::string name;     ///< "cuBLASLt"
  std::string version;  ///< as the library tells it; empty where it does not
  std::string path;     ///< its file
  std::string origin;   ///< by which rule it was found
};

/// What the devices of this process use, NVIDIA's libraries first. Starts the devices. Implemented
/// in backends/registry.cpp, which alone knows the backends.
std::vector<UsedLibrary> used_libraries();

}  // namespace tracefire
