// SPDX-License-Identifier: Apache-2.0
//
// Facts of what tools and the kernel printed.
#include "tools/doctor/derive.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"
#include "tools/doctor/visible.h"

namespace tracefire::doctor {

namespace {

double number_of(const std::string& text) {
  try {
    size_t used = 0;
    double value = std::stod(text, &used);
    return used == 0 ? -1 : value;
  } catch (const std::exception&) {
    return -1;
  }
}

/// The rows of the GPUs that a process of this environment sees.
std::vector<const SmiRow*> visible_rows(const Machine& m) {
  std::vector<const SmiRow*> out;
  if (VisibleDevices visible = visible_devices(m); visible.set)
    for (size_t i : visible.gpus)
      if (!m.gpus[i].measured.empty()) out.push_back(&m.gpus[i].measured);
  if (out.empty())
    for (const SmiRow& row : m.smi_rows) out.push_back(&row);
  return out;
}

std::string gpu_words(const SmiRow& row) {
  std::string index = cell(row, "index");
  return "GPU " + (index.empty() ? "0" : index) +
         (cell(row, "name").empty() ? "" : " (" + cell(row, "name") + ")");
}

/// The process that holds most of a GPU's memory.
const SmiRow* biggest_holder(const Machine& m, const SmiRow& gpu) {
  const SmiRow* best = nullptr;
  for (const SmiRow& app : m.smi_apps) {
    std::string uuid = cell(app, "gpu_uuid"), own = cell(gpu, "uuid");
    if (!uuid.empty() && !own.empty() && uuid != own) continue;
    if (uuid.empty() && app.count("index") != 0 && cell(app, "index") != cell(gpu, "index"))
      continue;
    if (best == nullptr ||
        number_of(cell(app, "used_gpu_memory")) > number_of(cell(*best, "used_gpu_memory")))
      best = &app;
  }
  return best;
}

void memory_facts(const Machine& m, Facts* f) {
  int held = 0, seen = 0;
  for (const SmiRow* row : visible_rows(m)) {
    double total = number_of(cell(*row, "memory.total")),
           used = number_of(cell(*row, "memory.used"));
    if (total <= 0 || used < 0) continue;
    ++seen;
    if (used / total < 0.9) continue;
    const SmiRow* holder = biggest_holder(m, *row);
    std::string proof = gpu_words(*row) + " has " + cell(*row, "memory.used") + " of " +
                        cell(*row, "memory.total") + " MiB in use";
    if (holder != nullptr) {
      f->set("held.pid", cell(*holder, "pid"));
      proof += "; process " + cell(*holder, "pid") + " (" + cell(*holder, "process_name") +
               ") holds " + cell(*holder, "used_gpu_memory") + " MiB";
    }
    if (++held == 1) f->set("held", "some", proof + ".");
  }
  if (held > 0 && held == seen) f->set("held", "all", f->evidence("held"));
}

void mode_facts(const Machine& m, Facts* f) {
  for (const SmiRow* row : visible_rows(m)) {
    std::string mode = cell(*row, "compute_mode");
    const SmiRow* holder = biggest_holder(m, *row);
    if (contains(mode, "Exclusive") || contains(mode, "Prohibited")) {
      f->set(contains(mode, "Prohibited") ? "mode.prohibited" : "mode.exclusive", mode,
             gpu_words(*row) + " is in compute mode " + mode + ".");
      f->set("mode.gpu", cell(*row, "index").empty() ? "0" : cell(*row, "index"));
      if (holder != nullptr)
        f->set("mode.pid", cell(*holder, "pid"),
               "Process " + cell(*holder, "pid") + " (" + cell(*holder, "process_name") +
                   ") already uses it.");
    }
    if (cell(*row, "mig.mode.current") == "Enabled")
      f->set("mig.on", "yes", gpu_words(*row) + " has MIG enabled.");
  }
  for (const SmiEntry& entry : m.smi_q) {
    if (entry.key != "Compute Mode" || f->has("mode.exclusive")) continue;
    if (contains(entry.value, "Exclusive"))
      f->set("mode.exclusive", entry.value,
             "nvidia-smi -q says Compute Mode: " + entry.value + ".");
    if (contains(entry.value, "Prohibited"))
      f->set("mode.prohibited", entry.value,
             "nvidia-smi -q says Compute Mode: " + entry.value + ".");
  }
  if (m.smi_table.exclusive && !f->has("mode.exclusive"))
    f->set("mode.exclusive", "Exclusive_Process",
           "nvidia-smi shows compute mode E. Process (Exclusive_Process).");
  if (m.smi_table.prohibited && !f->has("mode.prohibited"))
    f->set("mode.prohibited", "Prohibited", "nvidia-smi shows compute mode Prohibited.");
  if (f->has("mode.exclusive") || f->has("mode.prohibited")) {
    if (!f->has("mode.gpu")) f->set("mode.gpu", "0");
    if (!f->has("mode.pid") && !m.smi_table.process_ids.empty())
      f->set("mode.pid", m.smi_table.process_ids[0],
             "Process " + m.smi_table.process_ids[0] + " already uses it.");
    if (!f->has("mode.pid"))
      for (const SmiEntry& entry : m.smi_q)
        if (entry.key == "Process ID")
          f->set("mode.pid", entry.value, "Process " + entry.value + " already uses it.");
  }
  if (m.smi_table.mig_enabled) f->set("mig.on", "yes", "nvidia-smi shows MIG M. Enabled.");
  for (const SmiEntry& entry : m.smi_q)
    if (contains(entry.section, "MIG Mode") && entry.key == "Current" && entry.value == "Enabled")
      f->set("mig.on", "yes", "nvidia-smi -q says MIG Mode Current: Enabled.");
  bool none = (m.has_smi_list && m.smi_list.mig_uuids.empty()) || m.smi_table.no_mig_devices;
  f->flag("mig.none", f->has("mig.on") && none,
          m.smi_table.no_mig_devices ? "nvidia-smi says: No MIG devices found."
                                     : "nvidia-smi -L lists no MIG device.");
}

void link_facts(const Machine& m, Facts* f) {
  for (const SmiRow& row : m.smi_rows) {
    double load = number_of(cell(row, "utilization.gpu"));
    double gen = number_of(cell(row, "pcie.link.gen.current")),
           gen_max = number_of(cell(row, "pcie.link.gen.max"));
    double width = number_of(cell(row, "pcie.link.width.current")),
           width_max = number_of(cell(row, "pcie.link.width.max"));
    // At rest a link trains down to save power: only what is seen under load counts.
    bool narrow = width > 0 && width < width_max && load > 0;
    bool slow = gen > 0 && gen < gen_max && load >= 10;
    if (narrow || slow)
      f->set("pcie.low", "yes",
             gpu_words(row) + " runs its PCIe link at generation " +
                 cell(row, "pcie.link.gen.current") + " of " + cell(row, "pcie.link.gen.max") +
                 ", width x" + cell(row, "pcie.link.width.current") + " of x" +
                 cell(row, "pcie.link.width.max") + ", at " + cell(row, "utilization.gpu") +
                 " % load.");
    else if (gen > 0 && gen < gen_max)
      f->set("pcie.idle", "yes",
             gpu_words(row) + " runs its PCIe link at generation " +
                 cell(row, "pcie.link.gen.current") + " of " + cell(row, "pcie.link.gen.max") +
                 " while at rest, which saves power.");
  }
  std::string off;
  int headless = 0;
  for (const SmiRow& row : m.smi_rows) {
    if (cell(row, "persistence_mode") == "Disabled" || cell(row, "persistence_mode") == "Off")
      off = gpu_words(row);
    if (cell(row, "display_active") == "Disabled" || cell(row, "display_mode") == "Disabled")
      ++headless;
  }
  f->flag("persistence.off", !off.empty(), off + " has persistence mode off.");
  f->flag("headless", headless > 0 && headless == static_cast<int>(m.smi_rows.size()));
  f->flag("many_gpus", m.gpus.size() >= 2);
}

void throttle_facts(const Machine& m, Facts* f) {
  double draw = -1, limit = -1;
  std::string draw_text, limit_text;
  std::vector<std::string> active;
  bool soft_cap = false;
  for (const SmiEntry& entry : m.smi_q) {
    std::string value = entry.value.substr(0, entry.value.find(' '));
    bool is_draw = contains(entry.key, "Power Draw") || entry.key == "Draw";
    if (is_draw && draw < 0 && number_of(value) >= 0) draw = number_of(value), draw_text = value;
    bool is_limit = entry.key == "Current Power Limit" || entry.key == "Power Limit" ||
                    entry.key == "Enforced Power Limit" || entry.key == "Requested Power Limit";
    if (is_limit && limit < 0 && number_of(value) >= 0)
      limit = number_of(value), limit_text = value;
    if (entry.value != "Active") continue;
    if (entry.key == "HW Slowdown" || entry.key == "HW Thermal Slowdown" ||
        entry.key == "HW Power Brake Slowdown" || entry.key == "SW Thermal Slowdown")
      active.push_back(entry.key);
    if (entry.key == "SW Power Cap") soft_cap = true;
  }
  for (const SmiRow& row : m.smi_rows) {
    if (draw < 0 && number_of(cell(row, "power.draw")) >= 0)
      draw = number_of(draw_text = cell(row, "power.draw"));
    if (limit < 0 && number_of(cell(row, "power.limit")) >= 0)
      limit = number_of(limit_text = cell(row, "power.limit"));
    for (std::string prefix : {"clocks_throttle_reasons.", "clocks_event_reasons."}) {
      for (std::string reason :
           {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"})
        if (cell(row, prefix + reason) == "Active") active.push_back(reason);
      if (cell(row, prefix + "sw_power_cap") == "Active") soft_cap = true;
    }
  }
  std::string power =
      draw >= 0 && limit > 0 ? " Power draw is " + draw_text + " W of " + limit_text + " W." : "";
  bool far_below = draw >= 0 && limit > 0 && draw < 0.75 * limit;
  if (!active.empty())
    f->set("throttle", join(active, ", "),
           m.smi_name + " says Active: " + join(active, ", ") + "." + power);
  else if (soft_cap && far_below)
    f->set("throttle", "SW Power Cap",
           m.smi_name + " says SW Power Cap: Active far below the limit." + power);
  else if (soft_cap)
    f->set(
        "throttle.normal", "yes",
        m.smi_name + " says SW Power Cap: Active, which is normal near the power limit." + power);
}

void memory_error_facts(const Machine& m, Facts* f) {
  bool volatile_section = false;
  for (const SmiEntry& entry : m.smi_q) {
    volatile_section =
        contains(entry.section, "Volatile") ||
        (contains(entry.section, "ECC Errors") && !contains(entry.section, "Aggregate"));
    bool uncorrectable = contains(entry.key, "Uncorrectable") ||
                         contains(entry.section + entry.key, "Double Bit") ||
                         entry.key == "Double Bit";
    bool counts = contains(entry.section, "ECC") || contains(entry.section, "Volatile");
    if (uncorrectable && counts && volatile_section && number_of(entry.value) > 0)
      f->set("ecc.volatile", entry.value,
             "nvidia-smi -q counts " + entry.value +
                 " uncorrectable ECC errors since the driver was loaded (" + entry.key + ").");
    bool remapped =
        contains(entry.section, "Remapped Rows") || contains(entry.section, "Retired Pages");
    if (remapped && contains(entry.key, "Pending") &&
        (entry.value == "Yes" || number_of(entry.value) > 0))
      f->set(
          "ecc.pending", "yes",
          "nvidia-smi -q says that rows or pages of memory are to be taken out of use (Pending: " +
              entry.value + ").");
    if (remapped && contains(entry.key, "Remapping Failure") && entry.value == "Yes")
      f->set("ecc.failed", "yes", "nvidia-smi -q says Remapping Failure Occurred: Yes.");
    if (contains(entry.section, "vGPU Software Licensed") && entry.key == "License Status" &&
        contains(entry.value, "Unlicensed"))
      f->set("vgpu.unlicensed", "yes", "nvidia-smi -q says License Status: " + entry.value + ".");
    if (contains(entry.section, "Fabric") && entry.key == "State" &&
        (contains(entry.value, "In Progress") || contains(entry.value, "Not Started")))
      f->set("fabric.state", entry.value, "nvidia-smi -q says Fabric State: " + entry.value + ".");
  }
  for (const SmiRow& row : m.smi_rows)
    for (const auto& [key, value] : row)
      if (contains(key, "ecc.errors.uncorrected.volatile.total") && number_of(value) > 0)
        f->set("ecc.volatile", value,
               gpu_words(row) + " counts " + value +
                   " uncorrectable ECC errors since the driver was loaded.");
  for (const SmiRow& row : m.smi_rows) {
    for (std::string key : {"remapped_rows.pending", "retired_pages.pending"})
      if (cell(row, key) == "Yes" || number_of(cell(row, key)) > 0)
        f->set("ecc.pending", "yes",
               gpu_words(row) + " has memory that waits to be taken out of use (" + key + ").");
    if (cell(row, "remapped_rows.failure") == "Yes" ||
        number_of(cell(row, "remapped_rows.failure")) > 0)
      f->set("ecc.failed", "yes", gpu_words(row) + " says that remapping bad memory failed.");
  }
  for (const Gpu& gpu : m.gpus)
    f->flag("vgpu", gpu.name.rfind("GRID ", 0) == 0 || contains(gpu.name, " GRID "),
            "The GPU is the virtual GPU " + gpu.name + ".");
}

void dmesg_facts(const Machine& m, const Data& data, Facts* f) {
  auto say = [&](const std::string& key, std::string_view line) {
    if (!f->has(key))
      f->set(key, "yes", "The kernel's log says: " + std::string(trim(line.substr(0, 300))));
  };
  for (std::string_view line : lines_of(m.dmesg, 400000)) {
    if (contains(line, "Loading of unsigned module is rejected") ||
        contains(line, "Key was rejected by service") ||
        contains(line, "Loading of module with unavailable key is rejected") ||
        (contains(line, "nvidia: module verification failed") && f->has("secure_boot")) ||
        contains(line, "Lockdown: modprobe: unsigned module loading"))
      say("dmesg.unsigned", line);
    if (contains(line, "requires use of the NVIDIA open kernel modules"))
      say("dmesg.open_required", line);
    if (contains(line, "RmInitAdapter failed")) say("dmesg.rminit", line);
    if (contains(line, "necessary power cables connected") ||
        contains(line, "power connectors connected"))
      say("dmesg.power", line);
    if (contains(line, "This PCI I/O region assigned to your NVIDIA device is invalid") ||
        contains(line, "BAR1 is 0M") || contains(line, "BAR 1: can't assign") ||
        contains(line, "BAR 1: no space") || contains(line, "BAR 1 [mem size"))
      say("dmesg.bar", line);
    if (contains(line, "is not supported by the NVIDIA") ||
        contains(line, "supported through the NVIDIA") || contains(line, "NVIDIA legacy"))
      say("dmesg.unsupported", line);
    if (contains(line, "The NVIDIA probe routine was not called") ||
        contains(line, "probe routine failed"))
      say("dmesg.probe", line);
    if (contains(line, "already bound to NovaCore")) say("dmesg.nova", line);
    if (contains(line, "API mismatch")) say("dmesg.api_mismatch", line);
    size_t at = line.find("Xid");
    if (at == line.npos) continue;
    size_t close = line.find(')', at);
    std::string number = std::string(trim(line.substr(close == line.npos ? at + 3 : close + 1)));
    number = number.substr(std::min(number.size(), number.find_first_of("0123456789")));
    number = number.substr(0, number.find_first_not_of("0123456789"));
    std::string fact = text_of(data.xids(), number);
    if (fact.empty() || f->has(fact)) continue;
    f->set(fact, number, "The kernel's log says: " + std::string(trim(line.substr(0, 300))));
  }
}

void tool_facts(const Machine& m, Facts* f) {
  const std::string& printed = m.smi_all.empty() ? m.smi_text : m.smi_all;
  auto says = [&](const char* key, std::string_view words) {
    if (f->has(key)) return;
    if (!contains(printed, words)) return;
    for (std::string_view line : lines_of(printed, 4096))
      if (contains(line, words))
        return f->set(key, "yes", m.smi_name + " says: " + std::string(trim(line)));
  };
  says("smi.mismatch", "Driver/library version mismatch");
  says("smi.unknown", "Failed to initialize NVML: Unknown Error");
  says("smi.permission", "Insufficient Permissions");
  says("smi.no_devices", "No devices were found");
  says("smi.cannot", "couldn't communicate with the NVIDIA driver");
  says("smi.handle", "Unable to determine the device handle");
  says("smi.lost", "GPU is lost");
  says("smi.cannot", "Failed to initialize NVML: Driver Not Loaded");
  for (std::string_view words :
       {"couldn't find libnvidia-ml.so", "couldn't find the libnvidia-ml.so",
        "Failed to initialize NVML: Shared Library Not Found", "nvidia-smi: not found",
        "nvidia-smi: command not found", "command not found: nvidia-smi",
        "libnvidia-ml.so.1: cannot open shared object file"})
    says("smi.no_library", words);
  for (std::string_view words : {"equires reset", "needs reset", "requires a reset"})
    says("smi.reset", words);
  // Any other failure; the tables that go with a working driver have none of these words.
  for (std::string_view words :
       {"NVIDIA-SMI has failed", "Failed to initialize NVML", "Unable to determine the device",
        "No devices were found", "GPU is lost"})
    says("smi.failed", words);
  std::string library = find_version(between(m.smi_text, "NVML library version:", "\n"));
  if (!library.empty())
    f->set("smi.library", library, "nvidia-smi says: NVML library version: " + library + ".");
}

}  // namespace

void measured_facts(const Machine& machine, const Data& data, Facts* facts) {
  memory_facts(machine, facts);
  mode_facts(machine, facts);
  link_facts(machine, facts);
  throttle_facts(machine, facts);
  memory_error_facts(machine, facts);
  dmesg_facts(machine, data, facts);
  tool_facts(machine, facts);
  use_facts(machine, facts);
}

}  // namespace tracefire::doctor
