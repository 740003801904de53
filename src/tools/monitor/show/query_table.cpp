// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/show/query_table.h"

#include <charconv>

#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"

namespace tracefire::monitor {

std::string missing_words(int code) {
  switch (code) {
    case 4:
    case Reading::kNoAccess:
      return "[Insufficient Permissions]";
    case 15:
      return "[GPU is lost]";
    case 16:
      return "[GPU requires reset]";
    case 26:
      return "[Requested functionality has been deprecated]";
    case 999:
      return "[Unknown Error]";
    default:
      return "[N/A]";
  }
}

int driver_major(const std::string& version) {
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

namespace {

constexpr double kMebi = 1.0 / (1 << 20);
constexpr double kMega = 1e-6;
constexpr double kMilli = 1e-3;
constexpr double kPercent = 100;

std::string or_missing(const Gpu& gpu, const std::string& text) {
  if (!text.empty()) return clean(text);
  return gpu.lost ? missing_words(gpu.lost_code) : "[N/A]";
}

std::string choice(const Reading& reading, std::initializer_list<const char*> words) {
  if (!reading.ok()) return missing_words(reading.code);
  const auto i = static_cast<size_t>(reading.value);
  return i < words.size() ? *(words.begin() + i) : "[Unknown Error]";
}

template <uint64_t kBits>
std::string active(const Snapshot&, const Gpu& gpu) {
  if (gpu.throttle_code != Reading::kOk) return missing_words(gpu.throttle_code);
  return (gpu.throttle & kBits) != 0 ? "Active" : "Not Active";
}
std::string reason_bits(const Snapshot&, const Gpu& gpu) {
  if (gpu.throttle_code != Reading::kOk) return missing_words(gpu.throttle_code);
  return print("0x%016llX", static_cast<unsigned long long>(gpu.throttle));
}
std::string timestamp(const Snapshot& s, const Gpu&) { return smi_time_text(s.unix_us); }
std::string driver(const Snapshot& s, const Gpu& g) { return or_missing(g, s.driver); }
std::string count(const Snapshot& s, const Gpu&) { return std::to_string(s.gpus.size()); }
std::string name(const Snapshot&, const Gpu& g) { return or_missing(g, g.name); }
std::string uuid(const Snapshot&, const Gpu& g) { return or_missing(g, g.uuid); }
std::string serial(const Snapshot&, const Gpu& g) { return or_missing(g, g.serial); }
std::string vbios(const Snapshot&, const Gpu& g) { return or_missing(g, g.vbios); }
std::string pci(const Snapshot&, const Gpu& g) { return or_missing(g, g.pci); }
std::string index(const Snapshot&, const Gpu& g) { return std::to_string(g.index); }
std::string capability(const Snapshot&, const Gpu& g) {
  return g.capability == 0 ? or_missing(g, "")
                           : print("%d.%d", g.capability / 10, g.capability % 10);
}
std::string pstate(const Snapshot&, const Gpu& g) {
  const Reading& r = g[Metric::kPerformanceState];
  if (!r.ok()) return missing_words(r.code);
  return r.value > 15 ? "[Unknown Error]" : print("P%.0f", r.value);
}
std::string persistence(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kPersistence], {"Disabled", "Enabled"});
}
std::string mig(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kMigMode], {"Disabled", "Enabled"});
}
std::string ecc(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kEccMode], {"Disabled", "Enabled"});
}
std::string display_active(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kDisplayActive], {"Disabled", "Enabled"});
}
std::string display_mode(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kDisplayMode], {"Disabled", "Enabled"});
}
std::string display_attached(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kDisplayMode], {"No", "Yes"});
}
std::string rows_pending(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kRowsPending], {"No", "Yes"});
}
std::string rows_failed(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kRowsFailed], {"No", "Yes"});
}
std::string compute_mode(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kComputeMode],
                {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"});
}

constexpr QueryField text_field(const char* name, const char* alias,
                                std::string (*text)(const Snapshot&, const Gpu&)) {
  return {name, alias, "", From::kText, text};
}
constexpr QueryField metric_field(const char* name, const char* alias, const char* unit,
                                  Metric metric, double scale = 1, int decimals = 0) {
  return {name, alias, unit, From::kMetric, nullptr, metric, scale, decimals};
}
constexpr QueryField asked(const char* name, const char* alias, const char* unit, double scale = 1,
                           int decimals = 0) {
  return {name, alias, unit, From::kAnswer, nullptr, Metric::kBusy, scale, decimals};
}
constexpr QueryField not_read(const char* name, const char* alias, const char* unit) {
  return {name, alias, unit};
}
constexpr QueryField deprecated(QueryField field, int since) {
  field.deprecated = since;
  return field;
}
constexpr QueryField bare(QueryField field) {
  field.bare = true;
  return field;
}

