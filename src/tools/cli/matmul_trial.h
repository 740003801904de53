// SPDX-License-Identifier: Apache-2.0
// A matrix product of 5000 x 5000: where it ran, and its rate against what the device can do.
#pragma once

#include <string>

namespace tracefire::cli {

inline constexpr int kProductSize = 5000;  ///< rows and columns

struct MatmulTrial {
  std::string framework;  ///< "Tracefire 0.1.0"
  std::string device;     ///< as the framework reports it: "/GPU:0", "cuda:0"
  std::string placement;  ///< the line of its placement log; empty where it has none
  std::string problem;    ///< why there is no rate; empty where there is one
  double flops_per_second = 0;
  double peak = 0;  ///< FLOP/s of the device in float32 without tensor cores; 0: not known

  /// "good", "slow" (below product_slow of schema/health.json), "failed"; "unknown" where no peak
  /// is known.
  const char* grade() const;
  /// One sentence with the figures.
  std::string words() const;
};

/// FLOP/s that a device can do in float32 without tensor cores, from its multiprocessors and
/// clock; 0 where `device` ("cuda:0", "/GPU:0", "CudaDevice(id=0)") names no GPU of this process.
double peak_of(const std::string& device);

}  // namespace tracefire::cli
