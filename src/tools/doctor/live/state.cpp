// SPDX-License-Identifier: Apache-2.0
//
// The state of a running machine: NVML, the kernel's log, modes of device nodes.
#include <dlfcn.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "backends/nvidia/nvml_api.h"
#include "tools/doctor/live/child.h"
#include "tools/doctor/live/live.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr int kNvmlSeconds = 4;

struct Row {
  std::vector<std::string> names, values;
  void add(const std::string& name, const std::string& value) {
    names.push_back(name);
    values.push_back(replace_all(value, ",", " "));
  }
};

/// What NVML tells of one GPU, under the names that nvidia-smi gives them.
Row gpu_row(const nvidia::NvmlApi& api, unsigned index, nvidia::NvmlDevice device,
            const std::string& driver) {
  Row row;
  char text[128] = "";
  row.add("index", std::to_string(index));
  if (api.nvmlDeviceGetName(device, text, sizeof text) == 0) row.add("name", text);
  if (api.nvmlDeviceGetUUID(device, text, sizeof text) == 0) row.add("uuid", text);
  row.add("driver_version", driver);
  nvidia::NvmlPci pci{};
  if (api.nvmlDeviceGetPciInfo_v3 != nullptr && api.nvmlDeviceGetPciInfo_v3(device, &pci) == 0)
    row.add("pci.bus_id", pci.bus_id);
  int major = 0, minor = 0;
  if (api.nvmlDeviceGetCudaComputeCapability != nullptr &&
      api.nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == 0)
    row.add("compute_cap", std::to_string(major) + "." + std::to_string(minor));
  nvidia::NvmlMemory memory{};
  if (api.nvmlDeviceGetMemoryInfo(device, &memory) == 0) {
    row.add("memory.total", std::to_string(memory.total >> 20));
    row.add("memory.used", std::to_string(memory.used >> 20));
  }
  int mode = 0;
  if (api.nvmlDeviceGetComputeMode != nullptr && api.nvmlDeviceGetComputeMode(device, &mode) == 0)
    row.add("compute_mode", mode == 1 || mode == 3 ? "Exclusive_Process"
                            : mode == 2            ? "Prohibited"
                                                   : "Default");
  auto number = [&](const char* name, int (*get)(nvidia::NvmlDevice, unsigned*)) {
    unsigned value = 0;
    if (get != nullptr && get(device, &value) == 0) row.add(name, std::to_string(value));
  };
  number("pcie.link.gen.current", api.nvmlDeviceGetCurrPcieLinkGeneration);
  number("pcie.link.gen.max", api.nvmlDeviceGetMaxPcieLinkGeneration);
  number("pcie.link.width.current", api.nvmlDeviceGetCurrPcieLinkWidth);
  number("pcie.link.width.max", api.nvmlDeviceGetMaxPcieLinkWidth);
  nvidia::NvmlUtilization load{};
  if (api.nvmlDeviceGetUtilizationRates != nullptr &&
      api.nvmlDeviceGetUtilizationRates(device, &load) == 0)
    row.add("utilization.gpu", std::to_string(load.gpu));
  auto watts = [&](const char* name, int (*get)(nvidia::NvmlDevice, unsigned*)) {
    unsigned value = 0;
    if (get != nullptr && get(device, &value) == 0)
      row.add(name, std::to_string(value / 1000) + "." + std::to_string(value / 100 % 10));
  };
  watts("power.draw", api.nvmlDeviceGetPowerUsage);
  watts("power.limit", api.nvmlDeviceGetEnforcedPowerLimit);
  uint64_t reasons = 0;
  if (api.nvmlDeviceGetCurrentClocksThrottleReasons != nullptr &&
      api.nvmlDeviceGetCurrentClocksThrottleReasons(device, &reasons) == 0)
    for (const auto& [name, bit] : {std::pair<const char*, uint64_t>{"sw_power_cap", 0x4},
                                    {"hw_slowdown", 0x8},
                                    {"sw_thermal_slowdown", 0x20},
                                    {"hw_thermal_slowdown", 0x40},
                                    {"hw_power_brake_slowdown", 0x80}})
      row.add(std::string("clocks_event_reasons.") + name,
              (reasons & bit) != 0 ? "Active" : "Not Active");
  int persistence = 0;
  if (api.nvmlDeviceGetPersistenceMode != nullptr &&
      api.nvmlDeviceGetPersistenceMode(device, &persistence) == 0)
    row.add("persistence_mode", persistence != 0 ? "Enabled" : "Disabled");
  unsigned current = 0, pending = 0;
  if (api.nvmlDeviceGetMigMode != nullptr &&
      api.nvmlDeviceGetMigMode(device, &current, &pending) == 0)
    row.add("mig.mode.current", current != 0 ? "Enabled" : "Disabled");
  unsigned long long errors = 0;
  if (api.nvmlDeviceGetTotalEccErrors != nullptr &&
      api.nvmlDeviceGetTotalEccErrors(device, 1, 0, &errors) == 0)
    row.add("ecc.errors.uncorrected.volatile.total", std::to_string(errors));
  return row;
}

