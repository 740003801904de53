// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/sample/metrics.h"

#include <array>

namespace tracefire::monitor {
namespace {

constexpr double kPercent = 100;
constexpr double kMega = 1e-6;
constexpr double kMebi = 1.0 / (1 << 20);

// clang-format off
constexpr std::array<MetricRow, kMetricCount> kRows = {{
  {Metric::kBusy, "gpu_utilization_percent", kPercent, Unit::kRatio, "utilization_ratio", "", false, "DCGM_FI_DEV_GPU_UTIL", kPercent, "Share of the last sample period in which a kernel ran: the busy share."},
  {Metric::kMemoryBusy, "memory_utilization_percent", kPercent, Unit::kRatio, "memory_utilization_ratio", "", false, "DCGM_FI_DEV_MEM_COPY_UTIL", kPercent, "Share of the last sample period in which device memory was read or written."},
  {Metric::kEncoder, "encoder_utilization_percent", kPercent, Unit::kRatio, "encoder_utilization_ratio", "", false, "DCGM_FI_DEV_ENC_UTIL", kPercent, "Busy share of the video encoder."},
  {Metric::kDecoder, "decoder_utilization_percent", kPercent, Unit::kRatio, "decoder_utilization_ratio", "", false, "DCGM_FI_DEV_DEC_UTIL", kPercent, "Busy share of the video decoder."},
  {Metric::kEngine, "engine_activity_percent", kPercent, Unit::kRatio, "engine_activity_ratio", "", false, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1, "Share of the time in which the compute and graphics engine was active."},
  {Metric::kSmActivity, "sm_activity_percent", kPercent, Unit::kRatio, "sm_activity_ratio", "", false, "DCGM_FI_PROF_SM_ACTIVE", 1, "Mean share of multiprocessors with at least one warp."},
  {Metric::kSmOccupancy, "sm_occupancy_percent", kPercent, Unit::kRatio, "sm_occupancy_ratio", "", false, "DCGM_FI_PROF_SM_OCCUPANCY", 1, "Resident warps over the most that fit."},
  {Metric::kTensor, "tensor_activity_percent", kPercent, Unit::kRatio, "tensor_activity_ratio", "", false, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1, "Share of cycles in which tensor cores were active."},
  {Metric::kDram, "dram_activity_percent", kPercent, Unit::kRatio, "dram_activity_ratio", "", false, "DCGM_FI_PROF_DRAM_ACTIVE", 1, "Used share of the memory bandwidth."},
  {Metric::kMemoryTotal, "memory_total_bytes", 1, Unit::kBytes, "memory_total_bytes", "", false, "", 1, "Device memory."},
  {Metric::kMemoryUsed, "memory_used_bytes", 1, Unit::kBytes, "memory_used_bytes", "", false, "DCGM_FI_DEV_FB_USED", kMebi, "Device memory that processes use; what driver and firmware reserve is not in it."},
  {Metric::kMemoryFree, "memory_free_bytes", 1, Unit::kBytes, "memory_free_bytes", "", false, "DCGM_FI_DEV_FB_FREE", kMebi, "Device memory that can still be taken."},
  {Metric::kMemoryReserved, "memory_reserved_bytes", 1, Unit::kBytes, "memory_reserved_bytes", "", false, "DCGM_FI_DEV_FB_RESERVED", kMebi, "Device memory that driver and firmware reserve."},
  {Metric::kBar1Total, "bar1_total_bytes", 1, Unit::kBytes, "bar1_total_bytes", "", false, "", 1, "Window through which the host reaches device memory."},
  {Metric::kBar1Used, "bar1_used_bytes", 1, Unit::kBytes, "bar1_used_bytes", "", false, "", 1, "Used part of that window."},
  {Metric::kPower, "power_watts", 1, Unit::kWatts, "power_watts", "", false, "DCGM_FI_DEV_POWER_USAGE", 1, "Power draw; averaged over a second by the GPU since Ampere, but for the A100."},
  {Metric::kPowerInstant, "power_instant_watts", 1, Unit::kWatts, "power_instant_watts", "", false, "DCGM_FI_DEV_POWER_USAGE_INSTANT", 1, "Power draw at this moment."},
  {Metric::kPowerAverage, "power_average_watts", 1, Unit::kWatts, "", "", false, "", 1, "Power draw, averaged over a second, on every GPU that tells it."},
  {Metric::kPowerLimit, "power_limit_watts", 1, Unit::kWatts, "power_limit_watts", "", false, "", 1, "Power limit in force."},
  {Metric::kPowerDefaultLimit, "power_default_limit_watts", 1, Unit::kWatts, "", "", false, "", 1, "Power limit after the driver is loaded."},
  {Metric::kPowerMaxLimit, "power_max_limit_watts", 1, Unit::kWatts, "", "", false, "", 1, "Highest power limit that can be set."},
  {Metric::kEnergy, "energy_joules", 1, Unit::kJoules, "energy_joules_total", "", true, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1000, "Energy since the driver was loaded."},
  {Metric::kTemperature, "temperature_celsius", 1, Unit::kCelsius, "temperature_celsius", "sensor=\"gpu\"", false, "DCGM_FI_DEV_GPU_TEMP", 1, "Temperature."},
  {Metric::kMemoryTemperature, "memory_temperature_celsius", 1, Unit::kCelsius, "temperature_celsius", "sensor=\"memory\"", false, "DCGM_FI_DEV_MEMORY_TEMP", 1, "Temperature of the memory."},
  {Metric::kSlowdownTemperature, "slowdown_temperature_celsius", 1, Unit::kCelsius, "slowdown_temperature_celsius", "", false, "", 1, "Temperature at which the clocks are lowered."},
  {Metric::kFan, "fan_percent", kPercent, Unit::kRatio, "fan_speed_ratio", "", false, "DCGM_FI_DEV_FAN_SPEED", kPercent, "Fan speed as a share of the highest."},
  {Metric::kClockGraphics, "clock_graphics_mhz", kMega, Unit::kHertz, "clock_hertz", "clock=\"graphics\"", false, "", kMega, "Clock."},
  {Metric::kClockSm, "clock_sm_mhz", kMega, Unit::kHertz, "clock_hertz", "clock=\"sm\"", false, "DCGM_FI_DEV_SM_CLOCK", kMega, "Clock of the multiprocessors."},
  {Metric::kClockMemory, "clock_memory_mhz", kMega, Unit::kHertz, "clock_hertz", "clock=\"memory\"", false, "DCGM_FI_DEV_MEM_CLOCK", kMega, "Clock of the memory."},
  {Metric::kClockVideo, "clock_video_mhz", kMega, Unit::kHertz, "clock_hertz", "clock=\"video\"", false, "DCGM_FI_DEV_VIDEO_CLOCK", kMega, "Clock of the video engines."},
  {Metric::kClockGraphicsMax, "clock_graphics_max_mhz", kMega, Unit::kHertz, "clock_max_hertz", "clock=\"graphics\"", false, "", kMega, "Highest clock."},
  {Metric::kClockSmMax, "clock_sm_max_mhz", kMega, Unit::kHertz, "clock_max_hertz", "clock=\"sm\"", false, "", kMega, "Highest clock of the multiprocessors."},
  {Metric::kClockMemoryMax, "clock_memory_max_mhz", kMega, Unit::kHertz, "clock_max_hertz", "clock=\"memory\"", false, "", kMega, "Highest clock of the memory."},
  {Metric::kPerformanceState, "performance_state", 1, Unit::kCode, "performance_state", "", false, "DCGM_FI_DEV_PSTATE", 1, "Performance state: 0 is the fastest, 15 the slowest."},
  {Metric::kPcieGeneration, "pcie_generation", 1, Unit::kCode, "pcie_link_generation", "", false, "DCGM_FI_DEV_PCIE_LINK_GEN", 1, "Generation of the PCIe link now; an idle GPU lowers it."},
  {Metric::kPcieGenerationMax, "pcie_generation_max", 1, Unit::kCode, "pcie_link_max_generation", "", false, "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", 1, "Highest generation of the PCIe link."},
  {Metric::kPcieWidth, "pcie_lanes", 1, Unit::kCount, "pcie_link_lanes", "", false, "DCGM_FI_DEV_PCIE_LINK_WIDTH", 1, "Lanes of the PCIe link now."},
  {Metric::kPcieWidthMax, "pcie_lanes_max", 1, Unit::kCount, "pcie_link_max_lanes", "", false, "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 1, "Most lanes of the PCIe link."},
  {Metric::kPcieTx, "pcie_tx_bytes_per_second", 1, Unit::kBytesPerSecond, "pcie_transmit_bytes_per_second", "", false, "DCGM_FI_PROF_PCIE_TX_BYTES", 1, "Bytes a second from the GPU over PCIe."},
  {Metric::kPcieRx, "pcie_rx_bytes_per_second", 1, Unit::kBytesPerSecond, "pcie_receive_bytes_per_second", "", false, "DCGM_FI_PROF_PCIE_RX_BYTES", 1, "Bytes a second to the GPU over PCIe."},
  {Metric::kPcieReplays, "pcie_replays", 1, Unit::kCount, "pcie_replays_total", "", true, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 1, "Transfers that PCIe had to repeat."},
  {Metric::kNvlinkActive, "nvlink_active_links", 1, Unit::kCount, "nvlink_active_links", "", false, "", 1, "NVLinks that are up."},
  {Metric::kNvlinkTx, "nvlink_tx_bytes_per_second", 1, Unit::kBytesPerSecond, "nvlink_transmit_bytes_per_second", "", false, "DCGM_FI_PROF_NVLINK_TX_BYTES", 1, "Bytes a second from the GPU over all NVLinks."},
  {Metric::kNvlinkRx, "nvlink_rx_bytes_per_second", 1, Unit::kBytesPerSecond, "nvlink_receive_bytes_per_second", "", false, "DCGM_FI_PROF_NVLINK_RX_BYTES", 1, "Bytes a second to the GPU over all NVLinks."},
  {Metric::kNvlinkTxTotal, "nvlink_tx_bytes", 1, Unit::kBytes, "nvlink_transmit_bytes_total", "", true, "", 1, "Bytes from the GPU over all NVLinks since the driver was loaded."},
  {Metric::kNvlinkRxTotal, "nvlink_rx_bytes", 1, Unit::kBytes, "nvlink_receive_bytes_total", "", true, "", 1, "Bytes to the GPU over all NVLinks since the driver was loaded."},
  {Metric::kNvlinkErrors, "nvlink_errors", 1, Unit::kCount, "nvlink_errors_total", "", true, "", 1, "Replays, recoveries and CRC errors of all NVLinks."},
  {Metric::kEccMode, "ecc_enabled", 1, Unit::kCode, "ecc_enabled", "", false, "", 1, "1 where error-correcting memory is on."},
  {Metric::kEccCorrected, "ecc_corrected", 1, Unit::kCount, "ecc_errors_total", "kind=\"corrected\"", true, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 1, "Corrected memory errors since the driver was loaded."},
  {Metric::kEccUncorrected, "ecc_uncorrected", 1, Unit::kCount, "ecc_errors_total", "kind=\"uncorrected\"", true, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, "Uncorrectable memory errors since the driver was loaded."},
  {Metric::kEccCorrectedTotal, "ecc_corrected_lifetime", 1, Unit::kCount, "ecc_lifetime_errors_total", "kind=\"corrected\"", true, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 1, "Corrected memory errors of the GPU's life."},
  {Metric::kEccUncorrectedTotal, "ecc_uncorrected_lifetime", 1, Unit::kCount, "ecc_lifetime_errors_total", "kind=\"uncorrected\"", true, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", 1, "Uncorrectable memory errors of the GPU's life."},
  {Metric::kRowsCorrected, "remapped_rows_corrected", 1, Unit::kCount, "remapped_rows", "kind=\"corrected\"", false, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 1, "Memory rows replaced after corrected errors."},
  {Metric::kRowsUncorrected, "remapped_rows_uncorrected", 1, Unit::kCount, "remapped_rows", "kind=\"uncorrected\"", false, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 1, "Memory rows replaced after uncorrectable errors."},
  {Metric::kRowsPending, "remapped_rows_pending", 1, Unit::kCode, "remapped_rows_pending", "", false, "", 1, "1 where rows wait for a reset to be replaced."},
  {Metric::kRowsFailed, "remapped_rows_failed", 1, Unit::kCode, "remapped_rows_failed", "", false, "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, "1 where a row could not be replaced."},
  {Metric::kXidErrors, "xid_errors", 1, Unit::kCount, "xid_errors_total", "", true, "", 1, "Xid errors that the driver reported while this monitor ran."},
  {Metric::kXidLast, "xid_last", 1, Unit::kCode, "xid_last_code", "", false, "DCGM_FI_DEV_XID_ERRORS", 1, "Number of the last Xid error, 0 for none."},
  {Metric::kPersistence, "persistence_mode", 1, Unit::kCode, "", "", false, "", 1, "1 where the driver stays loaded without a client."},
  {Metric::kComputeMode, "compute_mode", 1, Unit::kCode, "", "", false, "", 1, "0 default, 2 prohibited, 3 exclusive process."},
  {Metric::kMigMode, "mig_mode", 1, Unit::kCode, "mig_enabled", "", false, "", 1, "1 where the GPU is cut into MIG instances."},
  {Metric::kDisplayActive, "display_active", 1, Unit::kCode, "", "", false, "", 1, "1 where a display is driven."},
  {Metric::kDisplayMode, "display_attached", 1, Unit::kCode, "", "", false, "", 1, "1 where a display is attached."},
}};
// clang-format on

constexpr bool in_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].metric) != i) return false;
  }
  return true;
}
static_assert(in_order(), "a row of the table stands where another metric belongs");

