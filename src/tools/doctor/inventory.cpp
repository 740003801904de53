// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/inventory.h"

#include "tools/doctor/libraries.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

constexpr size_t kMaxLines = 600;
constexpr size_t kMostEmptyStrays = 3;

void machine_lines(const Root& root, const Machine& m, std::vector<std::string>* out) {
  std::vector<std::string> parts;
  if (!m.os_name.empty()) parts.push_back(m.os_name);
  if (!m.kernel.empty()) parts.push_back("kernel " + m.kernel);
  if (!m.arch.empty()) parts.push_back(m.arch);
  if (m.wsl) parts.push_back("WSL");
  out->push_back("System: " + (parts.empty() ? "unknown" : join(parts, ", ")));
  if (!m.container.empty())
    out->push_back("Container: " + m.container + " (" + m.container_proof + ")");
  for (size_t i = 0; i < m.gpus.size() && i < 64; ++i) {
    const Gpu& gpu = m.gpus[i];
    std::string line =
        "GPU " + std::to_string(i) + ": " +
        (gpu.name.empty()
             ? std::string("NVIDIA") + (gpu.pci_device.empty() ? "" : " device ") + gpu.pci_device
             : gpu.name);
    if (!gpu.capability.empty()) line += ", compute capability " + gpu.capability;
    if (!gpu.pci_address.empty()) line += ", at " + gpu.pci_address;
    for (const auto& [key, label] :
         {std::pair<const char*, const char*>{"memory.used", " MiB in use"},
          {"memory.total", " MiB in all"}})
      if (auto it = gpu.measured.find(key); it != gpu.measured.end() && is_version(it->second))
        line += ", " + it->second + label;
    if (auto it = gpu.measured.find("compute_mode"); it != gpu.measured.end())
      line += ", compute mode " + it->second;
    struct Told {
      const char *key, *label, *unit;
    };
    for (const Told& told : {Told{"mig.mode.current", "MIG is ", ""},
                             {"persistence_mode", "persistence is ", ""},
                             {"power.limit", "power limit is ", " W"},
                             {"clocks.max.sm", "highest clock is ", " MHz"}}) {
      const auto it = gpu.measured.find(told.key);
      if (it == gpu.measured.end() || it->second.empty()) continue;
      // nvidia-smi's own output has the unit in it.
      line +=
          std::string(", ") + told.label + it->second + (is_version(it->second) ? told.unit : "");
    }
    out->push_back(line);
  }
  if (!m.module_version.empty())
    out->push_back((m.wsl ? "Driver of Windows: " : "Driver: kernel module ") + m.module_version +
                   (m.module_open                   ? ", open flavour"
                    : m.module_version_text.empty() ? ""
                                                    : ", proprietary flavour"));
  std::vector<std::string> modules;
  for (std::string name : {"nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nouveau",
                           "nova_core", "nova_drm", "amdgpu"})
    if (m.modules.count(name) != 0) modules.push_back(name);
  if (m.modules_listed)
    out->push_back("Kernel modules for GPUs: " + (modules.empty() ? "none" : join(modules, ", ")));
  if (!m.module_file.empty()) out->push_back("Kernel module on disk: " + m.module_file);
  for (const DriverFile& file : m.all_libcuda)
    out->push_back("libcuda " + (file.version.empty() ? "of unknown version" : file.version) +
                   ": " + file.path);
  if (!m.libcuda.path.empty())
    out->push_back("The loader takes libcuda.so.1 from " + m.libcuda.path + " (" +
                   m.libcuda.origin + ").");
  std::vector<std::string> nodes;
  for (std::string name : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg",
                           "/dev/kfd", "/dev/nvidia-caps"})
    if (root.exists(name)) nodes.push_back(name);
  out->push_back("Device nodes: " + (nodes.empty() ? "none" : join(nodes, ", ")));
  for (const std::string& uuid : m.smi_list.mig_uuids) out->push_back("MIG instance: " + uuid);
}

/// Variables that decide something; all others are left out.
void variable_lines(const Machine& m, std::vector<std::string>* out) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES",
                           "NVIDIA_VISIBLE_DEVICES",
                           "NVIDIA_DRIVER_CAPABILITIES",
                           "LD_LIBRARY_PATH",
                           "CUDA_HOME",
                           "CUDA_PATH",
                           "CUDA_DEVICE_ORDER",
                           "CUDA_MODULE_LOADING",
                           "VIRTUAL_ENV",
                           "CONDA_PREFIX",
                           "JAX_PLATFORMS",
                           "JAX_PLATFORM_NAME",
                           "XLA_FLAGS",
                           "TF_FORCE_GPU_ALLOW_GROWTH",
                           "TF_USE_LEGACY_KERAS",
                           "KERAS_BACKEND",
                           "XLA_PYTHON_CLIENT_PREALLOCATE",
                           "XLA_PYTHON_CLIENT_MEM_FRACTION",
                           "TF_XLA_FLAGS",
                           "TF_GPU_ALLOCATOR",
                           "TF_ENABLE_ONEDNN_OPTS",
                           "TF_DETERMINISTIC_OPS",
                           "TF_CUDNN_DETERMINISTIC",
                           "TF_CUDNN_USE_FRONTEND",
                           "TF_CUDNN_USE_AUTOTUNE",
                           "TF_NUM_INTRAOP_THREADS",
                           "TF_NUM_INTEROP_THREADS",
                           "NVIDIA_TF32_OVERRIDE",
                           "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
                           "CUBLAS_WORKSPACE_CONFIG",
                           "JAX_DEFAULT_MATMUL_PRECISION",
                           "JAX_ENABLE_X64",
                           "PYTORCH_CUDA_ALLOC_CONF",
                           "PYTHONHASHSEED",
                           "OMP_NUM_THREADS",
                           "CUDA_LAUNCH_BLOCKING",
                           "SLURM_JOB_ID",
                           "SLURM_JOB_GPUS",
                           "TRACEFIRE_CUDA_PATH"})
    if (auto it = m.env.find(name); it != m.env.end())
      out->push_back(std::string(name) + "=" + it->second);
}

