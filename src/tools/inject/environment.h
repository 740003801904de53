// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace tracefire::inject {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// What the injected library is told.
struct TracePlan {
  std::string library;         ///< libtracefire_inject.so, absolute
  std::string folder;          ///< for its files, absolute, mode 0700
  int64_t window_limit = -1;   ///< bytes of single events a process; -1: the library's own limit
  bool graphs_by_node = true;  ///< CUDA graphs show their kernels
  int beat_ms = 0;             ///< 0: the library's own
  std::string cupti;           ///< "13=/path:12=/path" of libraries found beforehand
};

/// The variables that make every CUDA program below load the library.
Variables trace_variables(const TracePlan& plan);

/// libtracefire_inject.so beside this program or library, or where TRACEFIRE_INJECT_LIBRARY says.
/// Errors: kLibraryNotFound. Where it, or a folder above it,
/// can be written by others the error says which, because it is loaded into every program below.
Result<std::string> find_inject_library();

/// Why `file` could be changed by somebody other than this user and root; empty where it cannot.
std::string writable_by_others(const std::string& file);

/// CUPTI libraries that `command` would probably use: beside its Python, in this process's search
/// path, in toolkits; as TracePlan::cupti.
std::string find_cupti(const std::string& command);

/// Variables of this process that a report may show: a list of names (CUDA_*, NVIDIA_*, NCCL_*,
/// XLA_*, RANK and the like), values without secrets.
std::map<std::string, std::string> shown_environment();

}  // namespace tracefire::inject
