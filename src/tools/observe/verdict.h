// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tracefire {

/// Placement numbers of StepRecord::placement.
inline constexpr const char* kPlacementNames[] = {"on device", "host by design", "by user",
                                                  "fallen back"};
inline constexpr unsigned char kOnDevice = 0;
inline constexpr unsigned char kFellBack = 3;
inline constexpr double kOnGpuShare = 0.99;

/// The verdict on work that the executor recorded: one rule for the proof and for `prove`.
/// `cpu_flops` is work that a CPU did although nobody asked for that.
inline const char* verdict_of(double gpu_flops, double cpu_flops, bool fell_back) {
  if (gpu_flops == 0) return "on-cpu";
  return !fell_back && gpu_flops >= kOnGpuShare * (gpu_flops + cpu_flops) ? "on-gpu"
                                                                          : "partly-on-gpu";
}

}  // namespace tracefire