constexpr ThrottleReason kThrottle[] = {
    {0x001, "gpu_idle", "idle", false},
    {0x002, "applications_clocks_setting", "clock setting", false},
    {0x004, "sw_power_cap", "power limit", false},
    {0x008, "hw_slowdown", "hardware slowdown", true},
    {0x010, "sync_boost", "sync boost", false},
    {0x020, "sw_thermal_slowdown", "heat", true},
    {0x040, "hw_thermal_slowdown", "heat (hardware)", true},
    {0x080, "hw_power_brake_slowdown", "power supply brake", true},
    {0x100, "display_clock_setting", "display clock", false},
};
constexpr uint64_t kIdleBit = 0x001;
constexpr uint64_t kSettingBits = 0x002 | 0x100;

}  // namespace

std::span<const MetricRow> metric_rows() { return kRows; }
const MetricRow& row(Metric metric) { return kRows[static_cast<size_t>(metric)]; }
std::span<const ThrottleReason> throttle_reasons() { return kThrottle; }

std::string throttle_words(uint64_t bits) {
  std::string words;
  for (const ThrottleReason& reason : kThrottle) {
    if ((bits & reason.bit & throttle_bits()) == 0) continue;
    words += (words.empty() ? "" : ", ") + std::string(reason.words);
  }
  return words;
}

uint64_t throttle_fault_bits() {
  uint64_t bits = 0;
  for (const ThrottleReason& reason : kThrottle) bits |= reason.fault ? reason.bit : 0;
  return bits;
}

uint64_t throttle_bits() {
  uint64_t bits = 0;
  for (const ThrottleReason& reason : kThrottle) bits |= reason.bit;
  return bits & ~kIdleBit & ~kSettingBits;
}

}  // namespace tracefire::monitor
