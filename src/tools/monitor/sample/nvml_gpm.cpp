// SPDX-License-Identifier: Apache-2.0
// Performance counters: activity of multiprocessors, tensor cores, memory and links.
#include "tools/monitor/sample/nvml_call.h"
#include "tools/monitor/sample/nvml_source.h"

namespace tracefire::monitor {
namespace {

constexpr double kPercent = 0.01;
constexpr double kMebi = 1 << 20;

struct Wanted {
  unsigned id;
  Metric metric;
  double scale;
  bool of_instance;  ///< also told for a MIG instance
};
constexpr Wanted kWanted[] = {
    {nvidia::kNvmlGpmEngine, Metric::kEngine, kPercent, true},
    {nvidia::kNvmlGpmSm, Metric::kSmActivity, kPercent, true},
    {nvidia::kNvmlGpmOccupancy, Metric::kSmOccupancy, kPercent, true},
    {nvidia::kNvmlGpmTensor, Metric::kTensor, kPercent, true},
    {nvidia::kNvmlGpmDram, Metric::kDram, kPercent, true},
    {nvidia::kNvmlGpmPcieTx, Metric::kPcieTx, kMebi, false},
    {nvidia::kNvmlGpmPcieRx, Metric::kPcieRx, kMebi, false},
    {nvidia::kNvmlGpmNvlinkTx, Metric::kNvlinkTx, kMebi, false},
    {nvidia::kNvmlGpmNvlinkRx, Metric::kNvlinkRx, kMebi, false},
};

}  // namespace

GpmPair::GpmPair(const nvidia::NvmlMonitorApi* api, nvidia::NvmlDevice device, int gpu_instance)
    : api_(api), device_(device), gpu_instance_(gpu_instance) {
  code_ = nvml_call(api_->nvmlGpmSampleAlloc, &older_);
  if (code_ == nvidia::kNvmlSuccess) code_ = nvml_call(api_->nvmlGpmSampleAlloc, &newer_);
}

GpmPair::~GpmPair() {
  if (older_ != nullptr) nvml_call(api_->nvmlGpmSampleFree, older_);
  if (newer_ != nullptr) nvml_call(api_->nvmlGpmSampleFree, newer_);
}

int GpmPair::sample(nvidia::NvmlGpmSample into) const {
  if (gpu_instance_ < 0) return nvml_call(api_->nvmlGpmSampleGet, device_, into);
  return nvml_call(api_->nvmlGpmMigSampleGet, device_, static_cast<unsigned>(gpu_instance_), into);
}

void GpmPair::read(Readings* readings) {
  const auto set = [&](const Wanted& wanted, Reading reading) {
    if (wanted.of_instance || gpu_instance_ < 0) {
      (*readings)[static_cast<int>(wanted.metric)] = reading;
    }
  };
  int code = code_;
  if (code == nvidia::kNvmlSuccess) code = sample(newer_);
  if (code != nvidia::kNvmlSuccess || !have_older_) {
    for (const Wanted& wanted : kWanted) {
      set(wanted, Reading::missing(code == nvidia::kNvmlSuccess ? Reading::kNotReady : code));
    }
    if (code == nvidia::kNvmlSuccess) {
      std::swap(older_, newer_);
      have_older_ = true;
    }
    return;
  }
  nvidia::NvmlGpmQuery query;
  query.older = older_;
  query.newer = newer_;
  for (const Wanted& wanted : kWanted) {
    query.metrics[query.count].metric = wanted.id;
    query.metrics[query.count].result = nvidia::kNvmlNotSupported;
    ++query.count;
  }
  code = nvml_call(api_->nvmlGpmMetricsGet, &query);
  for (size_t i = 0; i < std::size(kWanted); ++i) {
    const nvidia::NvmlGpmMetric& got = query.metrics[i];
    set(kWanted[i], nvml_reading(code != nvidia::kNvmlSuccess ? code : got.result, got.value,
                                 kWanted[i].scale));
  }
  std::swap(older_, newer_);
}

}  // namespace tracefire::monitor