/// Functions that only newer drivers have.
struct NvmlExtras {
  int (*remapped_rows)(nvidia::NvmlDevice, unsigned* corrected, unsigned* uncorrected,
                       unsigned* pending, unsigned* failed) = nullptr;
  int (*retired_pending)(nvidia::NvmlDevice, int* pending) = nullptr;
  int (*most_instances)(nvidia::NvmlDevice, unsigned* count) = nullptr;
  int (*instance)(nvidia::NvmlDevice, unsigned index, nvidia::NvmlDevice* device) = nullptr;

  explicit NvmlExtras(void* handle) {
    load(handle, "nvmlDeviceGetRemappedRows", &remapped_rows);
    load(handle, "nvmlDeviceGetRetiredPagesPendingStatus", &retired_pending);
    load(handle, "nvmlDeviceGetMaxMigDeviceCount", &most_instances);
    load(handle, "nvmlDeviceGetMigDeviceHandleByIndex", &instance);
  }
  template <class F>
  static void load(void* handle, const char* name, F* function) {
    *function = reinterpret_cast<F>(::dlsym(handle, name));
  }
};

/// What nvidia-smi -q tells besides: bad memory that waits for a reset, highest clocks.
void add_extras(const nvidia::NvmlApi& api, const NvmlExtras& extras, nvidia::NvmlDevice device,
                Row* row) {
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (extras.remapped_rows != nullptr &&
      extras.remapped_rows(device, &corrected, &uncorrected, &pending, &failed) == 0) {
    row->add("remapped_rows.pending", pending != 0 ? "Yes" : "No");
    row->add("remapped_rows.failure", failed != 0 ? "Yes" : "No");
  }
  int waiting = 0;
  if (extras.retired_pending != nullptr && extras.retired_pending(device, &waiting) == 0)
    row->add("retired_pages.pending", waiting != 0 ? "Yes" : "No");
  for (const auto& [name, clock] :
       {std::pair<const char*, int>{"clocks.max.sm", 1}, {"clocks.max.memory", 2}}) {
    unsigned megahertz = 0;
    if (api.nvmlDeviceGetMaxClockInfo != nullptr &&
        api.nvmlDeviceGetMaxClockInfo(device, clock, &megahertz) == 0)
      row->add(name, std::to_string(megahertz));
  }
}

/// Lines as those of nvidia-smi -L.
std::string instance_lines(const nvidia::NvmlApi& api, const NvmlExtras& extras, unsigned index,
                           nvidia::NvmlDevice device) {
  char name[128] = "", uuid[128] = "";
  api.nvmlDeviceGetName(device, name, sizeof name);
  api.nvmlDeviceGetUUID(device, uuid, sizeof uuid);
  std::string out =
      "GPU " + std::to_string(index) + ": " + name + " (UUID: " + std::string(uuid) + ")\n";
  unsigned most = 0;
  if (extras.instance == nullptr || extras.most_instances == nullptr ||
      extras.most_instances(device, &most) != 0)
    return out;
  for (unsigned i = 0; i < std::min(most, 16u); ++i) {
    nvidia::NvmlDevice part = nullptr;
    if (extras.instance(device, i, &part) != 0 || part == nullptr ||
        api.nvmlDeviceGetUUID(part, uuid, sizeof uuid) != 0)
      continue;
    out += "  MIG device " + std::to_string(i) + ": (UUID: " + uuid + ")\n";
  }
  return out;
}

