// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tracefire::inject {

/// Operations of one kind, layer and source line, as Tracefire's executor counted them. Texts are
/// printable().
struct OpRow {
  std::string op, layer, location, device, kernel, library, placement, reason;
  std::vector<std::string> symbols;  ///< device kernels that executions launch
  /// For each symbol, how many of the runs launch it: programs for other shapes have other kernels.
  /// Where it is shorter, all do.
  std::vector<uint64_t> launches;
  uint64_t runs = 0;
  double flops = 0, bytes = 0;
  bool on_gpu() const { return device.rfind("/GPU", 0) == 0; }
};

/// A program that the executor ran.
struct ProgramRow {
  std::string name;
  uint64_t runs = 0, graph_launches = 0;
  int64_t host_ns = 0;  ///< until everything was queued; on a CPU, until it was done
  int64_t longest_ns = 0;
};

/// What a Tracefire program left beside the injected library's records (p<PID>-….ops.json; written
/// by src/tools/observe/op_records.cpp).
struct OpRecords {
  uint32_t pid = 0, parent = 0;
  std::string host;
  int64_t rank = -1, ranks = -1, local_rank = -1;
  uint64_t begun_ns = 0, wall_ns = 0, cpu_ns = 0;
  bool clean_end = false;
  std::string verdict;  ///< "on-gpu", "partly-on-gpu", "on-cpu"
  double gpu_flops = 0, cpu_flops = 0, cpu_by_choice_flops = 0;
  uint64_t graph_launches = 0, waits = 0, bytes_in = 0, bytes_out = 0;
  bool crowded = false;  ///< not all rows are apart
  std::vector<ProgramRow> programs;
  uint64_t part_ns = 0;
  std::vector<uint64_t> parts;  ///< host time in programs
  std::vector<OpRow> rows;
};

inline constexpr size_t kMaxOpBytes = size_t{16} << 20;

/// Reads such a file; any other bytes are an error (kBadFile), never a crash.
Result<OpRecords> parse_op_records(std::string_view text);

}  // namespace tracefire::inject
