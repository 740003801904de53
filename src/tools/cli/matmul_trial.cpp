// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/matmul_trial.h"

#include <algorithm>
#include <cstdio>

#include "backends/nvidia/stack.h"
#include "health_table.h"  // generated from schema/health.json

namespace tracefire::cli {

double peak_of(const std::string& device) {
  std::string lower = device;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (lower.find("gpu") == std::string::npos && lower.find("cuda") == std::string::npos) return 0;
  const size_t digit = lower.find_last_of("0123456789");
  const size_t first =
      digit == std::string::npos ? digit : lower.find_last_not_of("0123456789", digit) + 1;
  const size_t wanted =
      digit == std::string::npos
          ? 0
          : std::stoul("0" + lower.substr(first, std::min<size_t>(digit - first + 1, 6)));
  size_t index = 0;
  for (const nvidia::Gpu& gpu : nvidia::Stack::instance().inventory().gpus) {
    if (index++ != wanted) continue;
    return gpu.peak_flops_f32();
  }
  return 0;
}

const char* MatmulTrial::grade() const {
  if (!problem.empty()) return "failed";
  if (peak <= 0) return "unknown";
  return flops_per_second < health::kProductSlow * peak ? "slow" : "good";
}

std::string MatmulTrial::words() const {
  if (!problem.empty()) return framework + ": " + problem + ".";
  char text[256];
  std::snprintf(text, sizeof text, ": %.3g TFLOP/s on ", flops_per_second / 1e12);
  std::string out = framework + text + (device.empty() ? "an unknown device" : device);
  if (peak <= 0) return out + "; no peak is known for it.";
  std::snprintf(text, sizeof text, ", %.0f %% of its float32 peak of %.3g TFLOP/s",
                100 * flops_per_second / peak, peak / 1e12);
  out += text;
  if (flops_per_second > peak) out += " (more than all: tensor cores, TF32)";
  if (flops_per_second < health::kProductSlow * peak) {
    out += ". That is slow: other work on the device, clocks held down, or a wrong build";
  }
  return out + ".";
}

}  // namespace tracefire::cli