/// Runs in the child: sections "query", "apps", "list" and "error", each begun by a line "== NAME".
std::string ask_nvml(const std::string& path) {
  nvidia::OpenLibrary library;
  library.library = nvidia::Library::kNvml;
  library.path = path;
  library.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) return std::string("== error\n") + ::dlerror() + "\n";
  Result<nvidia::NvmlApi> loaded = nvidia::load_nvml_api(library);
  if (!loaded.ok()) return "== error\n" + loaded.status().message() + "\n";
  const nvidia::NvmlApi& api = *loaded;
  int code = api.nvmlInit_v2();
  if (code != 0)
    return "== error\nFailed to initialize NVML: " +
           std::string(code == nvidia::kNvmlNoPermission ? "Insufficient Permissions"
                                                         : api.describe(code)) +
           "\n";
  char driver[96] = "";
  api.nvmlSystemGetDriverVersion(driver, sizeof driver);
  unsigned count = 0;
  if (api.nvmlDeviceGetCount_v2(&count) != 0) count = 0;
  std::string out = "== query\n", apps = "== apps\n", list = "== list\n", errors;
  const NvmlExtras extras(library.handle);
  if (count == 0) errors = "No devices were found\n";
  for (unsigned i = 0; i < std::min(count, 64u); ++i) {
    nvidia::NvmlDevice device = nullptr;
    code = api.nvmlDeviceGetHandleByIndex_v2(i, &device);
    if (code != 0) {
      errors += "Unable to determine the device handle for GPU " + std::to_string(i) + ": " +
                api.describe(code) + "\n";
      continue;
    }
    Row row = gpu_row(api, i, device, driver);
    add_extras(api, extras, device, &row);
    list += instance_lines(api, extras, i, device);
    out += join(row.names, ", ") + "\n" + join(row.values, ", ") + "\n";
    nvidia::NvmlProcess processes[128];
    unsigned used = 128;
    if (api.nvmlDeviceGetComputeRunningProcesses_v3 == nullptr ||
        api.nvmlDeviceGetComputeRunningProcesses_v3(device, &used, processes) != 0)
      continue;
    char uuid[96] = "";
    api.nvmlDeviceGetUUID(device, uuid, sizeof uuid);
    for (unsigned k = 0; k < std::min(used, 128u); ++k)
      apps += "pid, process_name, used_gpu_memory, gpu_uuid\n" + std::to_string(processes[k].pid) +
              ", process, " +
              (processes[k].used_memory == ~0ull ? "0"
                                                 : std::to_string(processes[k].used_memory >> 20)) +
              ", " + uuid + "\n";
  }
  api.nvmlShutdown();
  return out + apps + list + (errors.empty() ? "" : "== error\n" + errors);
}

std::string section(const std::string& text, const std::string& name) {
  size_t at = text.find("== " + name + "\n");
  if (at == text.npos) return "";
  at += name.size() + 4;
  size_t end = text.find("== ", at);
  return text.substr(at, end == text.npos ? text.npos : end - at);
}

void read_nodes(const Root& root, Machine* m) {
  for (std::string path : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"}) {
    FileFacts facts = root.facts(path);
    if (facts.type != FileType::kDevice || ::access(path.c_str(), R_OK | W_OK) == 0 ||
        errno != EACCES)
      continue;
    std::string group;
    std::string groups = root.read("/etc/group", 1 << 20).value_or("");
    for (std::string_view line : lines_of(groups)) {
      std::vector<std::string_view> fields = split(line, ':');
      if (fields.size() >= 3 && fields[2] == std::to_string(facts.gid))
        group = std::string(fields[0]);
    }
    char mode[8];
    std::snprintf(mode, sizeof mode, "%03o", static_cast<unsigned>(facts.mode & 0777));
    m->nodes_denied = path + " has mode " + mode + " and group " +
                      (group.empty() ? std::to_string(facts.gid) : group) + "; this user (uid " +
                      std::to_string(::geteuid()) + ") may not open it.";
    if (!group.empty() && group != "root") m->node_group = group;
  }
}

}  // namespace

void add_live_facts(const Root& root, const Data& data, Machine* m) {
  utsname names{};
  if (::uname(&names) == 0) {
    m->kernel = names.release;
    m->arch = names.machine;
  }
  read_nodes(root, m);
  std::string log(1 << 20, '\0');
  int size = ::klogctl(3, log.data(), static_cast<int>(log.size()));
  if (size > 0)
    m->dmesg = log.substr(0, static_cast<size_t>(size));
  else if (int problem = errno; m->gpu == Presence::kPresent) {
    m->dmesg = kernel_log(root);
    if (m->dmesg.empty()) root.note_unread("The kernel's log", std::strerror(problem));
  }
  m->smi_name = "NVML";
  const std::string& path = m->libnvml.path;
  if (path.empty() || m->gpu != Presence::kPresent) return;
  if (::geteuid() == 0 && !trusted_file(path)) {
    root.note_unread(path, "another user could have changed it, so it is not loaded as root");
    return;
  }
  ChildResult child = run_child([&] { return ask_nvml(path); }, kNvmlSeconds);
  if (!child.ok())
    root.note_unread("NVML", child.trouble(kNvmlSeconds).empty() ? "its process failed"
                                                                 : child.trouble(kNvmlSeconds));
  m->smi_text = section(child.output, "error");
  m->smi_rows = parse_smi_csv(section(child.output, "query"));
  m->smi_apps = parse_smi_csv(section(child.output, "apps"));
  std::string list = section(child.output, "list");
  m->has_smi_list = !trim(list).empty();
  m->smi_list = parse_smi_list(list);
  // The process's own name is worth more than NVML's number.
  for (SmiRow& app : m->smi_apps)
    if (std::optional<std::string> name = root.read("/proc/" + app["pid"] + "/comm", 64))
      app["process_name"] = std::string(trim(*name));
  join_gpus(data, m);
}

}  // namespace tracefire::doctor
