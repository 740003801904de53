// SPDX-License-Identifier: Apache-2.0
//
// The device layer of a machine as its files tell it: system, GPUs, kernel modules, driver, device
// nodes, container, and what tools printed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/doctor/data.h"
#include "tools/doctor/read/packages.h"
#include "tools/doctor/read/smi.h"
#include "tools/doctor/root.h"

namespace tracefire::doctor {

struct Gpu {
  std::string name, pci_address, pci_device, capability;
  std::string driver;  ///< kernel driver that holds it, "" where nothing tells
  SmiRow measured;     ///< a row of the query table, empty where it was not measured
};

/// A file of the driver's user-space part.
struct DriverFile {
  std::string path;     ///< as the loader would open it
  std::string version;  ///< from the name of the file it leads to, "" where that has none
  std::string origin;   ///< "LD_LIBRARY_PATH", "ld.so.cache", "default"
};

enum class Presence { kUnknown, kAbsent, kPresent };

struct Machine {
  std::map<std::string, std::string> env;  ///< environment variables
  std::string platform = "linux";          ///< "linux", "windows", "darwin"
  std::string os_id, os_like, os_version, os_name, kernel, arch;
  bool wsl = false, jetson = false;
  std::string container;  ///< "docker", "podman", "kubernetes", "apptainer", "lxc", "" outside
  std::string container_proof;

  Presence gpu = Presence::kUnknown;
  bool pci_listed = false, amd_gpu = false, kfd = false, nvswitch = false;
  std::vector<Gpu> gpus;

  std::set<std::string> modules;
  bool modules_listed = false, nvidia_loaded = false;
  std::string module_version;  ///< of the loaded module
  std::string module_version_text;
  bool module_open = false;
  std::string module_file;  ///< nvidia.ko for the running kernel, "" where none
  std::string module_file_version;
  std::string module_file_elsewhere;  ///< for another kernel
  std::string module_other_kernel;    ///< that kernel; the newest where there are several
  bool kernel_gone = false;  ///< a newer kernel has a folder of modules, the running one has none
  bool node_gpu = false, node_control = false, node_uvm = false, node_dxg = false;
  bool windows_driver = false;  ///< nvcuda.dll lies in Windows' system folder
  std::string nodes_denied;     ///< a node that this user may not open (live only)
  std::string node_group;       ///< its group and mode, in words

  std::string ld_library_path;
  std::vector<std::string> ld_dirs;
  std::map<std::string, std::string> ld_cache;
  std::vector<std::string> default_dirs;  ///< ld.so.conf's, then the loader's own
  DriverFile libcuda, libnvml;            ///< what the loader takes
  std::vector<DriverFile> all_libcuda;    ///< every copy that was found
  std::string wsl_libcuda;                ///< /usr/lib/wsl/lib/libcuda.so.1 where it exists

  std::string smi_name = "nvidia-smi";  ///< what to call the source of the tables in evidence
  std::string smi_text, dmesg, mokutil, log;
  std::string smi_all;   ///< all that nvidia-smi printed, tables too
  std::string log_name;  ///< what to call the log in evidence
  std::vector<SmiRow> smi_rows, smi_apps;
  std::vector<SmiRow> smi_samples;  ///< every look at the GPUs, in order
  std::string use_report;           ///< a report of prove or of the monitor, as JSON
  std::vector<SmiEntry> smi_q;
  SmiList smi_list;
  bool has_smi_list = false;
  SmiTable smi_table;
  Presence secure_boot = Presence::kUnknown;
  std::string secure_boot_proof;
  std::map<std::string, SystemPackage> packages;  ///< those of NVIDIA, CUDA and containers
  std::string package_manager;                    ///< "dpkg", "rpm", "pacman", "apk"

  /// "" where it is not set.
  const std::string& variable(const std::string& name) const {
    static const std::string kNone;
    auto it = env.find(name);
    return it == env.end() ? kNone : it->second;
  }
};

/// nvidia-smi lists others and not this one: no framework sees it.
inline bool unlisted(const Machine& machine, const Gpu& gpu) {
  return !machine.smi_rows.empty() && gpu.measured.empty();
}

/// Reads it. `log_text` is what --log gave, "" for none.
Machine read_machine(const Root& root, const Data& data, std::map<std::string, std::string> env,
                     const std::string& log_text, const std::string& log_name);

/// "6.8.0-45-generic" comes before "6.8.0-101-generic".
bool older_kernel(std::string_view a, std::string_view b);
/// Packages of dpkg, rpm, pacman or apk.
void read_packages(const Root& root, Machine* machine);
/// The kernel's log of the running system as files tell it, "" where none does.
std::string kernel_log(const Root& root);
/// Puts the measured rows to the GPUs, makes GPUs of rows that have none, and finds capabilities.
void join_gpus(const Data& data, Machine* machine);
/// The file that the loader takes for `soname`: LD_LIBRARY_PATH, then the cache, then the default
/// folders. Empty path where there is none.
DriverFile find_in_loader_order(const Root& root, const Machine& machine,
                                const std::string& soname);
/// Version in the name of the file that `path` leads to: "9.1.0" of libcudnn.so.9 ->
/// libcudnn.so.9.1.0.
/// "" where the name has no more than the soname's number.
std::string version_from_name(const Root& root, const std::string& path);

}  // namespace tracefire::doctor