void package_lines(const Machine& m, std::vector<std::string>* out) {
  size_t count = 0;
  for (const auto& [name, package] : m.packages)
    if (!package.version.empty() && ++count <= 60)
      out->push_back(
          "System package " + name + " " + package.version + " (" + m.package_manager +
          (package.state.empty() || package.state == "installed" ? "" : ", " + package.state) +
          ")");
}

void toolkit_lines(const Root& root, std::vector<std::string>* out) {
  for (const std::string& name : root.list("/usr/local")) {
    if (name.rfind("cuda", 0) != 0 || !root.link("/usr/local/" + name).empty()) continue;
    std::string version = toolkit_version(root, "/usr/local/" + name);
    out->push_back("CUDA toolkit " + (version.empty() ? "of unknown version" : version) +
                   ": /usr/local/" + name);
  }
}

void environment_lines(const Surveyed& surveyed, const std::string& verdict,
                       std::vector<std::string>* out) {
  const Environment& env = surveyed.env;
  std::string line = "Environment " + env.prefix + ": " + env.kind +
                     (env.python.empty() ? "" : ", Python " + env.python);
  if (env.active) line += ", the active one (" + env.active_proof + ")";
  if (!surveyed.frameworks.empty()) line += ", verdict " + verdict;
  if (!env.stray.empty() && !env.active) line += ", not counted: " + env.stray;
  if (!env.python_path.empty()) line += ", with " + env.python_path + " of PYTHONPATH before it";
  out->push_back(line);
  for (const Framework& fw : surveyed.frameworks) {
    std::string text =
        fw.product + " " + fw.version + " (" + fw.dist + " " + fw.version + ") in " + env.prefix;
    if (fw.build == Build::kCpu) text += ", built without CUDA";
    if (fw.build == Build::kRocm) text += ", built for ROCm";
    if (fw.build == Build::kGpu && !fw.cuda.empty())
      text += ", built for CUDA " + fw.cuda + (fw.cudnn.empty() ? "" : " and cuDNN " + fw.cudnn);
    out->push_back(text);
    for (const Needed& need : fw.needed) {
      bool telling = stem_of(need.soname) == "libcudnn" || stem_of(need.soname) == "libcudart" ||
                     stem_of(need.soname) == "libcublas";
      if (telling && !need.path.empty())
        out->push_back(fw.product + " gets " + need.soname + " from " + need.path + " (" +
                       need.origin + (need.version.empty() ? "" : ", " + need.version) + ").");
    }
  }
  std::set<std::string> shown;
  for (const Framework& fw : surveyed.frameworks) shown.insert(fw.dist);
  for (const auto& [name, dist] : env.dists) {
    std::string product = product_of_dist(name);
    if (product.empty() || shown.count(name) != 0) continue;
    out->push_back(product + " " + dist.version + " (" + name + " " + dist.version + ") in " +
                   env.prefix);
  }
  for (const auto& [name, dist] : env.conda) {
    std::string product = product_of_dist(name == "pytorch" ? "torch" : name);
    if (!product.empty())
      out->push_back(product + " " + dist.version + " (conda's " + name + " " + dist.version +
                     ", build " + dist.build + ") in " + env.prefix);
  }
}

}  // namespace

std::vector<std::string> inventory_lines(
    const Root& root, const Survey& survey,
    const std::function<std::string(const std::string&)>& verdict_for) {
  std::vector<std::string> out;
  machine_lines(root, survey.machine, &out);
  variable_lines(survey.machine, &out);
  toolkit_lines(root, &out);
  package_lines(survey.machine, &out);
  size_t empty_strays = 0;
  for (const Surveyed& surveyed : survey.environments) {
    std::vector<std::string> lines;
    environment_lines(surveyed, verdict_for(surveyed.env.prefix), &lines);
    const Environment& env = surveyed.env;
    const bool tells_little = lines.size() == 1 && !env.stray.empty() && !env.active;
    if (tells_little && ++empty_strays > kMostEmptyStrays) continue;
    out.insert(out.end(), lines.begin(), lines.end());
  }
  if (empty_strays > kMostEmptyStrays) {
    out.push_back(std::to_string(empty_strays - kMostEmptyStrays) +
                  " more environments hold none of these packages and are not counted.");
  }
  for (std::string& line : loaded_lines(root, survey)) out.push_back(std::move(line));
  if (out.size() > kMaxLines) {
    size_t more = out.size() - kMaxLines;
    out.resize(kMaxLines);
    out.push_back("And " + std::to_string(more) + " more entries.");
  }
  return out;
}

}  // namespace tracefire::doctor
