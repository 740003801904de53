// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tracefire {

/// Why a step runs where it runs. Only kFellBack lowers the verdict.
enum class Placement : uint8_t {
  kOnDevice,      ///< on the device the program was placed on
  kHostByDesign,  ///< strings, prints, host calls: the host is their place
  kByUser,        ///< put on the CPU by the user's device scope
  kFellBack,      ///< wanted on the GPU, no kernel accepted
};

/// As reports and files write it.
constexpr const char* to_text(Placement placement) {
  switch (placement) {
    case Placement::kOnDevice:
      return "on device";
    case Placement::kHostByDesign:
      return "host by design";
    case Placement::kByUser:
      return "by user";
    case Placement::kFellBack:
      return "fallen back";
  }
  return "";
}

/// Where work was done, in one word.
enum class Verdict : uint8_t {
  kOnGpu,        ///< nothing fell back, and at least 99 % of the work that nobody put on a CPU
  kPartlyOnGpu,  ///< some of it
  kOnCpu,        ///< none of it
};

/// As reports and files write it.
constexpr const char* to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOnGpu:
      return "on-gpu";
    case Verdict::kPartlyOnGpu:
      return "partly-on-gpu";
    case Verdict::kOnCpu:
      return "on-cpu";
  }
  return "";
}

}  // namespace tracefire