// clang-format off
constexpr QueryField kFields[] = {
  text_field("timestamp", "", timestamp),
  text_field("driver_version", "", driver),
  text_field("kmd_version", "", driver),
  not_read("vgpu_driver_capability.heterogenous_multivGPU", "", ""),
  text_field("count", "", count),
  text_field("name", "gpu_name", name),
  text_field("serial", "gpu_serial", serial),
  text_field("uuid", "gpu_uuid", uuid),
  text_field("pci.bus_id", "gpu_bus_id", pci),
  asked("pci.domain", "", ""),
  asked("pci.bus", "", ""),
  asked("pci.device", "", ""),
  asked("pci.baseClass", "", ""),
  asked("pci.subClass", "", ""),
  asked("pci.device_id", "", ""),
  asked("pci.sub_device_id", "", ""),
  not_read("vgpu_device_capability.fractional_multiVgpu", "", ""),
  not_read("vgpu_device_capability.heterogeneous_timeSlice_profile", "", ""),
  not_read("vgpu_device_capability.heterogeneous_timeSlice_sizes", "", ""),
  not_read("vgpu_device_capability.homogeneous_placements", "", ""),
  not_read("vgpu_device_capability.mig_timeSlicing", "", ""),
  not_read("vgpu_device_capability.mig_timeSlicing_mode", "", ""),
  metric_field("pcie.link.gen.current", "", "", Metric::kPcieGeneration),
  metric_field("pcie.link.gen.gpucurrent", "", "", Metric::kPcieGeneration),
  metric_field("pcie.link.gen.max", "", "", Metric::kPcieGenerationMax),
  asked("pcie.link.gen.gpumax", "", ""),
  not_read("pcie.link.gen.hostmax", "", ""),
  metric_field("pcie.link.width.current", "", "", Metric::kPcieWidth),
  metric_field("pcie.link.width.max", "", "", Metric::kPcieWidthMax),
  text_field("index", "", index),
  deprecated(text_field("display_mode", "", display_mode), 580),
  text_field("display_attached", "", display_attached),
  text_field("display_active", "", display_active),
  text_field("persistence_mode", "", persistence),
  asked("addressing_mode", "", ""),
  asked("accounting.mode", "", ""),
  asked("accounting.buffer_size", "", ""),
  not_read("driver_model.current", "", ""),
  not_read("driver_model.pending", "", ""),
  text_field("vbios_version", "", vbios),
  asked("inforom.img", "inforom.image", ""),
  asked("inforom.oem", "", ""),
  asked("inforom.ecc", "", ""),
  asked("inforom.pwr", "inforom.power", ""),
  asked("inforom.checksum_validation", "", ""),
  asked("gpu_recovery_action", "", ""),
  asked("gom.current", "gpu_operation_mode.current", ""),
  asked("gom.pending", "gpu_operation_mode.pending", ""),
  metric_field("fan.speed", "", "%", Metric::kFan, kPercent),
  text_field("pstate", "", pstate),
  asked("clocks_event_reasons.supported", "clocks_throttle_reasons.supported", ""),
  text_field("clocks_event_reasons.active", "clocks_throttle_reasons.active", reason_bits),
  text_field("clocks_event_reasons.gpu_idle", "clocks_throttle_reasons.gpu_idle", active<0x1>),
  text_field("clocks_event_reasons.applications_clocks_setting", "clocks_throttle_reasons.applications_clocks_setting", active<0x2>),
  text_field("clocks_event_reasons.sw_power_cap", "clocks_throttle_reasons.sw_power_cap", active<0x4>),
  text_field("clocks_event_reasons.hw_slowdown", "clocks_throttle_reasons.hw_slowdown", active<0x8>),
  text_field("clocks_event_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown", active<0x40>),
  text_field("clocks_event_reasons.hw_power_brake_slowdown", "clocks_throttle_reasons.hw_power_brake_slowdown", active<0x80>),
  text_field("clocks_event_reasons.sw_thermal_slowdown", "clocks_throttle_reasons.sw_thermal_slowdown", active<0x20>),
  text_field("clocks_event_reasons.sync_boost", "clocks_throttle_reasons.sync_boost", active<0x10>),
  asked("clocks_event_reasons_counters.sw_power_cap", "", "us"),
  asked("clocks_event_reasons_counters.sync_boost", "", "us"),
  asked("clocks_event_reasons_counters.sw_thermal_slowdown", "", "us"),
  not_read("clocks_event_reasons_counters.hw_thermal_slowdown", "", "us"),
  not_read("clocks_event_reasons_counters.hw_power_brake_slowdown", "", "us"),
  metric_field("memory.total", "", "MiB", Metric::kMemoryTotal, kMebi, -1),
  metric_field("memory.reserved", "", "MiB", Metric::kMemoryReserved, kMebi, -1),
  metric_field("memory.used", "", "MiB", Metric::kMemoryUsed, kMebi, -1),
  metric_field("memory.free", "", "MiB", Metric::kMemoryFree, kMebi, -1),
  text_field("compute_mode", "", compute_mode),
  text_field("compute_cap", "", capability),
  metric_field("utilization.gpu", "", "%", Metric::kBusy, kPercent),
  metric_field("utilization.memory", "", "%", Metric::kMemoryBusy, kPercent),
  metric_field("utilization.encoder", "", "%", Metric::kEncoder, kPercent),
  metric_field("utilization.decoder", "", "%", Metric::kDecoder, kPercent),
  asked("utilization.jpeg", "", "%"),
  asked("utilization.ofa", "", "%"),
  asked("encoder.stats.sessionCount", "", ""),
  asked("encoder.stats.averageFps", "", ""),
  asked("encoder.stats.averageLatency", "", ""),
  asked("dramEncryption.mode.current", "", ""),
  asked("dramEncryption.mode.pending", "", ""),
  text_field("ecc.mode.current", "", ecc),
  asked("ecc.mode.pending", "", ""),
  asked("ecc.errors.corrected.volatile.device_memory", "", ""),
  asked("ecc.errors.corrected.volatile.dram", "", ""),
  asked("ecc.errors.corrected.volatile.register_file", "", ""),
  asked("ecc.errors.corrected.volatile.l1_cache", "", ""),
  asked("ecc.errors.corrected.volatile.l2_cache", "", ""),
  asked("ecc.errors.corrected.volatile.texture_memory", "", ""),
  asked("ecc.errors.corrected.volatile.cbu", "", ""),
  asked("ecc.errors.corrected.volatile.sram", "", ""),
  metric_field("ecc.errors.corrected.volatile.total", "", "", Metric::kEccCorrected),
  asked("ecc.errors.corrected.aggregate.device_memory", "", ""),
  asked("ecc.errors.corrected.aggregate.dram", "", ""),
  asked("ecc.errors.corrected.aggregate.register_file", "", ""),
  asked("ecc.errors.corrected.aggregate.l1_cache", "", ""),
  asked("ecc.errors.corrected.aggregate.l2_cache", "", ""),
  asked("ecc.errors.corrected.aggregate.texture_memory", "", ""),
  asked("ecc.errors.corrected.aggregate.cbu", "", ""),
  asked("ecc.errors.corrected.aggregate.sram", "", ""),
  metric_field("ecc.errors.corrected.aggregate.total", "", "", Metric::kEccCorrectedTotal),
  asked("ecc.errors.uncorrected.volatile.device_memory", "", ""),
  asked("ecc.errors.uncorrected.volatile.dram", "", ""),
  asked("ecc.errors.uncorrected.volatile.register_file", "", ""),
  asked("ecc.errors.uncorrected.volatile.l1_cache", "", ""),
  asked("ecc.errors.uncorrected.volatile.l2_cache", "", ""),
  asked("ecc.errors.uncorrected.volatile.texture_memory", "", ""),
  asked("ecc.errors.uncorrected.volatile.cbu", "", ""),
  asked("ecc.errors.uncorrected.volatile.sram", "", ""),
  metric_field("ecc.errors.uncorrected.volatile.total", "", "", Metric::kEccUncorrected),
  asked("ecc.errors.uncorrected.aggregate.device_memory", "", ""),
  asked("ecc.errors.uncorrected.aggregate.dram", "", ""),
  asked("ecc.errors.uncorrected.aggregate.register_file", "", ""),
  asked("ecc.errors.uncorrected.aggregate.l1_cache", "", ""),
  asked("ecc.errors.uncorrected.aggregate.l2_cache", "", ""),
  asked("ecc.errors.uncorrected.aggregate.texture_memory", "", ""),
  asked("ecc.errors.uncorrected.aggregate.cbu", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram", "", ""),
  metric_field("ecc.errors.uncorrected.aggregate.total", "", "", Metric::kEccUncorrectedTotal),
  asked("ecc.errors.uncorrected.volatile.sram.parity", "", ""),
  asked("ecc.errors.uncorrected.volatile.sram.secded", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram.parity", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram.secded", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram.l2", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram.sm", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram.mcu", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram.pcie", "", ""),
  asked("ecc.errors.uncorrected.aggregate.sram.other", "", ""),
  asked("retired_pages.single_bit_ecc.count", "retired_pages.sbe", ""),
  asked("retired_pages.double_bit.count", "retired_pages.dbe", ""),
  asked("retired_pages.pending", "", ""),
  metric_field("remapped_rows.correctable", "remapped_rows.sbe", "", Metric::kRowsCorrected),
  asked("remapped_rows.correctable_inactive", "", ""),
  metric_field("remapped_rows.uncorrectable", "remapped_rows.dbe", "", Metric::kRowsUncorrected),
  asked("remapped_rows.uncorrectable_inactive", "", ""),
  text_field("remapped_rows.pending", "", rows_pending),
  text_field("remapped_rows.failure", "", rows_failed),
  asked("remapped_rows.histogram.max", "", ""),
  asked("remapped_rows.histogram.high", "", ""),
  asked("remapped_rows.histogram.partial", "", ""),
  asked("remapped_rows.histogram.low", "", ""),
  asked("remapped_rows.histogram.none", "", ""),
  metric_field("temperature.gpu", "", "", Metric::kTemperature),
  asked("temperature.gpu.tlimit", "", ""),
  bare(metric_field("temperature.memory", "", "", Metric::kMemoryTemperature)),
  deprecated(asked("power.management", "", ""), 590),
  metric_field("power.draw", "", "W", Metric::kPower, 1, 2),
  metric_field("power.draw.average", "gpu.power.draw.average", "W", Metric::kPowerAverage, 1, 2),
  metric_field("power.draw.instant", "gpu.power.draw.instant", "W", Metric::kPowerInstant, 1, 2),
  asked("power.limit", "gpu.power.requested_limit", "W", kMilli, 2),
  metric_field("enforced.power.limit", "gpu.power.current_limit", "W", Metric::kPowerLimit, 1, 2),
  metric_field("power.default_limit", "gpu.power.default_limit", "W", Metric::kPowerDefaultLimit, 1, 2),
  asked("power.min_limit", "gpu.power.min_limit", "W", kMilli, 2),
  metric_field("power.max_limit", "gpu.power.max_limit", "W", Metric::kPowerMaxLimit, 1, 2),
  asked("module.power.draw.average", "", "W", kMilli, 2),
  asked("module.power.draw.instant", "", "W", kMilli, 2),
  asked("module.power.limit", "module.power.requested_limit", "W", kMilli, 2),
  asked("module.enforced.power.limit", "module.power.current_limit", "W", kMilli, 2),
  asked("module.power.default_limit", "", "W", kMilli, 2),
  asked("module.power.min_limit", "", "W", kMilli, 2),
  asked("module.power.max_limit", "", "W", kMilli, 2),
  not_read("edpp_multiplier", "", "%"),
  metric_field("clocks.current.graphics", "clocks.gr", "MHz", Metric::kClockGraphics, kMega),
  metric_field("clocks.current.sm", "clocks.sm", "MHz", Metric::kClockSm, kMega),
  metric_field("clocks.current.memory", "clocks.mem", "MHz", Metric::kClockMemory, kMega),
  metric_field("clocks.current.video", "clocks.video", "MHz", Metric::kClockVideo, kMega),
  deprecated(asked("clocks.applications.graphics", "clocks.applications.gr", "MHz"), 590),
  deprecated(asked("clocks.applications.memory", "clocks.applications.mem", "MHz"), 590),
  deprecated(asked("clocks.default_applications.graphics", "clocks.default_applications.gr", "MHz"), 590),
  deprecated(asked("clocks.default_applications.memory", "clocks.default_applications.mem", "MHz"), 590),
  metric_field("clocks.max.graphics", "clocks.max.gr", "MHz", Metric::kClockGraphicsMax, kMega),
  metric_field("clocks.max.sm", "", "MHz", Metric::kClockSmMax, kMega),
  metric_field("clocks.max.memory", "clocks.max.mem", "MHz", Metric::kClockMemoryMax, kMega),
  text_field("mig.mode.current", "", mig),
  asked("mig.mode.pending", "", ""),
  asked("gsp.mode.current", "", ""),
  asked("gsp.mode.default", "", ""),
  asked("c2c.mode", "", ""),
  asked("protected_memory.total", "", "MiB", kMebi, -1),
  asked("protected_memory.used", "", "MiB", kMebi, -1),
  asked("protected_memory.free", "", "MiB", kMebi, -1),
  bare(asked("fabric.state", "", "")),
  bare(asked("fabric.status", "", "")),
  bare(asked("fabric.cliqueId", "", "")),
  bare(asked("fabric.clusterUuid", "", "")),
  bare(not_read("fabric.health.summary", "", "")),
  bare(not_read("fabric.health.bandwidth", "", "")),
  bare(not_read("fabric.health.route_recovery_in_progress", "", "")),
  bare(not_read("fabric.health.route_unhealthy", "", "")),
  bare(not_read("fabric.health.access_timeout_recovery", "", "")),
  bare(not_read("fabric.health.incorrect_configuration", "", "")),
  bare(not_read("fabric.health.partition_assigned", "", "")),
  asked("platform.chassis_serial_number", "", ""),
  asked("platform.slot_number", "", ""),
  asked("platform.tray_index", "", ""),
  asked("platform.host_id", "", ""),
  asked("platform.peer_type", "", ""),
  asked("platform.module_id", "", ""),
  asked("platform.gpu_fabric_guid", "", ""),
  not_read("hostname", "", ""),
  not_read("gpu.base.current", "", "W"),
  not_read("gpu.base.requested", "", "W"),
  not_read("gpu.base.default", "", "W"),
  not_read("gpu.base.min", "", "W"),
  not_read("gpu.base.max", "", "W"),
  not_read("power_smoothing.tmp_floor", "", "W"),
  not_read("power_smoothing.tmp_ceil", "", "W"),
  not_read("power_smoothing.hw_lifetime_remaining_percent", "", "%"),
  not_read("power_smoothing.enabled", "", ""),
  not_read("power_smoothing.delayed_power_smoothing_supported", "", ""),
  not_read("power_smoothing.soc_power_smoothing_enabled", "", ""),
  not_read("power_smoothing.priv_level", "", ""),
  not_read("power_smoothing.imm_ramp_down", "", ""),
  not_read("power_smoothing.max_percent_tmp_floor", "", "%"),
  not_read("power_smoothing.min_percent_tmp_floor", "", "%"),
  not_read("power_smoothing.primary_power_floor", "", "W"),
  not_read("power_smoothing.secondary_power_floor", "", "W"),
  not_read("power_smoothing.min_primary_floor_activation_offset", "", "W"),
  not_read("power_smoothing.min_primary_floor_activation_point", "", "W"),
  not_read("power_smoothing.window_multiplier", "", "ms"),
  not_read("power_smoothing.num_preset_profiles", "", ""),
  not_read("power_smoothing.curr_profile.percent_tmp_floor", "", "%"),
  not_read("power_smoothing.curr_profile.ramp_up_rate", "", "W/s"),
  not_read("power_smoothing.curr_profile.ramp_down_rate", "", "W/s"),
  not_read("power_smoothing.curr_profile.ramp_down_hysteresis", "", "ms"),
  not_read("power_smoothing.curr_profile.secondary_power_floor", "", "W"),
  not_read("power_smoothing.curr_profile.primary_floor_act_window_multiplier", "", ""),
  not_read("power_smoothing.curr_profile.primary_floor_tar_window_multiplier", "", ""),
  not_read("power_smoothing.curr_profile.primary_floor_act_offset", "", "W"),
  not_read("power_smoothing.active_profile", "", ""),
  not_read("power_smoothing.admin_override.percent_tmp_floor", "", "%"),
  not_read("power_smoothing.admin_override.ramp_up_rate", "", "W/s"),
  not_read("power_smoothing.admin_override.ramp_down_rate", "", "W/s"),
  not_read("power_smoothing.admin_override.ramp_down_hysteresis", "", "ms"),
  not_read("power_smoothing.admin_override.secondary_power_floor", "", "W"),
  not_read("power_smoothing.admin_override.primary_floor_act_window_multiplier", "", ""),
  not_read("power_smoothing.admin_override.primary_floor_tar_window_multiplier", "", ""),
  not_read("power_smoothing.admin_override.primary_floor_act_offset", "", "W"),
  not_read("bbx.time_run", "", "seconds"),
};
// clang-format on

}  // namespace

std::span<const QueryField> query_fields() { return kFields; }

}  // namespace tracefire::monitor
