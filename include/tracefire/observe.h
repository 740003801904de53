// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefire/export.h"
#include "tracefire/placement.h"

namespace tracefire {

/// What the executor's records say about a stretch of work. Nothing else is counted anywhere.
struct TRACEFIRE_API Proof {
  struct Row {
    std::string op;      ///< "matmul"
    std::string device;  ///< "/GPU:0"
    std::string kernel;  ///< "cublaslt_matmul"
    std::string library;
    Placement placement = Placement::kOnDevice;
    std::string reason;    ///< why it fell back
    std::string location;  ///< first source line
    uint64_t runs = 0;     ///< executions, replays counted
    double flops = 0;
    double bytes = 0;
  };
  /// Most work first. There are about 4,096 at most: later kernels and reasons are added up as
  /// "(various)" for each operation, device and placement.
  std::vector<Row> rows;
  uint64_t graph_launches = 0;             ///< captured graphs replayed
  uint64_t runs = 0;                       ///< programs run without a capture
  uint64_t synchronizations = 0;           ///< times the host waited for a device
  uint64_t copies_in = 0, copies_out = 0;  ///< bytes host -> device, device -> host
  uint64_t counted_copies = 0;  ///< copies forced by a live reader of a variable's old value
  double gpu_flops = 0, cpu_flops = 0;  ///< cpu: fallen back only
  double cpu_by_choice_flops = 0;       ///< placed by hand or on the host by design
  Verdict verdict = Verdict::kOnCpu;    ///< also where nothing ran: verdict_text() tells
  std::string precision;  ///< how f32 products were computed: "tf32", "highest" or "highest, tf32"
  /// The verdict as reports write it; "nothing-ran" where there are no rows.
  const char* verdict_text() const { return rows.empty() ? "nothing-ran" : to_text(verdict); }
  /// The whole as a table for people.
  std::string str() const;
  std::string json() const;
};

/// Proof of everything since the start of the process or the last reset_proof().
TRACEFIRE_API Proof proof();
TRACEFIRE_API void reset_proof();

/// What only the program that asks for a manifest knows.
struct ManifestFacts {
  std::string commit;  ///< that Tracefire was built from; null in the manifest where empty
  std::optional<uint64_t> seed;  ///< of the run's random numbers
  /// Also CUDA libraries that are here and not in use; finding out their versions loads them.
  bool all_libraries = false;
};
/// What a result was made with, as one JSON object (schema tracefire.manifest/1, published in
/// schema/cli/manifest.json): version, platform, driver, GPUs, libraries, seed, precision and the
/// settings that differ from their defaults. Starts the devices.
TRACEFIRE_API std::string manifest(const ManifestFacts& facts = {});

}  // namespace tracefire
