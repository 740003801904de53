// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tracefire/device.h"
#include "tracefire/placement.h"

namespace tracefire {

inline constexpr double kOnGpuShare = 0.99;

/// The verdict on work that the executor recorded: one rule for the proof and for `prove`.
/// `cpu_flops` is work that a CPU did although nobody asked for that.
inline Verdict verdict_of(double gpu_flops, double cpu_flops, bool fell_back) {
  if (gpu_flops == 0) return Verdict::kOnCpu;
  return !fell_back && gpu_flops >= kOnGpuShare * (gpu_flops + cpu_flops) ? Verdict::kOnGpu
                                                                          : Verdict::kPartlyOnGpu;
}

/// Work by the place where it was done, as the verdict asks for it.
struct WorkByPlace {
  double gpu_flops = 0;
  double cpu_flops = 0;            ///< though nobody asked for that
  double cpu_by_choice_flops = 0;  ///< placed by hand or on the host by design
  bool fell_back = false;

  void add(Device device, Placement placement, double flops) {
    fell_back |= placement == Placement::kFellBack;
    if (device.kind == Device::kGpu) {
      gpu_flops += flops;
    } else if (placement == Placement::kOnDevice || placement == Placement::kFellBack) {
      cpu_flops += flops;
    } else {
      cpu_by_choice_flops += flops;
    }
  }
  Verdict verdict() const { return verdict_of(gpu_flops, cpu_flops, fell_back); }
};

}  // namespace tracefire
