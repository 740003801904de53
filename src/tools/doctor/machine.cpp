// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/machine.h"

#include "tools/doctor/read/ld_cache.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

constexpr size_t kSmall = 64 << 10, kLarge = 8 << 20;

std::string text(const Root& root, const std::string& path, size_t limit = kSmall) {
  return root.read(path, limit).value_or("");
}

void read_system(const Root& root, Machine* m) {
  std::string release = text(root, "/etc/os-release");
  if (release.empty()) release = text(root, "/usr/lib/os-release");
  auto os = parse_assignments(release);
  m->os_id = os["id"];
  m->os_like = os["id_like"];
  m->os_version = os["version_id"];
  m->os_name = os["pretty_name"].empty() ? trim(m->os_id + " " + m->os_version) : os["pretty_name"];
  std::string version = text(root, "/proc/version");
  m->kernel = between(version, "Linux version ", " \n");
  m->wsl = contains_word(version, "microsoft") || root.exists("/usr/lib/wsl/lib") ||
           root.exists("/dev/dxg");
  if (root.exists("/Windows/System32") || root.exists("/windows/system32")) m->platform = "windows";
  m->windows_driver =
      root.exists("/Windows/System32/nvcuda.dll") || root.exists("/windows/system32/nvcuda.dll");
  if (root.exists("/System/Library/CoreServices/SystemVersion.plist")) m->platform = "darwin";
  if (m->variable("OS") == "Windows_NT") m->platform = "windows";
  for (std::string arch : {"aarch64", "x86_64"}) {
    bool found = contains(version, arch) || root.exists("/usr/lib/" + arch + "-linux-gnu") ||
                 root.exists("/lib/ld-linux-" + replace_all(arch, "_", "-") +
                             (arch == "aarch64" ? ".so.1" : ".so.2"));
    if (found) m->arch = arch;
    if (found) break;
  }
  if (contains(text(root, "/proc/driver/nvidia/version"), "x86_64")) m->arch = "x86_64";
  if (contains(text(root, "/proc/driver/nvidia/version"), "aarch64")) m->arch = "aarch64";
  m->jetson = root.exists("/etc/nv_tegra_release");
  if (m->jetson) m->arch = "aarch64";
}

void read_container(const Root& root, Machine* m) {
  auto found = [&](std::string kind, std::string proof) {
    if (!m->container.empty()) return;
    m->container = std::move(kind);
    m->container_proof = std::move(proof);
  };
  std::string cgroup = text(root, "/proc/self/cgroup") + text(root, "/proc/1/cgroup");
  if (!m->variable("KUBERNETES_SERVICE_HOST").empty())
    found("kubernetes", "KUBERNETES_SERVICE_HOST is set.");
  if (root.exists("/var/run/secrets/kubernetes.io"))
    found("kubernetes", "/var/run/secrets/kubernetes.io exists.");
  if (contains(cgroup, "kubepods")) found("kubernetes", "/proc/self/cgroup names kubepods.");
  if (root.exists("/.singularity.d")) found("apptainer", "/.singularity.d exists.");
  if (root.exists("/run/.containerenv")) found("podman", "/run/.containerenv exists.");
  if (root.exists("/.dockerenv")) found("docker", "/.dockerenv exists.");
  if (contains(cgroup, "docker")) found("docker", "/proc/self/cgroup names docker.");
  if (contains(cgroup, "libpod")) found("podman", "/proc/self/cgroup names libpod.");
  if (contains(cgroup, "containerd")) found("docker", "/proc/self/cgroup names containerd.");
  if (contains(cgroup, "/lxc")) found("lxc", "/proc/self/cgroup names lxc.");
  std::string name = m->variable("container");
  if (!name.empty())
    found(name == "lxc" || name == "podman" ? name : "docker",
          "The variable container is " + name + ".");
}

