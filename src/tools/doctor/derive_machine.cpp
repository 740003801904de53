// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/derive.h"
#include "tools/doctor/fix.h"
#include "tools/doctor/libraries.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"
#include "tools/doctor/visible.h"

namespace tracefire::doctor {

namespace {

void gpu_facts(const Machine& m, const Data& data, Facts* f) {
  f->set("gpu", m.gpu == Presence::kPresent  ? "present"
                : m.gpu == Presence::kAbsent ? "absent"
                                             : "unknown");
  std::vector<std::string> names;
  int before_turing = 0, blackwell = 0, data_center = 0;
  for (const Gpu& gpu : m.gpus) {
    if (unlisted(m, gpu)) {
      std::string what = gpu.name.empty() ? "An NVIDIA GPU" : gpu.name;
      f->set("gpu.unlisted", gpu.pci_address,
             what + (gpu.capability.empty() ? "" : " (compute capability " + gpu.capability + ")") +
                 " is on the PCI bus at " + gpu.pci_address + ", and nvidia-smi does not list it.");
      continue;
    }
    std::string name = gpu.name.empty() ? "the NVIDIA GPU at " + gpu.pci_address : gpu.name;
    names.push_back(name);
    if (!gpu.capability.empty() && compare_versions(gpu.capability, "7.5") < 0) ++before_turing;
    if (!gpu.capability.empty() && compare_versions(gpu.capability, "10.0") >= 0) ++blackwell;
    if (data.data_center(gpu.name)) ++data_center;
  }
  const size_t count = names.size();
  if (names.empty()) names.push_back("the GPU");
  f->set("gpu.name", names[0],
         m.gpus.empty() ? ""
                        : "The GPU is " + names[0] +
                              (m.gpus[0].capability.empty()
                                   ? "."
                                   : ", compute capability " + m.gpus[0].capability + "."));
  f->set("gpu.count", std::to_string(count));
  if (!m.gpus.empty() && !m.gpus[0].capability.empty()) {
    f->set("gpu.cc", m.gpus[0].capability);
    f->set("gpu.arch", data.arch(m.gpus[0].capability));
  }
  f->flag("gpu.blackwell", blackwell > 0,
          "The GPU " + names[0] + " is of the Blackwell generation.");
  f->flag("gpu.before_turing", before_turing > 0);
  f->flag("gpu.data_center", data_center > 0 && data_center == static_cast<int>(count));
  f->flag(
      "gpu.pci", !m.gpus.empty() && !m.gpus[0].pci_address.empty(),
      m.gpus.empty() ? "" : "An NVIDIA GPU is on the PCI bus at " + m.gpus[0].pci_address + ".");
  f->flag("gpu.amd", m.amd_gpu && m.gpus.empty(),
          m.pci_listed ? "The GPU on the PCI bus is AMD's (vendor 0x1002)."
                       : "The GPU is AMD's: its driver made /dev/kfd.");
  f->flag("no_kfd", !m.kfd, "/dev/kfd, the device of AMD's compute driver, is not there.");
  f->flag("kfd", m.kfd, "/dev/kfd, the device of AMD's compute driver, exists.");
}

/// Which driver branches know the GPU.
void branch_facts(const Machine& m, const Data& data, Facts* f) {
  std::string branch = text_of(data.systems(), "recommended_branch");
  std::string arch = f->get("gpu.arch");
  auto limit = [&](const char* table) {
    auto it = data.gpus().find(table);
    return it == data.gpus().end() ? std::string() : text_of(*it, arch);
  };
  std::string last = limit("arch_last_branch"), first = limit("arch_first_branch");
  if (!last.empty() && compare_versions(last, branch) < 0) branch = last;
  f->set("driver.recommended", branch);
  if (!last.empty()) f->set("driver.last_branch", last);
  if (m.module_version.empty() || m.wsl) return;
  int major = major_of(m.module_version);
  if (!last.empty() && major > major_of(last))
    f->set("driver.unsupported", "yes",
           "Driver branch " + std::to_string(major) + " no longer knows GPUs of the " + arch +
               " generation; " + last + " is the last that does.");
  else if (!first.empty() && major < major_of(first))
    f->set("driver.unsupported", "yes",
           "Driver branch " + std::to_string(major) + " does not know GPUs of the " + arch +
               " generation yet; " + first + " is the first that does.");
  if (!first.empty() && major < major_of(first)) f->set("driver.branch_for_gpu", branch);
  if (!last.empty() && major > major_of(last)) f->set("driver.branch_for_gpu", last);
  bool closed_only = m.module_open && f->has("gpu.before_turing");
  f->flag("driver.open_unsupported", closed_only,
          "The loaded module is the open flavour, which supports Turing and later only; the GPU is "
          "of the " +
              arch + " generation.");
}

void module_facts(const Root& root, const Machine& m, Facts* f) {
  f->flag("module.nvidia", m.nvidia_loaded,
          m.module_version_text.empty()
              ? "/proc/modules lists nvidia."
              : "/proc/driver/nvidia/version: " + m.module_version_text + ".");
  f->flag("module.nouveau", m.modules.count("nouveau") != 0, "/proc/modules lists nouveau.");
  f->flag("module.nova", m.modules.count("nova_core") != 0, "/proc/modules lists nova_core.");
  f->flag("module.uvm", m.modules.count("nvidia_uvm") != 0);
  size_t vfio = 0;
  for (const Gpu& gpu : m.gpus) {
    if (gpu.driver != "vfio-pci") continue;
    ++vfio;
    f->set("vfio.some", gpu.pci_address,
           "/sys/bus/pci/devices/" + gpu.pci_address + "/driver is vfio-pci.");
    f->set("vfio.ids", "10de:" + replace_all(gpu.pci_device, "0x", ""));
  }
  f->flag("vfio.all", vfio > 0 && vfio == m.gpus.size(), f->evidence("vfio.some"));
  f->flag("modules.listed", m.modules_listed);
  f->set("kernel", m.kernel.empty() ? "$(uname -r)" : m.kernel);
  if (!m.module_version.empty()) {
    std::string source = m.wsl ? "The Windows driver is " : "The loaded kernel module is version ";
    f->set("driver.version", m.module_version, source + m.module_version + ".");
    f->set("driver.branch", leading(m.module_version, 1));
  }
  f->set("driver.open", m.module_open ? "yes" : "",
         m.module_open ? "The loaded module is the open flavour." : "");
  f->flag("driver.closed", !m.module_version_text.empty() && !m.module_open,
          "/proc/driver/nvidia/version (" + m.module_version_text +
              ") does not say Open Kernel Module: the proprietary flavour is loaded.");
  f->flag("module.file", !m.module_file.empty(),
          m.module_file + " is built for the running kernel.");
  f->set("module.elsewhere", m.module_file_elsewhere,
         m.module_file_elsewhere.empty()
             ? ""
             : m.module_file_elsewhere + " is for another kernel; the running one is " + m.kernel +
                   ".");
  f->set("module.other_kernel", m.module_other_kernel);
  f->flag("module.other_newer",
          !m.module_other_kernel.empty() && older_kernel(m.kernel, m.module_other_kernel));
  f->flag("kernel.gone", m.kernel_gone,
          "/lib/modules has no folder for the running kernel " + m.kernel +
              ": its package was updated or removed while it ran.");
  f->flag("secure_boot", m.secure_boot == Presence::kPresent, m.secure_boot_proof);
  // What turns a discrete GPU off on laptops, or keeps its driver from loading.
  std::string prime(trim(root.read("/etc/prime-discrete", 64).value_or("")));
  if (prime == "off")
    f->set("optimus.off", "yes",
           "/etc/prime-discrete says off: prime-select chose the integrated GPU.");
  if (contains(root.read("/proc/acpi/bbswitch", 256).value_or(""), "OFF"))
    f->set("optimus.off", "yes", "/proc/acpi/bbswitch says that the discrete GPU is off.");
  for (std::string dir : {"/etc/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"})
    for (const std::string& name : root.list(dir)) {
      std::string content = root.read(dir + "/" + name, 64 << 10).value_or("");
      for (std::string_view line : lines_of(content, 2000)) {
        line = trim(line.substr(0, line.find('#')));
        if (line == "blacklist nvidia" || line == "alias nvidia off" ||
            line == "install nvidia /bin/false")
          f->set("optimus.off", "yes", dir + "/" + name + " says: " + std::string(line) + ".");
      }
    }
  std::string params = root.read("/proc/driver/nvidia/params", 64 << 10).value_or("");
  f->flag("profiling.admin_only", between(params, "RmProfilingAdminOnly:", "\n") == "1",
          "/proc/driver/nvidia/params says RmProfilingAdminOnly: 1.");
}

void user_space_facts(const Root& root, const Machine& m, const Data& data, Facts* f) {
  f->flag("libcuda", !m.libcuda.path.empty(),
          "The loader takes " + m.libcuda.path + " for libcuda.so.1.");
  f->flag("no_libcuda", m.libcuda.path.empty(), "No libcuda.so.1 is in the loader's folders.");
  f->flag("libnvml", !m.libnvml.path.empty());
  f->flag("no_libnvml", m.libnvml.path.empty(), "No libnvidia-ml.so.1 is in the loader's folders.");
  if (m.libcuda.path.empty() && !m.all_libcuda.empty())
    f->set(
        "libcuda.off_path", parent_of(m.all_libcuda[0].path),
        "There is " + m.all_libcuda[0].path + ", which the loader does not find as libcuda.so.1.");
  if (contains(m.libcuda.path, "/stubs/"))
    f->set("libcuda.stub", m.libcuda.path,
           m.libcuda.path + " is the CUDA toolkit's stub for linking, not a driver.");
  f->set("libcuda.path", m.libcuda.path);
  f->set("libcuda.file", root.follow(m.libcuda.path));
  f->set("libcuda.version", m.libcuda.version);
  f->flag("wsl.libcuda", !m.wsl_libcuda.empty(), "/usr/lib/wsl/lib/libcuda.so.1 exists.");
  bool compat = contains(m.libcuda.path, "/compat");
  std::string installed = m.module_version;
  if (compat && !m.libcuda.version.empty() && !installed.empty() &&
      compare_versions(m.libcuda.version, installed) > 0)
    f->set("compat.newer", "yes",
           "The loader takes " + m.libcuda.path + " (" + m.libcuda.version +
               ", forward compatibility) while the host's driver is " + installed +
               "; forward compatibility works on data-centre GPUs only.");
  f->set("compat.dir", compat ? parent_of(m.libcuda.path) : "");
  if (compat && !m.libcuda.version.empty() && !installed.empty() &&
      compare_versions(m.libcuda.version, installed) < 0)
    f->set("compat.older", "yes",
           "The loader takes " + m.libcuda.path + " (" + m.libcuda.version +
               "), older than the kernel module " + installed + ".");
  std::string user = m.libcuda.version.empty() || compat ? m.libnvml.version : m.libcuda.version;
  if (!m.wsl && !compat && !installed.empty() && !user.empty() &&
      compare_versions(user, installed) != 0) {
    bool right_copy = false;
    std::vector<std::string> copies;
    for (const DriverFile& file : m.all_libcuda) {
      if (contains(file.path, "/compat") || file.version.empty()) continue;
      right_copy |= compare_versions(file.version, installed) == 0;
      copies.push_back(file.path);
    }
    std::string proof = "The loaded kernel module is " + installed +
                        ", the driver's libraries that the loader takes (" +
                        (m.libcuda.path.empty() ? m.libnvml.path : m.libcuda.path) + ") are " +
                        user + ".";
    f->set(right_copy ? "libcuda.duplicate" : "driver.mismatch", "yes", proof);
    f->set("user.version", user);
    f->set("libcuda.copies", join(copies, ", "), "Copies of libcuda: " + join(copies, ", ") + ".");
  }
  // In a container ldconfig may take either copy at the next start.
  std::set<std::string> versions;
  for (const DriverFile& file : m.all_libcuda)
    if (!contains(file.path, "/compat") && !file.version.empty()) versions.insert(file.version);
  if (!m.container.empty() && !m.wsl && versions.size() > 1 && !f->has("libcuda.duplicate") &&
      !f->has("driver.mismatch"))
    f->set(
        "libcuda.duplicate", "yes",
        "libcuda is there in several versions: " + join({versions.begin(), versions.end()}, ", ") +
            "; the kernel module is " + installed + ".");
  if (m.wsl) {
    for (const DriverFile& file : m.all_libcuda)
      if (file.path.rfind("/usr/lib/wsl/", 0) != 0 && file.path.rfind("/mnt/", 0) != 0 &&
          !file.version.empty() && !contains(file.path, "/compat"))
        f->set("wsl.linux_driver", file.path,
               file.path +
                   " is the user-space part of a Linux driver; under WSL it hides the one of "
                   "Windows.");
    bool first = !m.ld_dirs.empty() && m.ld_dirs[0] == "/usr/lib/wsl/lib";
    f->flag("wsl.path_first", first);
    std::string number =
        m.smi_table.driver_version.empty() ? m.module_version : m.smi_table.driver_version;
    if (!number.empty()) {
      f->set("driver.version", number, "The Windows driver is " + number + ".");
      bool differ = !m.smi_table.tool_version.empty() && m.smi_table.tool_version != number;
      f->flag("wsl.header_differs", differ,
              "nvidia-smi shows NVIDIA-SMI " + m.smi_table.tool_version + " with Driver Version " +
                  number + ".");
    }
  }
  (void)root;
  (void)data;
}

void node_facts(const Root& root, const Machine& m, Facts* f) {
  f->flag("node.gpu", m.node_gpu, "/dev/nvidia0 and its like exist.");
  f->flag("node.control", m.node_control, "/dev/nvidiactl exists.");
  f->flag("node.uvm", m.node_uvm);
  f->flag("node.dxg", m.node_dxg);
  f->flag("no_nodes", !m.node_gpu, "No /dev/nvidia0 is there.");
  f->flag("no_uvm", !m.node_uvm, "/dev/nvidia-uvm is not there.");
  f->flag("no_control", !m.node_control, "/dev/nvidiactl is not there.");
  f->flag("node.denied", !m.nodes_denied.empty(), m.nodes_denied);
  f->set("node.group", m.node_group.empty() ? "video" : m.node_group);
  f->flag("nvswitch", m.nvswitch || root.exists("/proc/driver/nvidia-nvswitch"),
          "The machine has NVSwitch.");
  bool fabric =
      root.exists("/usr/bin/nv-fabricmanager") || root.exists("/usr/local/bin/nv-fabricmanager");
  f->flag("fabric.installed", fabric);
  std::string fabric_version;
  for (const auto& [name, package] : m.packages)
    if ((name.rfind("nvidia-fabricmanager", 0) == 0 ||
         name.rfind("nvidia-fabric-manager", 0) == 0) &&
        !contains(name, "dev"))
      fabric_version = package.version;
  if (!fabric_version.empty() && !m.module_version.empty() &&
      compare_versions(fabric_version, m.module_version) != 0)
    f->set(
        "fabric.other_version", fabric_version,
        "nvidia-fabricmanager is " + fabric_version + ", the driver is " + m.module_version + ".");
}

void container_facts(const Root& root, const Machine& m, Facts* f) {
  f->set("container", m.container, m.container_proof);
  f->flag("wsl", m.wsl, "The kernel is Microsoft's (WSL).");
  // WSL 2 has a kernel of its own, "5.15.90.1-microsoft-standard-WSL2".
  f->flag("wsl.one", m.kernel.rfind("4.4.", 0) == 0 && contains(m.kernel, "-Microsoft"),
          "The kernel " + m.kernel + " is the one of WSL 1.");
  const std::string distribution = m.variable("WSL_DISTRO_NAME");
  f->set("wsl.name", distribution.empty() ? "DISTRIBUTION" : distribution);
  f->set("platform", m.platform);
  f->set("arch", m.arch);
  f->flag("musl",
          root.exists("/lib/ld-musl-x86_64.so.1") || root.exists("/lib/ld-musl-aarch64.so.1"),
          "/lib/ld-musl-" + (m.arch.empty() ? std::string("x86_64") : m.arch) +
              ".so.1 is the loader: the system's C library is musl.");
  f->flag("jetson", m.jetson, "/etc/nv_tegra_release exists: a Jetson.");
  // "# R36 (release), REVISION: 4.3": the release of Jetson Linux.
  f->set("jetson.linux",
         between(root.read("/etc/nv_tegra_release", 4096).value_or(""), "# R", " "));
  std::string visible = m.variable("NVIDIA_VISIBLE_DEVICES");
  bool set = m.env.count("NVIDIA_VISIBLE_DEVICES") != 0;
  if (set)
    f->set("nvidia_visible", visible.empty() ? "empty" : visible,
           "NVIDIA_VISIBLE_DEVICES is " + (visible.empty() ? "empty" : visible) + ".");
  std::string capabilities = m.variable("NVIDIA_DRIVER_CAPABILITIES");
  bool compute =
      capabilities.empty() || contains(capabilities, "compute") || contains(capabilities, "all");
  f->flag("capabilities.no_compute", !compute,
          "NVIDIA_DRIVER_CAPABILITIES is " + capabilities + ", without compute.");
  f->flag("pci.listed", m.pci_listed);
  // Docker on the host.
  bool snap = root.exists("/snap/docker") || root.exists("/var/snap/docker") ||
              root.exists("/snap/bin/docker");
  bool plain = root.exists("/usr/bin/docker") || root.exists("/usr/bin/dockerd") ||
               m.packages.count("docker-ce") != 0 || m.packages.count("docker.io") != 0;
  f->flag("docker.snap", snap, "Docker is installed as a snap (/snap/docker).");
  std::string daemon = root.read("/etc/docker/daemon.json", 64 << 10).value_or("");
  f->flag("docker.installed", plain || snap || !daemon.empty());
  f->flag("docker.configured", root.exists("/etc/docker/daemon.json"),
          "/etc/docker/daemon.json exists.");
  f->flag("docker.runtime", contains(daemon, "nvidia"));
  bool toolkit = root.exists("/usr/bin/nvidia-ctk") ||
                 root.exists("/usr/bin/nvidia-container-runtime") ||
                 root.exists("/usr/bin/nvidia-container-cli") ||
                 m.packages.count("nvidia-container-toolkit") != 0;
  f->flag("toolkit.installed", toolkit, "nvidia-container-toolkit is installed.");
  f->flag("toolkit.absent", !toolkit, "nvidia-container-toolkit is not installed.");
  f->flag("docker.no_runtime", !contains(daemon, "nvidia"),
          "/etc/docker/daemon.json names no nvidia runtime.");
}

/// Instances of MIG that CUDA_VISIBLE_DEVICES names.
void mig_choice_facts(const Machine& m, Facts* f) {
  int mig = 0, unknown = 0;
  std::string bad;
  for (std::string_view part : split(m.variable("CUDA_VISIBLE_DEVICES"), ',')) {
    const std::string item(trim(part));
    if (item.rfind("MIG-", 0) != 0) continue;
    ++mig;
    const std::vector<std::string>& listed = m.smi_list.mig_uuids;
    bool known = std::find(listed.begin(), listed.end(), item) != listed.end() ||
                 item.rfind("MIG-GPU-", 0) == 0;
    if (m.has_smi_list && !known) ++unknown, bad = item;
  }
  if (mig > 0 && unknown == mig)
    f->set("mig.bad_id", bad,
           "CUDA_VISIBLE_DEVICES names " + bad + ", which nvidia-smi -L does not list.");
  else if (mig > 1)
    f->set("mig.several", std::to_string(mig),
           "CUDA_VISIBLE_DEVICES names " + std::to_string(mig) +
               " MIG instances; one process uses the first one only.");
}

/// Variables that choose devices.
void variable_facts(const Machine& m, Facts* f) {
  const VisibleDevices visible = visible_devices(m);
  if (visible.set) {
    f->set("cvd", visible.shown, "CUDA_VISIBLE_DEVICES is " + visible.shown + ".");
    if (visible.hides_all)
      f->set("cvd.hides", "yes", visible.reason);
    else if (!visible.reason.empty())
      f->set("cvd.cut", std::to_string(visible.entries), visible.reason);
    mig_choice_facts(m, f);
  }
  for (std::string name : {"JAX_PLATFORMS", "JAX_PLATFORM_NAME"}) {
    std::string value = lower(m.variable(name));
    // Of several the first is the one that JAX computes on.
    if (trim(std::string_view(value).substr(0, value.find(','))) == "cpu")
      f->set("jax.forced", name, name + " is " + value + ".");
  }
  for (std::string name : {"TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC"})
    if (!m.variable(name).empty() && m.variable(name) != "0")
      f->set("determinism", name, name + " is " + m.variable(name) + ".");
  for (const auto& [name, what] : {std::pair<const char*, const char*>{"COLAB_GPU", "Colab"},
                                   {"COLAB_RELEASE_TAG", "Colab"},
                                   {"KAGGLE_KERNEL_RUN_TYPE", "Kaggle"},
                                   {"JPY_PARENT_PID", "Jupyter"}})
    if (m.env.count(name) != 0 && !f->has("notebook"))
      f->set("notebook", what, std::string("The variable ") + name + " is set.");
  bool slurm = !m.variable("SLURM_JOB_ID").empty();
  bool none = m.variable("SLURM_JOB_GPUS").empty() && m.variable("SLURM_STEP_GPUS").empty() &&
              m.variable("SLURM_GPUS_ON_NODE").empty() && m.variable("SLURM_GPUS").empty();
  f->flag(
      "slurm.no_gpu", slurm && none && (!visible.set || visible.hides_all),
      "The job " + m.variable("SLURM_JOB_ID") + " of Slurm got no GPU: SLURM_JOB_GPUS is not set.");
  f->flag("growth", !m.variable("TF_FORCE_GPU_ALLOW_GROWTH").empty() &&
                        lower(m.variable("TF_FORCE_GPU_ALLOW_GROWTH")) != "false");
  if (!m.ld_library_path.empty())
    f->set("ldpath", m.ld_library_path, "LD_LIBRARY_PATH is " + m.ld_library_path + ".");
  if (!m.ld_library_path.empty()) f->set("ld.unset", "unset LD_LIBRARY_PATH && ");
}

}  // namespace

Facts machine_facts(const Root& root, const Machine& machine, const Data& data,
                    const std::vector<Environment>& environments) {
  Facts f;
  gpu_facts(machine, data, &f);
  module_facts(root, machine, &f);
  branch_facts(machine, data, &f);
  user_space_facts(root, machine, data, &f);
  node_facts(root, machine, &f);
  container_facts(root, machine, &f);
  variable_facts(machine, &f);
  command_facts(machine, data, &f);
  python_places(root, machine, environments, &f);
  measured_facts(machine, data, &f);
  log_facts(machine, data, &f);
  bool any = false;
  for (const Environment& env : environments) any |= brings_framework(env);
  f.flag("no_frameworks", !any, "No framework is installed in this tree.");
  return f;
}

}  // namespace tracefire::doctor
