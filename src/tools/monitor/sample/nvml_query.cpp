// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/sample/nvml_query.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iterator>

namespace tracefire::monitor {
namespace {

using nvidia::NvmlDevice;

/// Versions of NVML's structures: their size, and a number in the highest byte.
constexpr unsigned versioned(size_t size, unsigned number) {
  return static_cast<unsigned>(size) | number << 24;
}

struct PciExt {
  unsigned version = versioned(sizeof(PciExt), 1);
  unsigned domain, bus, device, id, subsystem, base_class, sub_class;
  char bus_id[32];
};
struct VersionedNumber {
  unsigned version = versioned(sizeof(VersionedNumber), 1);
  int value = 0;
};
struct SramErrors {
  unsigned version = versioned(sizeof(SramErrors), 1);
  unsigned long long aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity,
      volatile_secded, volatile_corrected, l2, sm, pcie, mcu, other;
  unsigned threshold_exceeded;
};
struct Histogram {
  unsigned max, high, partial, low, none;
};
struct RemappedRows {
  unsigned corrected, corrected_inactive, uncorrected, uncorrected_inactive, pending, failed;
};
struct Fabric {
  unsigned version = versioned(sizeof(Fabric), 2);
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
struct Platform {
  unsigned version = versioned(sizeof(Platform), 2);
  unsigned char guid[16];
  char chassis[16];
  unsigned char slot, tray, host, peer, module;
};
enum Location : int {
  kL1 = 0,
  kL2 = 1,
  kDram = 2,
  kRegisters = 3,
  kTexture = 4,
  kBranchUnit = 6,
  kSram = 7
};
enum PowerScope : unsigned { kModule = 1 };

/// One question about one GPU.
class Question {
 public:
  Question(std::string_view field, const nvidia::OpenLibrary& nvml, NvmlDevice device)
      : field_(field), nvml_(nvml), device_(device) {}

  /// Last part of the field's name: "parity" of "ecc.errors.….sram.parity".
  std::string_view last() const { return field_.substr(field_.rfind('.') + 1); }
  bool has(std::string_view part) const { return field_.find(part) != std::string_view::npos; }

  template <class... Arguments>
  int call(const char* function, Arguments... arguments) const {
    void* address = nvml_.symbol(function);
    if (address == nullptr) return Reading::kNoFunction;
    return reinterpret_cast<int (*)(NvmlDevice, Arguments...)>(address)(device_, arguments...);
  }

  static Answer number(int code, double value) { return {code, "", value}; }
  static Answer text(int code, std::string text) { return {code, std::move(text), 0}; }
  static Answer word(int code, uint64_t which, std::initializer_list<const char*> words) {
    return {code, which < words.size() ? *(words.begin() + which) : "[Unknown Error]", 0};
  }
  static Answer on_off(int code, uint64_t on) { return word(code, on, {"Disabled", "Enabled"}); }
  static Answer hex(int code, int digits, unsigned value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%0*X", digits, value);
    return {code, text, 0};
  }

  template <class T = unsigned, class... Arguments>
  Answer number_of(const char* function, Arguments... arguments) const {
    T value{};
    const int code = call(function, arguments..., &value);
    return number(code, static_cast<double>(value));
  }
  Answer text_of(const char* function) const {
    char text[128] = "";
    const int code = call(function, text, static_cast<unsigned>(sizeof text));
    text[sizeof text - 1] = '\0';
    return {code, text, 0};
  }
  Answer field_value(unsigned id, unsigned scope = 0) const {
    nvidia::NvmlFieldValue value{};
    value.field = id;
    value.scope = scope;
    const int code = call("nvmlDeviceGetFieldValues", 1, &value);
    return number(code != Reading::kOk ? code : value.result, value.as_number());
  }
  /// First or second of two numbers that one function tells: now, and after the next start.
  template <class T>
  Answer either(const char* function, bool second) const {
    T one{};
    T two{};
    const int code = call(function, &one, &two);
    return on_off(code, static_cast<uint64_t>(second ? two : one));
  }