void read_pci(const Root& root, const Data& data, Machine* m) {
  std::vector<std::string> devices = root.list("/sys/bus/pci/devices");
  m->pci_listed = !devices.empty();
  for (const std::string& address : devices) {
    std::string dir = "/sys/bus/pci/devices/" + address;
    std::string vendor(trim(text(root, dir + "/vendor"))), type(trim(text(root, dir + "/class")));
    bool display = type.rfind("0x03", 0) == 0;
    bool accelerator = type.rfind("0x12", 0) == 0;  // cards without a socket for a screen
    if (vendor == "0x1002" && (display || accelerator)) m->amd_gpu = true;
    if (vendor == "0x10de" && type.rfind("0x0680", 0) == 0) m->nvswitch = true;
    if (vendor != "0x10de" || (!display && !accelerator && !type.empty())) continue;
    Gpu gpu;
    gpu.pci_address = address;
    gpu.pci_device = std::string(trim(text(root, dir + "/device")));
    gpu.capability = data.capability_of_pci(gpu.pci_device);
    gpu.driver = name_of(root.link(dir + "/driver"));
    if (root.exists("/sys/bus/pci/drivers/vfio-pci/" + address)) gpu.driver = "vfio-pci";
    m->gpus.push_back(std::move(gpu));
  }
  for (const std::string& address : root.list("/proc/driver/nvidia/gpus")) {
    std::string info = text(root, "/proc/driver/nvidia/gpus/" + address + "/information");
    std::string name = between(info, "Model:", "\n");
    auto it = std::find_if(m->gpus.begin(), m->gpus.end(),
                           [&](const Gpu& gpu) { return gpu.pci_address == address; });
    if (it == m->gpus.end()) it = m->gpus.insert(m->gpus.end(), Gpu{});
    it->pci_address = address;
    if (name != "Unknown") it->name = name;
  }
}

/// nvidia.ko below /lib/modules, which is a link to /usr/lib/modules on some systems and missing in
/// some images.
void read_module_files(const Root& root, Machine* m) {
  std::string newest;
  bool own = false;
  for (const std::string base : {"/lib/modules", "/usr/lib/modules"})
    for (const std::string& kernel : root.list(base)) {
      const std::string dir = base + "/" + kernel;
      if (newest.empty() || older_kernel(newest, kernel)) newest = kernel;
      own |= kernel == m->kernel;
      std::vector<std::string> folders = {"/updates/dkms",
                                          "/extra",
                                          "/updates",
                                          "/kernel/drivers/video",
                                          "/weak-updates",
                                          "/kernel/nvidia",
                                          "/extra/nvidia",
                                          "/extramodules",
                                          "/misc",
                                          "/video",
                                          "/kernel/drivers/video/nvidia",
                                          "/updates/nvidia",
                                          "/weak-updates/nvidia"};
      for (const std::string& name : root.list(dir + "/kernel", 64))
        if (name.rfind("nvidia", 0) == 0) folders.push_back("/kernel/" + name);
      for (const std::string& name : root.list(dir + "/extra", 256))
        if (name.rfind("nvidia", 0) == 0 || name.rfind("drivers", 0) == 0)
          folders.push_back("/extra/" + name);
      for (const std::string& folder : folders)
        for (std::string ending : {".ko", ".ko.zst", ".ko.xz", ".ko.gz", "-current.ko"}) {
          std::string path = dir + folder + "/nvidia" + ending;
          if (!root.exists(path)) continue;
          if (kernel == m->kernel) {
            if (m->module_file.empty()) m->module_file = path;
          } else if (m->module_file_elsewhere.empty() ||
                     older_kernel(m->module_other_kernel, kernel)) {
            m->module_file_elsewhere = path;
            m->module_other_kernel = kernel;
          }
        }
    }
  m->kernel_gone = !own && !m->kernel.empty() && older_kernel(m->kernel, newest);
}

void read_modules(const Root& root, Machine* m) {
  std::optional<std::string> modules = root.read("/proc/modules", kLarge);
  m->modules_listed = modules.has_value();
  if (modules)
    for (std::string_view line : lines_of(*modules, 10000))
      m->modules.insert(std::string(line.substr(0, line.find(' '))));
  m->module_version_text =
      std::string(trim(between(text(root, "/proc/driver/nvidia/version"), "NVRM version:", "\n")));
  if (m->module_version_text.empty())
    m->module_version_text = std::string(trim(text(root, "/sys/module/nvidia/version")));
  m->module_version = find_version(m->module_version_text);
  m->module_open = contains(m->module_version_text, "Open Kernel Module");
  for (const Gpu& gpu : m->gpus)  // what holds a GPU is loaded, or part of the kernel
    if (!gpu.driver.empty()) m->modules.insert(replace_all(lower(gpu.driver), "-", "_"));
  if (m->modules.count("novacore") != 0) m->modules.insert("nova_core");
  m->nvidia_loaded = !m->module_version_text.empty() || m->modules.count("nvidia") != 0;
  read_module_files(root, m);
}

