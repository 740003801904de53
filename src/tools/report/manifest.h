// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

namespace tracefire::report {

/// What only the program that asks knows.
struct ManifestFacts {
  std::string commit;  ///< null in the manifest where empty
  std::optional<uint64_t> seed;
  bool all_libraries = false;  ///< also CUDA libraries that are here and not in use; loads them
  bool driver = true;          ///< starts the driver, without a context on any GPU, to list GPUs
};

/// What only the engine knows; empty where a program has none.
struct EngineFacts {
  struct Library {
    std::string name, version, path, origin;
  };
  std::string processor, instructions;
  uint64_t memory_bytes = 0;
  std::vector<Library> libraries;  ///< in use
  std::string why_no_gpu;
  std::string precision;  ///< of float32 products; the setting, which is for GPUs, where empty
};

/// A time as RFC 3339 in UTC: "2026-11-30T20:51:00Z".
std::string utc_text(std::time_t at);
std::string utc_now();

/// What a result was made with, so that it can be made again or compared: one JSON object
/// (schema tracefire.manifest/1).
std::string manifest(const ManifestFacts& facts, const EngineFacts& engine = {});

}  // namespace tracefire::report
