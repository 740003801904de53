// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::monitor {

/// What is read of a GPU. metrics.cpp holds the one table from which JSON, CSV, logs, Prometheus
/// and the documentation of names are made.
enum class Metric : uint8_t {
  kBusy,  // share of time in which a kernel ran
  kMemoryBusy,
  kEncoder,
  kDecoder,
  kEngine,
  kSmActivity,
  kSmOccupancy,
  kTensor,
  kDram,
  kMemoryTotal,
  kMemoryUsed,
  kMemoryFree,
  kMemoryReserved,
  kBar1Total,
  kBar1Used,
  kPower,
  kPowerInstant,
  kPowerAverage,
  kPowerLimit,
  kPowerDefaultLimit,
  kPowerMaxLimit,
  kEnergy,
  kTemperature,
  kMemoryTemperature,
  kSlowdownTemperature,
  kFan,
  kClockGraphics,
  kClockSm,
  kClockMemory,
  kClockVideo,
  kClockGraphicsMax,
  kClockSmMax,
  kClockMemoryMax,
  kPerformanceState,
  kPcieGeneration,
  kPcieGenerationMax,
  kPcieWidth,
  kPcieWidthMax,
  kPcieTx,
  kPcieRx,
  kPcieReplays,
  kNvlinkActive,
  kNvlinkTx,
  kNvlinkRx,
  kNvlinkTxTotal,
  kNvlinkRxTotal,
  kNvlinkErrors,
  kEccMode,
  kEccCorrected,
  kEccUncorrected,
  kEccCorrectedTotal,
  kEccUncorrectedTotal,
  kRowsCorrected,
  kRowsUncorrected,
  kRowsPending,
  kRowsFailed,
  kXidErrors,
  kXidLast,
  kPersistence,
  kComputeMode,
  kMigMode,
  kDisplayActive,
  kDisplayMode,
};
inline constexpr int kMetricCount = static_cast<int>(Metric::kDisplayMode) + 1;

enum class Unit : uint8_t {
  kRatio,  ///< 0 to 1
  kBytes,
  kBytesPerSecond,
  kWatts,
  kJoules,
  kCelsius,
  kHertz,
  kCount,
  kCode,  ///< a number that stands for a state
};

/// One row of the table.
struct MetricRow {
  Metric metric;
  const char* key;     ///< in JSON, CSV and logs, with its unit: "power_watts", "clock_sm_mhz"
  double key_scale;    ///< value there = base value * key_scale
  Unit unit;           ///< of the base value
  const char* family;  ///< Prometheus, without "tracefire_gpu_"; "" where it is not exported
  const char* label;   ///< `clock="sm"`; "" for none
  bool counter;        ///< only goes up; its family ends in _total
  const char* dcgm;    ///< the DCGM exporter's name; "" where it has none
  double dcgm_scale;   ///< value there = base value * dcgm_scale
  const char* doc;
};

/// In the order of Metric.
std::span<const MetricRow> metric_rows();
const MetricRow& row(Metric metric);

/// One reason why clocks are below their maximum.
struct ThrottleReason {
  uint64_t bit;
  const char* name;   ///< "sw_power_cap"
  const char* words;  ///< "power limit"
  bool fault;         ///< heat, or the power supply: worth an alert
};
std::span<const ThrottleReason> throttle_reasons();
/// Words of the reasons set in `bits` that slow the clocks ("power limit, heat"); "" for none. An
/// idle GPU's low clocks are no throttling.
std::string throttle_words(uint64_t bits);
/// Bits that stand for heat or the power supply.
uint64_t throttle_fault_bits();
/// Bits that slow a busy GPU, its power limit included.
uint64_t throttle_bits();

}  // namespace tracefire::monitor