void read_nodes(const Root& root, Machine* m) {
  for (const std::string& name : root.list("/dev")) {
    if (name.rfind("nvidia", 0) == 0 && name.size() > 6 && name[6] >= '0' && name[6] <= '9')
      m->node_gpu = true;
    if (name.rfind("nvidia-nvswitch", 0) == 0) m->nvswitch = true;
  }
  m->node_control = root.exists("/dev/nvidiactl");
  m->node_uvm = root.exists("/dev/nvidia-uvm");
  m->node_dxg = root.exists("/dev/dxg");
  m->kfd = root.exists("/dev/kfd");
}

void read_loader(const Root& root, Machine* m) {
  m->ld_library_path = m->variable("LD_LIBRARY_PATH");
  for (std::string_view dir : split(m->ld_library_path, ':'))
    if (!dir.empty() && dir[0] == '/') m->ld_dirs.push_back(normal_path(dir));
  std::optional<std::string> cache = root.read("/etc/ld.so.cache", kLarge);
  if (cache) m->ld_cache = parse_ld_cache(*cache);
  std::vector<std::string> files = {"/etc/ld.so.conf"};
  for (const std::string& name : root.list("/etc/ld.so.conf.d"))
    if (name.size() > 5 && name.substr(name.size() - 5) == ".conf")
      files.push_back("/etc/ld.so.conf.d/" + name);
  for (const std::string& file : files) {
    std::string content = text(root, file);
    for (std::string_view line : lines_of(content, 1000))
      if (line = trim(line.substr(0, line.find('#'))); !line.empty() && line[0] == '/')
        m->default_dirs.push_back(normal_path(line));
  }
  for (std::string dir :
       {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"})
    m->default_dirs.push_back(dir);
}

void find_driver_files(const Root& root, Machine* m) {
  m->libcuda = find_in_loader_order(root, *m, "libcuda.so.1");
  m->libnvml = find_in_loader_order(root, *m, "libnvidia-ml.so.1");
  if (root.exists("/usr/lib/wsl/lib/libcuda.so.1"))
    m->wsl_libcuda = "/usr/lib/wsl/lib/libcuda.so.1";
  std::vector<std::string> dirs = m->ld_dirs;
  dirs.insert(dirs.end(), m->default_dirs.begin(), m->default_dirs.end());
  for (std::string dir :
       {"/usr/lib/wsl/lib", "/usr/lib64-nvidia", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
        "/run/opengl-driver/lib", "/usr/lib/aarch64-linux-gnu/tegra", "/usr/lib/nvidia",
        "/usr/lib64/nvidia", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/.singularity.d/libs"})
    dirs.push_back(dir);
  for (const std::string& name : root.list("/usr/local"))
    if (name.rfind("cuda", 0) == 0) dirs.push_back("/usr/local/" + name + "/compat");
  std::set<std::string> seen;
  for (const std::string& dir : dirs) {
    std::string real_dir = root.follow(dir);
    for (const std::string& name : root.list(dir, 20000)) {
      if (name.rfind("libcuda.so.", 0) != 0) continue;
      std::string path = real_dir + "/" + name;
      if (!root.link(path).empty() || !seen.insert(path).second) continue;
      m->all_libcuda.push_back({path, version_from_name(root, path), dir});
    }
  }
  if (m->libcuda.path.empty())
    for (std::string dir : {"/usr/lib64-nvidia", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
                            "/run/opengl-driver/lib", "/usr/lib/aarch64-linux-gnu/tegra",
                            "/.singularity.d/libs", "/usr/lib/wsl/lib"})
      if (m->libcuda.path.empty() && root.exists(dir + "/libcuda.so.1"))
        m->libcuda = {dir + "/libcuda.so.1", version_from_name(root, dir + "/libcuda.so.1"), dir};
  // Jetson's and WSL's is libcuda.so.1.1: no version of a driver.
  auto keep_driver = [](DriverFile* file) {
    if (major_of(file->version) < 100) file->version.clear();
  };
  keep_driver(&m->libcuda);
  keep_driver(&m->libnvml);
  for (DriverFile& file : m->all_libcuda) keep_driver(&file);
}

/// What lies among the captures under a name that nothing reads would else be silently left out.
void name_unread_captures(const Root& root) {
  static const std::set<std::string> kRead = {
      "nvidia-smi.txt",   "nvidia-smi-query.csv", "nvidia-smi-apps.csv",
      "nvidia-smi-q.txt", "nvidia-smi-L.txt",     "dmesg.txt",
      "journal.txt",      "mokutil.txt",          "framework.log",
      "prove.json",       "monitor.json",         "rpm-qa.txt",
      "pacman-Q.txt"};
  if (root.live()) return;
  std::string names;
  for (const std::string& name : kRead) names += (names.empty() ? "" : ", ") + name;
  for (const std::string& name : root.list("/captured", 64))
    if (kRead.count(name) == 0)
      root.note_unread("/captured/" + name,
                       "no capture has this name; those that are read are " + names);
}

void read_captured(const Root& root, Machine* m) {
  auto captured = [&](const char* name, size_t limit) {
    return root.live() ? std::string() : text(root, std::string("/captured/") + name, limit);
  };
  m->smi_text = captured("nvidia-smi.txt", 1 << 20);
  m->smi_table = parse_smi_table(m->smi_text);
  std::string query = captured("nvidia-smi-query.csv", 1 << 20),
              all = captured("nvidia-smi-q.txt", 1 << 20),
              list = captured("nvidia-smi-L.txt", 1 << 20);
  m->smi_samples = parse_smi_csv(query);
  m->smi_rows = latest_rows(m->smi_samples);
  m->use_report = captured("prove.json", 8 << 20);
  if (m->use_report.empty())
    m->use_report = captured("monitor.json", 8 << 20);
  else if (root.exists("/captured/monitor.json"))
    root.note_unread("/captured/monitor.json", "/captured/prove.json takes its place");
  m->smi_apps = parse_smi_csv(captured("nvidia-smi-apps.csv", 1 << 20));
  // The plain table says less than the CSV, but it is what people have at hand.
  if (m->smi_rows.empty()) m->smi_rows = m->smi_table.rows;
  if (m->smi_apps.empty()) m->smi_apps = m->smi_table.apps;
  m->smi_q = parse_smi_q(all);
  m->smi_all = join({m->smi_text, query, list, all}, "\n");
  m->has_smi_list = !trim(list).empty();
  m->smi_list = parse_smi_list(list);
  m->mokutil = captured("mokutil.txt", kSmall);
  name_unread_captures(root);
  if (!root.live()) m->dmesg = kernel_log(root);
}

void read_secure_boot(const Root& root, Machine* m) {
  if (contains(m->mokutil, "SecureBoot enabled")) {
    m->secure_boot = Presence::kPresent;
    m->secure_boot_proof = "mokutil says: SecureBoot enabled.";
  } else if (contains(m->mokutil, "SecureBoot disabled")) {
    m->secure_boot = Presence::kAbsent;
  }
  for (const std::string& name : root.list("/sys/firmware/efi/efivars", 2000)) {
    if (name.rfind("SecureBoot-", 0) != 0 || m->secure_boot != Presence::kUnknown) continue;
    std::string bytes = text(root, "/sys/firmware/efi/efivars/" + name, 16);
    if (bytes.size() < 5) continue;
    m->secure_boot = bytes[4] == 1 ? Presence::kPresent : Presence::kAbsent;
    if (bytes[4] == 1)
      m->secure_boot_proof = "The firmware variable " + name + " says that Secure Boot is on.";
  }
}

}  // namespace

bool older_kernel(std::string_view a, std::string_view b) {
  auto numbers = [](std::string_view text) {
    std::vector<long> out;
    for (size_t i = 0; i < text.size() && out.size() < 8;) {
      if (text[i] < '0' || text[i] > '9') {
        ++i;
        continue;
      }
      long value = 0;
      for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
        value = std::min(value * 10 + (text[i] - '0'), 1000000000L);
      out.push_back(value);
    }
    return out;
  };
  return numbers(a) < numbers(b);
}

void join_gpus(const Data& data, Machine* m) {
  for (size_t i = 0; i < m->smi_rows.size(); ++i) {
    SmiRow& row = m->smi_rows[i];
    Gpu* gpu = nullptr;
    std::string bus = lower(row["pci.bus_id"]);
    for (Gpu& candidate : m->gpus)
      if (!bus.empty() && bus.size() >= 12 && candidate.pci_address.size() >= 12 &&
          lower(candidate.pci_address).substr(candidate.pci_address.size() - 10) ==
              bus.substr(bus.size() - 10))
        gpu = &candidate;
    // Without an address: the first GPU that may be it.
    for (Gpu& candidate : m->gpus)
      if (gpu == nullptr && bus.empty() && candidate.measured.empty() &&
          (candidate.name.empty() || row["name"].empty() || candidate.name == row["name"]) &&
          (candidate.capability.empty() || !is_version(row["compute_cap"]) ||
           candidate.capability == row["compute_cap"]))
        gpu = &candidate;
    if (gpu == nullptr && i < m->gpus.size() && m->gpus[i].measured.empty()) gpu = &m->gpus[i];
    if (gpu == nullptr) gpu = &m->gpus.emplace_back();
    gpu->measured = row;
    if (!row["name"].empty()) gpu->name = row["name"];
    if (is_version(row["compute_cap"])) gpu->capability = row["compute_cap"];
  }
  for (size_t i = 0; i < m->smi_list.gpu_names.size(); ++i) {
    if (i >= m->gpus.size()) m->gpus.emplace_back();
    if (m->gpus[i].name.empty()) m->gpus[i].name = m->smi_list.gpu_names[i];
  }
  for (Gpu& gpu : m->gpus) {
    if (gpu.capability.empty()) gpu.capability = data.capability_of_name(gpu.name);
  }
  // What the driver does not list says nothing of what frameworks see.
  std::stable_partition(m->gpus.begin(), m->gpus.end(),
                        [m](const Gpu& gpu) { return !unlisted(*m, gpu); });
  if (m->module_version.empty() && !m->smi_rows.empty()) {
    m->module_version = m->smi_rows[0]["driver_version"];
  }
  // A container may have AMD's device without the list of the bus.
  if (!m->pci_listed && m->kfd && m->gpus.empty()) m->amd_gpu = true;
  bool known_absent = (m->pci_listed || m->amd_gpu) && m->gpus.empty() && !m->wsl;
  if (!m->gpus.empty() || m->nvidia_loaded || m->node_gpu || m->node_dxg || m->jetson ||
      m->windows_driver)
    m->gpu = Presence::kPresent;
  else if (known_absent)
    m->gpu = Presence::kAbsent;
}

DriverFile find_in_loader_order(const Root& root, const Machine& machine,
                                const std::string& soname) {
  for (const std::string& dir : machine.ld_dirs)
    if (root.exists(dir + "/" + soname))
      return {dir + "/" + soname, version_from_name(root, dir + "/" + soname), "LD_LIBRARY_PATH"};
  auto it = machine.ld_cache.find(soname);
  if (it != machine.ld_cache.end() && root.exists(it->second))
    return {it->second, version_from_name(root, it->second), "ld.so.cache"};
  for (const std::string& dir : machine.default_dirs)
    if (root.exists(dir + "/" + soname))
      return {dir + "/" + soname, version_from_name(root, dir + "/" + soname), "default"};
  return {};
}

std::string version_from_name(const Root& root, const std::string& path) {
  std::string name = name_of(root.follow(path));
  size_t at = name.find(".so.");
  if (at == name.npos) return "";
  std::string version = name.substr(at + 4);
  return is_version(version) && contains(version, ".") ? version : "";
}

Machine read_machine(const Root& root, const Data& data, std::map<std::string, std::string> env,
                     const std::string& log_text, const std::string& log_name) {
  Machine m;
  m.env = std::move(env);
  read_system(root, &m);
  read_container(root, &m);
  read_pci(root, data, &m);
  read_modules(root, &m);
  read_nodes(root, &m);
  read_loader(root, &m);
  find_driver_files(root, &m);
  read_captured(root, &m);
  read_secure_boot(root, &m);
  read_packages(root, &m);
  m.log = log_text;
  m.log_name = log_name;
  if (m.log.empty() && !root.live()) {
    m.log = root.read_ends("/captured/framework.log", 4 << 20).value_or("");
    m.log_name = "The framework's log";
  }
  join_gpus(data, &m);
  return m;
}

}  // namespace tracefire::doctor
