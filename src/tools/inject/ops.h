// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/inject/records.h"

namespace tracefire::inject {

/// One operation of a layer and source line in all processes, joined with the kernels that CUPTI
/// recorded.
struct OpFigure {
  std::string op, layer, location, device, kernel, library, placement, reason;
  uint64_t runs = 0;
  double flops = 0, bytes = 0;
  double work_share = 0;  ///< of the FLOP of all operations
  /// Time of its kernels on the GPU, ns; negative: not known (CPUs, or nothing was traced).
  double kernel_ns = -1;
  bool estimated = false;  ///< kernels are shared with other rows and were divided by their work
};

struct ProgramFigure {
  std::string name;
  uint64_t runs = 0, graph_launches = 0;
  int64_t host_ns = 0, longest_ns = 0;
};

/// What Tracefire's own records add.
struct OpReport {
  bool found = false;
  std::vector<OpFigure> ops;  ///< by kernel time, then by work
  std::vector<ProgramFigure> programs;
  double gpu_flops = 0, cpu_flops = 0, cpu_by_choice_flops = 0;
  double joined_ns = 0;  ///< of all kernel time, what has an operation
  uint64_t kernels_compared = 0, kernels_agreeing = 0;
  bool counted = true;  ///< false where earlier releases' records do not tell launches by kernel
  std::string
      fewer;  ///< the others: how often the driver recorded them, of the executor's launches
  std::vector<std::string> notes;
};

OpReport join_ops(const std::vector<ProcessRecord>& records);

}  // namespace tracefire::inject