 private:
  const std::string_view field_;
  const nvidia::OpenLibrary& nvml_;
  const NvmlDevice device_;
};

Answer ask_pci(const Question& q) {
  PciExt pci{};
  const int code = q.call("nvmlDeviceGetPciInfoExt", &pci);
  if (q.last() == "baseClass") return Question::hex(code, 1, pci.base_class);
  if (q.last() == "subClass") return Question::hex(code, 1, pci.sub_class);
  nvidia::NvmlPci old{};
  const int old_code = q.call("nvmlDeviceGetPciInfo_v3", &old);
  if (q.last() == "domain") return Question::hex(old_code, 4, old.domain);
  if (q.last() == "bus") return Question::hex(old_code, 2, old.bus);
  if (q.last() == "device") return Question::hex(old_code, 2, old.device);
  const bool sub = q.last() == "sub_device_id";
  return Question::hex(old_code, 8, sub ? old.pci_subsystem_id : old.pci_device_id);
}

Answer ask_inforom(const Question& q) {
  if (q.last() == "img") return q.text_of("nvmlDeviceGetInforomImageVersion");
  if (q.last() == "checksum_validation") {
    return Question::text(q.call("nvmlDeviceValidateInforom"), "valid");
  }
  const int object = q.last() == "oem" ? 0 : q.last() == "ecc" ? 1 : 2;
  char text[64] = "";
  const int code =
      q.call("nvmlDeviceGetInforomVersion", object, text, static_cast<unsigned>(sizeof text));
  text[sizeof text - 1] = '\0';
  return Question::text(code, text);
}

Answer ask_encoder(const Question& q) {
  unsigned sessions = 0;
  unsigned frames = 0;
  unsigned latency = 0;
  const int code = q.call("nvmlDeviceGetEncoderStats", &sessions, &frames, &latency);
  return Question::number(code, q.last() == "sessionCount" ? sessions
                                : q.last() == "averageFps" ? frames
                                                           : latency);
}

Answer ask_engine(const Question& q) {
  unsigned percent = 0;
  unsigned period = 0;
  const int code =
      q.call(q.last() == "jpeg" ? "nvmlDeviceGetJpgUtilization" : "nvmlDeviceGetOfaUtilization",
             &percent, &period);
  return Question::number(code, percent);
}

Answer ask_dram_encryption(const Question& q) {
  VersionedNumber current;
  VersionedNumber pending;
  const int code = q.call("nvmlDeviceGetDramEncryptionMode", &current, &pending);
  return Question::on_off(
      code, static_cast<uint64_t>(q.last() == "pending" ? pending.value : current.value));
}

Answer ask_sram_errors(const Question& q) {
  SramErrors e{};
  const int code = q.call("nvmlDeviceGetSramEccErrorStatus", &e);
  const std::string_view what = q.last();
  if (what == "thresholdExceeded") {
    return Question::word(code, e.threshold_exceeded != 0 ? 1 : 0, {"No", "Yes"});
  }
  const bool now = q.has("volatile");
  const unsigned long long count = what == "parity" ? (now ? e.volatile_parity : e.aggregate_parity)
                                   : what == "secded"
                                       ? (now ? e.volatile_secded : e.aggregate_secded)
                                   : what == "l2"   ? e.l2
                                   : what == "sm"   ? e.sm
                                   : what == "mcu"  ? e.mcu
                                   : what == "pcie" ? e.pcie
                                                    : e.other;
  return Question::number(code, static_cast<double>(count));
}

Answer ask_ecc_errors(const Question& q) {
  if (q.has(".sram.")) return ask_sram_errors(q);
  static constexpr struct {
    std::string_view name;
    Location location;
  } kPlaces[] = {{"device_memory", kDram}, {"dram", kDram},   {"register_file", kRegisters},
                 {"l1_cache", kL1},        {"l2_cache", kL2}, {"texture_memory", kTexture},
                 {"cbu", kBranchUnit},     {"sram", kSram}};
  const int kind = q.has(".uncorrected.") ? 1 : 0;
  const int counter = q.has(".aggregate.") ? 1 : 0;
  for (const auto& place : kPlaces) {
    if (q.last() != place.name) continue;
    return q.number_of<unsigned long long>("nvmlDeviceGetMemoryErrorCounter", kind, counter,
                                           static_cast<int>(place.location));
  }
  return {};
}

/// What clears a fault that the GPU had (NVML_FI_DEV_GET_GPU_RECOVERY_ACTION).
Answer ask_recovery(const Question& q) {
  const Answer action = q.field_value(230);
  return Question::word(action.code, static_cast<uint64_t>(action.value),
                        {"None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"});
}

Answer ask_retired_pages(const Question& q) {
  if (q.last() == "pending") {
    int pending = 0;
    const int code = q.call("nvmlDeviceGetRetiredPagesPendingStatus", &pending);
    return Question::word(code, pending != 0 ? 1 : 0, {"No", "Yes"});
  }
  unsigned count = 0;
  unsigned long long* nowhere = nullptr;
  int code = q.call("nvmlDeviceGetRetiredPages", q.has("double_bit") ? 1 : 0, &count, nowhere);
  if (code == nvidia::kNvmlInsufficientSize) code = Reading::kOk;  // only their number was asked
  return Question::number(code, count);
}

Answer ask_remapped_rows(const Question& q) {
  if (q.has(".histogram.")) {
    Histogram h{};
    const int code = q.call("nvmlDeviceGetRowRemapperHistogram", &h);
    return Question::number(code, q.last() == "max"       ? h.max
                                  : q.last() == "high"    ? h.high
                                  : q.last() == "partial" ? h.partial
                                  : q.last() == "low"     ? h.low
                                                          : h.none);
  }
  RemappedRows rows{};
  const int code = q.call("nvmlDeviceGetRemappedRows_v2", &rows);
  return Question::number(code, q.last() == "correctable_inactive" ? rows.corrected_inactive
                                                                   : rows.uncorrected_inactive);
}

Answer ask_limits(const Question& q) {
  if (!q.has("module.")) {
    if (q.last() == "limit") return q.number_of("nvmlDeviceGetPowerManagementLimit");
    unsigned least = 0;
    unsigned most = 0;
    const int code = q.call("nvmlDeviceGetPowerManagementLimitConstraints", &least, &most);
    return Question::number(code, least);
  }
  const unsigned id = q.has("draw.average")    ? nvidia::kNvmlFieldPowerAverage
                      : q.has("draw.instant")  ? nvidia::kNvmlFieldPowerInstant
                      : q.has("min_limit")     ? 187u
                      : q.has("max_limit")     ? 188u
                      : q.has("default_limit") ? 189u
                      : q.has("enforced")      ? 190u
                                               : 192u;
  return q.field_value(id, kModule);
}

Answer ask_application_clocks(const Question& q) {
  const int clock = q.last() == "memory" ? nvidia::kNvmlClockMemory : nvidia::kNvmlClockGraphics;
  return q.number_of(q.has("default_applications") ? "nvmlDeviceGetDefaultApplicationsClock"
                                                   : "nvmlDeviceGetApplicationsClock",
                     clock);
}

Answer ask_protected_memory(const Question& q) {
  nvidia::NvmlMemory memory{};
  const int code = q.call("nvmlDeviceGetConfComputeProtectedMemoryUsage", &memory);
  return Question::number(code, static_cast<double>(q.last() == "total"  ? memory.total
                                                    : q.last() == "used" ? memory.used
                                                                         : memory.free));
}

Answer ask_fabric(const Question& q) {
  Fabric f{};
  int code = q.call("nvmlDeviceGetGpuFabricInfoV", &f);
  if (code == Reading::kOk && f.state == 0) code = nvidia::kNvmlNotSupported;
  if (q.last() == "state") {
    return Question::word(code, f.state, {"", "Not Started", "In Progress", "Completed"});
  }
  if (q.last() == "status") {
    return Question::text(code, f.status == Reading::kOk ? "Success" : "Unknown Error");
  }
  if (q.last() == "cliqueId") return Question::number(code, f.clique);
  char text[40] = "";
  size_t at = 0;
  for (size_t i = 0; i < sizeof f.cluster; ++i) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    at += static_cast<size_t>(
        std::snprintf(text + at, sizeof text - at, dash ? "-%02x" : "%02x", f.cluster[i]));
  }
  return Question::text(code, text);
}

Answer ask_platform(const Question& q) {
  Platform p{};
  const int code = q.call("nvmlDeviceGetPlatformInfo", &p);
  const std::string_view what = q.last();
  if (what == "chassis_serial_number") {
    return Question::text(code, std::string(p.chassis, strnlen(p.chassis, sizeof p.chassis)));
  }
  if (what == "peer_type") {
    return Question::word(code, p.peer, {"Direct Connected", "Switch Connected"});
  }
  if (what == "gpu_fabric_guid") {
    char text[24] = "0x";
    for (int i = 0; i < 8; ++i) std::snprintf(text + 2 + 2 * i, 3, "%02X", p.guid[i]);
    return Question::text(code, text);
  }
  return Question::number(code, what == "slot_number"  ? p.slot
                                : what == "tray_index" ? p.tray
                                : what == "host_id"    ? p.host
                                                       : p.module);
}

Answer ask_reasons(const Question& q) {
  unsigned long long bits = 0;
  int code = q.call("nvmlDeviceGetSupportedClocksEventReasons", &bits);
  if (code == Reading::kNoFunction) {
    code = q.call("nvmlDeviceGetSupportedClocksThrottleReasons", &bits);
  }
  char text[24];
  std::snprintf(text, sizeof text, "0x%016llX", bits);
  return Question::text(code, text);
}

Answer ask_reason_time(const Question& q) {
  struct {
    unsigned long long reference = 0, nanoseconds = 0;
  } time;
  const int policy = q.last() == "sw_power_cap" ? 0 : q.last() == "sync_boost" ? 2 : 1;
  const int code = q.call("nvmlDeviceGetViolationStatus", policy, &time);
  return Question::number(code, static_cast<double>(time.nanoseconds / 1000));
}

/// By exact name, or by the beginning where the name ends in '.'.
constexpr struct {
  std::string_view name;
  Answer (*ask)(const Question& q);
} kQuestions[] = {
    {"pci.", ask_pci},
    {"pcie.link.gen.gpumax",
     [](const Question& q) { return q.number_of("nvmlDeviceGetGpuMaxPcieLinkGeneration"); }},
    {"addressing_mode",
     [](const Question& q) {
       VersionedNumber mode;
       const int code = q.call("nvmlDeviceGetAddressingMode", &mode);
       return Question::word(code, static_cast<uint64_t>(mode.value), {"None", "HMM", "ATS"});
     }},
    {"accounting.mode",
     [](const Question& q) {
       int on = 0;
       const int code = q.call("nvmlDeviceGetAccountingMode", &on);
       return Question::on_off(code, static_cast<uint64_t>(on));
     }},
    {"accounting.buffer_size",
     [](const Question& q) { return q.number_of("nvmlDeviceGetAccountingBufferSize"); }},
    {"inforom.", ask_inforom},
    {"gom.",
     [](const Question& q) {
       int current = 0;
       int pending = 0;
       const int code = q.call("nvmlDeviceGetGpuOperationMode", &current, &pending);
       const int mode = q.last() == "pending" ? pending : current;
       return Question::word(code, static_cast<uint64_t>(mode),
                             {"All On", "Compute", "Low Double Precision"});
     }},
    {"gpu_recovery_action", ask_recovery},
    {"clocks_event_reasons.supported", ask_reasons},
    {"clocks_event_reasons_counters.", ask_reason_time},
    {"utilization.", ask_engine},
    {"encoder.stats.", ask_encoder},
    {"dramEncryption.", ask_dram_encryption},
    {"ecc.mode.pending",
     [](const Question& q) { return q.either<int>("nvmlDeviceGetEccMode", true); }},
    {"ecc.errors.", ask_ecc_errors},
    {"retired_pages.", ask_retired_pages},
    {"remapped_rows.", ask_remapped_rows},
    {"temperature.gpu.tlimit",
     [](const Question& q) {
       VersionedNumber margin;
       const int code = q.call("nvmlDeviceGetMarginTemperature", &margin);
       return Question::number(code, margin.value);
     }},
    {"power.management",
     [](const Question& q) {
       int on = 0;
       const int code = q.call("nvmlDeviceGetPowerManagementMode", &on);
       return Question::word(code, on != 0 ? 1 : 0, {"Disabled", "Enabled"});
     }},
    {"power.", ask_limits},
    {"module.", ask_limits},
    {"clocks.applications.", ask_application_clocks},
    {"clocks.default_applications.", ask_application_clocks},
    {"mig.mode.pending",
     [](const Question& q) { return q.either<unsigned>("nvmlDeviceGetMigMode", true); }},
    {"gsp.mode.",
     [](const Question& q) {
       return q.either<unsigned>("nvmlDeviceGetGspFirmwareMode", q.last() == "default");
     }},
    {"c2c.mode",
     [](const Question& q) {
       unsigned info[4] = {};  // more room than the one number it needs today
       const int code = q.call("nvmlDeviceGetC2cModeInfoV", &info[0]);
       return Question::on_off(code, info[0]);
     }},
    {"protected_memory.", ask_protected_memory},
    {"fabric.", ask_fabric},
    {"platform.", ask_platform},
};

}  // namespace

Answer ask_nvml(std::string_view field, const nvidia::OpenLibrary& nvml, NvmlDevice device) {
  const auto found = std::find_if(std::begin(kQuestions), std::end(kQuestions), [&](const auto& q) {
    return q.name.back() == '.' ? field.substr(0, q.name.size()) == q.name : field == q.name;
  });
  if (found == std::end(kQuestions)) return Answer{};
  return found->ask(Question(field, nvml, device));
}

}  // namespace tracefire::monitor
