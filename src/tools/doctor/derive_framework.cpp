// SPDX-License-Identifier: Apache-2.0
//
// Facts of one environment and of one framework in it.
#include "tools/doctor/beside.h"
#include "tools/doctor/derive.h"
#include "tools/doctor/fix.h"
#include "tools/doctor/libraries.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"
#include "tools/doctor/visible.h"

namespace tracefire::doctor {

namespace {

/// "9.3" of "9.3.0.75".
std::string two(const std::string& version) { return leading(version, 2); }

std::string arch_list(const Framework& fw) {
  std::vector<std::string> parts;
  for (const std::string& sass : fw.sass) parts.push_back("sm_" + sass);
  for (const std::string& ptx : fw.ptx) parts.push_back("compute_" + ptx);
  return join(parts, " ");
}

/// "12.0" of "120", "8.6" of "86".
std::string dotted(const std::string& number) {
  return number.size() < 2
             ? number
             : number.substr(0, number.size() - 1) + "." + number.substr(number.size() - 1);
}

/// A wheel whose code nobody has listed, built with a CUDA that is older than the GPU.
void old_cuda_facts(const Machine& m, const Data& data, const Framework& fw, Facts* f) {
  auto table = data.versions().find("capability");
  if (fw.build != Build::kGpu || !fw.sass.empty() || !fw.ptx.empty() || fw.cuda.empty() ||
      table == data.versions().end())
    return;
  for (const Gpu& gpu : visible_gpus(m)) {
    auto row = table->find(gpu.capability);
    const std::string needs = row == table->end() ? "" : text_of(*row, "min_cuda");
    if (needs.empty() || major_of(fw.cuda) >= major_of(needs)) continue;
    f->set("fw.cuda_before_gpu", needs,
           fw.product + " " + fw.version + " is built for CUDA " + fw.cuda + "; " + gpu.name +
               " (compute capability " + gpu.capability + ") came with CUDA " + needs + ".");
    f->set("fw.bad_cc", gpu.capability);
    f->set("fw.bad_gpu", gpu.name);
  }
}

/// Can this wheel's code run on a GPU of that capability?
void capability_facts(const Machine& m, const Data& data, const Framework& fw, Facts* f) {
  if (fw.build != Build::kGpu || (fw.sass.empty() && fw.ptx.empty())) return;
  size_t usable = 0;
  for (const Gpu& gpu : visible_gpus(m)) {
    const std::string& cc = gpu.capability;
    if (cc.empty()) continue;
    bool binary = false, ptx = false;
    std::string smallest, largest;
    for (const std::string& sass : fw.sass) {
      std::string own = dotted(sass);
      binary |= major_of(own) == major_of(cc) && compare_versions(own, cc) <= 0;
      if (smallest.empty() || compare_versions(own, smallest) < 0) smallest = own;
      if (largest.empty() || compare_versions(own, largest) > 0) largest = own;
    }
    for (const std::string& text : fw.ptx) {
      std::string own = dotted(text);
      ptx |= compare_versions(own, cc) <= 0;
      if (smallest.empty() || compare_versions(own, smallest) < 0) smallest = own;
    }
    if (binary) {
      ++usable;
      continue;
    }
    std::string has = fw.product + " " + fw.version +
                      (fw.variant.empty() ? "" : " (" + fw.variant + ")") + " has code for " +
                      arch_list(fw) + "; the GPU " + gpu.name + " has compute capability " + cc +
                      ".";
    std::string min_cuda;
    auto table = data.versions().find("capability");
    if (table != data.versions().end() && table->contains(cc))
      min_cuda = text_of((*table)[cc], "min_cuda");
    // PTX alone is not enough where the framework makes kernels itself with a compiler that does
    // not know the GPU: CUDA_ERROR_INVALID_PTX.
    bool compiler_knows =
        min_cuda.empty() || fw.cuda.empty() || compare_versions(fw.cuda, min_cuda) >= 0;
    bool new_generation = compare_versions(cc, "10.0") >= 0;
    if (ptx && (compiler_knows || !new_generation)) {
      f->set("fw.ptx_only", cc, has);
      ++usable;
      continue;
    }
    bool old = !smallest.empty() && compare_versions(cc, smallest) < 0;
    bool newer = ptx || (!largest.empty() && compare_versions(cc, largest) > 0) ||
                 compare_versions(cc, "10.0") >= 0;
    f->set(old || !newer ? "fw.cc_old" : "fw.cc_new", cc, has);
    f->set("fw.bad_cc", cc);
    f->set("fw.bad_gpu", gpu.name);
    f->set("fw.bad_arch", data.arch(cc));
  }
  f->flag("fw.some_gpu", usable > 0 && f->has("fw.bad_cc"),
          "Another GPU of this machine can be used by " + fw.product + " " + fw.version + ".");
}

void library_facts(const Root& root, const Machine& m, const Data& data, const Environment& env,
                   const Framework& fw, Facts* f) {
  std::vector<std::string> missing, elsewhere, others, in_pip, reasons;
  std::string cudnn_missing, cudnn_other, elsewhere_dir, wrong_companion;
  // conda's packages have a dist-info too, of the same version.
  const Dist* dist = env.dist(fw.dist);
  bool of_conda = fw.conda && dist == nullptr;
  for (const auto& [name, package] : env.conda)
    of_conda |= fw.conda && dist != nullptr && framework_of(name) == fw.id &&
                public_part(package.version) == public_part(dist->version);
  for (const Needed& need : fw.needed) {
    bool is_cudnn = stem_of(need.soname) == "libcudnn";
    if (!need.path.empty()) {
      // libcusolver.so.11 is a name of CUDA 11 and of CUDA 12: its companions tell which it is.
      std::string dir = parent_of(need.path);
      if (need.soname == "libcusolver.so.11" && major_of(fw.cuda) == 11 &&
          (root.exists(dir + "/libnvJitLink.so.12") || root.exists(dir + "/libcudart.so.12")))
        wrong_companion =
            need.path + " is CUDA 12's libcusolver.so.11 and needs libnvJitLink.so.12.";
      continue;
    }
    // conda installs what its packages need; a file that is not in this tree proves nothing.
    if (of_conda && need.other.empty() && need.elsewhere.empty()) continue;
    missing.push_back(need.soname);
    if (is_cudnn) cudnn_missing = need.soname, cudnn_other = need.other;
    if (!need.elsewhere.empty()) {
      elsewhere.push_back(need.elsewhere);
      if (!need.pip_path.empty()) in_pip.push_back(need.pip_path);
      if (elsewhere_dir.empty()) elsewhere_dir = parent_of(need.elsewhere);
    }
    if (!need.other.empty()) others.push_back(need.other);
  }
  if (!wrong_companion.empty()) f->set("fw.wrong_major", "libcusolver.so.11", wrong_companion);
  f->flag("fw.libs_known", !fw.needed.empty());
  std::vector<std::string> from;
  for (const Needed& need : fw.needed)
    if (!need.path.empty() &&
        (stem_of(need.soname) == "libcudnn" || stem_of(need.soname) == "libcudart"))
      from.push_back(need.soname + " from " + need.path +
                     (need.version.empty() ? "" : " (" + need.version + ")"));
  if (!from.empty())
    f->set("fw.loads", join(from, ", "),
           fw.product + " in " + env.prefix + " gets " + join(from, ", ") + ".");
  if (missing.empty()) return;
  f->set("fw.missing", join(missing, ", "),
         fw.product + " " + fw.version + " (" + fw.dist + " " + fw.version + ") opens " +
             join(missing, ", ") + ", which the loader does not find.");
  if (!elsewhere_dir.empty())
    f->set("fw.elsewhere_dir", elsewhere_dir,
           "There is a copy in " + elsewhere_dir + ", which is not on the loader's way.");
  std::vector<std::string> dirs;
  for (const std::string& path : elsewhere)
    if (std::find(dirs.begin(), dirs.end(), parent_of(path)) == dirs.end())
      dirs.push_back(parent_of(path));
  f->set("fw.elsewhere_dirs", join(dirs, ":"));
  const Json* release = data.release(fw.id, fw.version);
  std::string mode =
      release == nullptr || fw.id != "tensorflow" ? "runpath" : text_of(*release, "pip_libs");
  bool only_cudnn = missing.size() == 1 && !cudnn_missing.empty();
  bool all_elsewhere = elsewhere.size() == missing.size();
  bool extra = fw.id != "tensorflow" || mode != "none";
  std::string other_list = join(others, ", ");
  if (only_cudnn && !cudnn_other.empty()) {
    std::string version;
    for (const Dist* dist : pip_owners(env, cudnn_missing)) version = dist->version;
    if (version.empty() || cudnn_other.rfind(env.prefix, 0) != 0)
      version = version_from_name(root, cudnn_other);
    f->set("fw.cudnn_major", cudnn_missing,
           fw.product + " " + fw.version + " opens " + cudnn_missing + "; what is installed is " +
               cudnn_other + (version.empty() ? "." : " (cuDNN " + version + ")."));
    f->set("fw.cudnn_found", version);
  } else if (mode == "unreliable" && in_pip.size() * 2 > missing.size()) {
    f->set("fw.pip_missing", "unreliable",
           "The libraries are installed by pip, but TensorFlow " + two(fw.version) +
               " does not look into the folders nvidia/*/lib of its environment.");
  } else if (!others.empty() && !all_elsewhere && (!extra || contains(other_list, "libcudart"))) {
    f->set("fw.wrong_major", missing[0],
           "The loader finds another major version: " + other_list + ".");
  } else if (all_elsewhere) {
    f->set("fw.off_path", missing[0],
           "The libraries are there, in " + join(dirs, ", ") +
               ", but the loader does not look there.");
  } else if (!extra) {
    f->set("fw.off_path", missing[0],
           "No folder on the loader's way holds them" +
               std::string(m.ld_library_path.empty()
                               ? "; LD_LIBRARY_PATH is not set."
                               : "; LD_LIBRARY_PATH is " + m.ld_library_path + "."));
  } else {
    bool any_pip = false;
    for (const auto& [name, dist] : env.dists)
      any_pip |= name.rfind("nvidia-", 0) == 0 && contains(name, "-cu");
    f->set("fw.pip_missing", any_pip ? "partly" : "all",
           any_pip ? "Some of NVIDIA's packages are installed in " + env.prefix + ", not all."
                   : "None of NVIDIA's packages (nvidia-cudnn-cu12 and the like) is installed in " +
                         env.prefix + ".");
  }
}

/// The cuDNN that a framework gets, against the one it was built with.
void cudnn_facts(const Environment& env, const Framework& fw, Facts* f) {
  bool clobber =
      env.dist("nvidia-cudnn-cu12") != nullptr && env.dist("nvidia-cudnn-cu13") != nullptr;
  std::string wanted = fw.cudnn;
  if (fw.id == "torch")
    if (const Dist* torch = env.dist("torch"))
      for (std::string name : {"nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cudnn-cu11"})
        if (std::string pin = exact_pin(*torch, name); !pin.empty()) wanted = pin;
  if (fw.id == "jax")
    if (const Dist* plugin = env.dist(fw.plugin))
      for (const Requirement& requirement : plugin->requirements)
        if (requirement.name.rfind("nvidia-cudnn", 0) == 0)
          if (std::string least = between(requirement.conditions, ">=", ",<"); !least.empty())
            wanted = least;
  for (const Needed& need : fw.needed) {
    bool is_cudnn = stem_of(need.soname) == "libcudnn";
    // What LD_LIBRARY_PATH puts in front of the copy that belongs to the framework.
    std::string shadow = need.origin == "LD_LIBRARY_PATH" ? need.path : "";
    std::string shadow_version = need.origin == "LD_LIBRARY_PATH" ? need.version : "";
    if (need.origin == "LD_LIBRARY_PATH" && is_cudnn && !clobber && !wanted.empty() &&
        !shadow_version.empty()) {
      bool low = major_of(shadow_version) == major_of(wanted) &&
                 compare_versions(two(shadow_version), two(wanted)) < 0;
      bool better_there =
          !need.pip_path.empty() && compare_versions(two(need.pip_version), two(wanted)) >= 0;
      if (low && better_there)
        f->set("fw.shadow", parent_of(shadow),
               "LD_LIBRARY_PATH puts " + shadow + " (cuDNN " + shadow_version + ") before " +
                   need.pip_path + " (" + need.pip_version + ").");
    }
    if (is_cudnn && !clobber && !need.version.empty() && !wanted.empty() &&
        major_of(need.version) == major_of(wanted) &&
        compare_versions(two(need.version), two(wanted)) < 0) {
      f->set("fw.cudnn_low", need.version,
             fw.product + " " + fw.version + " was built with cuDNN " + two(wanted) +
                 " and gets cuDNN " + need.version + " from " + need.path +
                 "; it needs the same major version and an equal or higher minor version.");
      f->set("fw.cudnn_wanted", two(wanted));
    }
  }
}

/// Copies in LD_LIBRARY_PATH that get in although the framework's own folders come first.
void shadow_facts(const Root& root, const Machine& m, const Environment& env, const Framework& fw,
                  Facts* f) {
  if (!fw.pip_first) return;
  for (const Needed& need : fw.needed) {
    if (need.pip_path.empty()) continue;
    for (const std::string& dir : m.ld_dirs) {
      std::string path = dir + "/" + need.soname;
      bool own = false;
      for (const std::string& site : env.sites) own |= path.rfind(site + "/", 0) == 0;
      if (own || !root.exists(path)) continue;
      std::string version = version_from_name(root, path), toolkit = toolkit_version(root, dir);
      bool is_cudnn = stem_of(need.soname) == "libcudnn";
      if (version.empty() && is_cudnn)
        version = parse_cudnn_header(
            root.read(parent_of(dir) + "/include/cudnn_version.h", 256 << 10).value_or(""));
      if (fw.id == "torch" && is_cudnn && !version.empty() && two(version) != two(need.pip_version))
        f->set("fw.shadow", dir,
               "LD_LIBRARY_PATH holds " + path + " (cuDNN " + version + "), PyTorch's own is " +
                   need.pip_version +
                   "; parts of cuDNN that are opened later come from LD_LIBRARY_PATH.");
      if (fw.id == "jax" && is_cudnn && !version.empty() && !fw.cudnn.empty() &&
          compare_versions(two(version), two(fw.cudnn)) < 0) {
        f->set("fw.shadow", dir,
               "LD_LIBRARY_PATH holds " + path + " (cuDNN " + version +
                   "), which can take the place of pip's " + need.pip_version + ".");
        f->set("fw.cudnn_low", version,
               fw.product + " " + fw.version + " needs cuDNN " + two(fw.cudnn) +
                   " and can get cuDNN " + version + " from " + path + ".");
        f->set("fw.cudnn_wanted", two(fw.cudnn));
      }
      if (fw.id == "jax" && !is_cudnn && !toolkit.empty() && contains(fw.cuda, ".") &&
          compare_versions(two(toolkit), two(fw.cuda)) < 0)
        f->set("fw.shadow", dir,
               "LD_LIBRARY_PATH holds " + path + " of CUDA " + toolkit + "; JAX " + fw.version +
                   " was built with CUDA " + fw.cuda + ".");
      break;
    }
  }
}

void jax_facts(const Data& data, const Environment& env, const Framework& fw, Facts* f) {
  f->set("fw.plugin", fw.plugin);
  f->set("fw.plugin_version", fw.plugin_version);
  f->flag("fw.no_jaxlib", env.dist("jaxlib") == nullptr && env.conda.count("jaxlib") == 0);
  std::string major = fw.plugin.empty() ? "" : fw.plugin.substr(8, 2);
  f->set("fw.jax_extra", major.empty() ? "cuda12" : "cuda" + major);
  auto differs = [&](const std::string& version) {
    return !version.empty() && compare_versions(version, fw.version) != 0;
  };
  if (!fw.plugin.empty() && (differs(fw.plugin_version) || differs(fw.pjrt_version) ||
                             fw.plugin_version.empty() || fw.pjrt_version.empty())) {
    bool half = (fw.plugin_version.empty() || fw.pjrt_version.empty()) &&
                !differs(fw.plugin_version) && !differs(fw.pjrt_version);
    std::string shown =
        fw.plugin + " " + (fw.plugin_version.empty() ? "is not installed" : fw.plugin_version) +
        ", its pjrt package " + (fw.pjrt_version.empty() ? "is not installed" : fw.pjrt_version);
    if (!half || !fw.pjrt_version.empty())
      f->set("fw.plugin_differs", "yes",
             "jaxlib is " + fw.version + ", " + shown + "; all three must be the same version.");
  }
  // What the plugin asks of each of NVIDIA's packages.
  const Dist* plugin = env.dist(fw.plugin);
  if (plugin != nullptr)
    for (const Requirement& requirement : plugin->requirements) {
      const Dist* have = env.dist(requirement.name);
      if (have == nullptr || requirement.name.rfind("nvidia-", 0) != 0 ||
          contains(requirement.name, "cudnn"))
        continue;
      std::string least = between(requirement.conditions, ">=", ",<");
      if (!least.empty() && compare_versions(have->version, least) < 0)
        f->set("fw.jax_outdated", requirement.name,
               "JAX " + fw.version + " needs " + requirement.name + " " + least + " or newer; " +
                   have->version + " is installed.");
    }
  bool told = plugin != nullptr && !plugin->requirements.empty();
  auto least = data.versions().find("jax_least");
  if (plugin != nullptr && !told && least != data.versions().end() && major == "12")
    for (const auto& [name, version] : least->items()) {
      const Dist* have = env.dist(name);
      if (have != nullptr && version.is_string() &&
          compare_versions(have->version, version.get<std::string>()) < 0)
        f->set("fw.jax_outdated", name,
               "JAX " + fw.version + " needs " + name + " " + version.get<std::string>() +
                   " or newer; " + have->version + " is installed.");
    }
  if (const Dist* jax = env.dist("jax"))
    if (compare_versions(jax->version, fw.version) != 0 &&
        compare_versions(two(jax->version), two(fw.version)) != 0)
      f->set("fw.jax_and_jaxlib", "yes",
             "jax is " + jax->version + ", jaxlib is " + fw.version + ".");
}

void python_package_facts(const Machine& m, const Data& data, const Environment& env,
                          const Framework& fw, Facts* f) {
  const Dist* numpy = env.dist("numpy");
  std::string numpy_version = numpy != nullptr ? numpy->version : "";
  if (auto it = env.conda.find("numpy"); numpy_version.empty() && it != env.conda.end())
    numpy_version = it->second.version;
  const Json* release = data.release(fw.id, fw.version);
  bool old_abi = fw.id == "tensorflow" && compare_versions(fw.version, "2.18") < 0 &&
                 major_of(fw.version) >= 1;
  old_abi |= fw.id == "jax" && compare_versions(fw.version, "0.4.26") < 0;
  if (const Dist* dist = env.dist(fw.dist); dist != nullptr && fw.id == "tensorflow")
    for (const Requirement& requirement : dist->requirements)  // a rebuilt wheel may take NumPy 2
      if (requirement.name == "numpy" && !contains(requirement.conditions, "<2") && old_abi &&
          contains(requirement.conditions, "<3"))
        old_abi = false;
  if (old_abi && major_of(numpy_version) >= 2)
    f->set("fw.numpy_abi", numpy_version,
           fw.product + " " + fw.version + " was compiled with NumPy 1; NumPy " + numpy_version +
               " is installed in " + env.prefix + ".");
  // PyTorch says so and goes on; what passes arrays between the two then fails.
  if (fw.id == "torch" && compare_versions(fw.version, "2.3") < 0 && major_of(numpy_version) >= 2)
    f->set("fw.numpy_torch", numpy_version,
           fw.product + " " + fw.version + " was compiled with NumPy 1; NumPy " + numpy_version +
               " is installed in " + env.prefix + ".");
  const Dist* protobuf = env.dist("protobuf");
  if (fw.id == "tensorflow" && protobuf != nullptr && compare_versions(fw.version, "2.12") < 0 &&
      major_of(protobuf->version) >= 4)
    f->set("fw.protobuf", protobuf->version,
           "TensorFlow " + fw.version +
               " needs protobuf below 4 (3.20.3 is the last that all its "
               "releases before 2.12 take); " +
               protobuf->version + " is installed in " + env.prefix + ".");
  // XLA's device library and ptxas, where pip or conda bring the CUDA libraries.
  bool pip_cuda = false,
       conda_cuda = env.conda.count("cudatoolkit") != 0 || env.conda.count("cuda-cudart") != 0;
  for (const auto& [name, dist] : env.dists) pip_cuda |= name.rfind("nvidia-cuda-runtime", 0) == 0;
  bool uses = fw.build == Build::kGpu &&
              ((fw.id == "tensorflow" && compare_versions(fw.version, "2.11") >= 0) ||
               (fw.id == "jax" && compare_versions(fw.version, "0.4.31") >= 0));
  f->flag("fw.needs_libdevice", uses && (pip_cuda || conda_cuda));
  f->flag("fw.pip_cuda", pip_cuda);
  (void)release;
  (void)m;
}

/// nvvm/libdevice/libdevice.10.bc and bin/ptxas, wherever XLA looks for them.
void compiler_facts(const Root& root, const Machine& m, const Environment& env, const Framework& fw,
                    Facts* f) {
  if (!f->has("fw.needs_libdevice")) return;
  std::vector<std::string> homes;
  for (const std::string& site : env.sites)
    for (std::string dir :
         {"/nvidia/cuda_nvcc", "/nvidia/cu13", "/nvidia/cu12", "/triton/backends/nvidia"})
      homes.push_back(site + dir);
  homes.push_back(env.prefix);
  homes.push_back(env.prefix + "/targets/x86_64-linux");
  std::string flags = between(m.variable("XLA_FLAGS"), "--xla_gpu_cuda_data_dir=", " ");
  for (std::string dir :
       {flags, m.variable("CUDA_DIR"), m.variable("CUDA_HOME"), m.variable("CUDA_PATH"),
        std::string("/opt/cuda"), std::string("/usr/lib/cuda"),
        std::string("/usr/lib/nvidia-cuda-toolkit")})
    if (!dir.empty()) homes.push_back(dir);
  for (const std::string& name : root.list("/usr/local"))
    if (name.rfind("cuda", 0) == 0) homes.push_back("/usr/local/" + name);
  bool libdevice = false, ptxas = root.exists("/usr/bin/ptxas");
  for (const std::string& home : homes) {
    for (std::string file :
         {"/nvvm/libdevice/libdevice.10.bc", "/libdevice/libdevice.10.bc", "/lib/libdevice.10.bc"})
      libdevice |= root.exists(home + file);
    ptxas |= root.exists(home + "/bin/ptxas");
  }
  for (std::string_view dir : split(m.variable("PATH"), ':'))
    if (!dir.empty()) ptxas |= root.exists(std::string(dir) + "/ptxas");
  for (const auto& [name, dist] : env.conda)
    if (name.rfind("cuda-nvcc", 0) == 0) libdevice = true, ptxas = true;
  f->flag("fw.no_libdevice", !libdevice,
          "No nvvm/libdevice/libdevice.10.bc is in " + env.prefix +
              " or below /usr/local/cuda, and " + fw.product + " does not bring it.");
  f->flag("fw.no_ptxas", !ptxas,
          "No ptxas is in " + env.prefix + ", below /usr/local/cuda or on PATH.");
}

/// Packages for NVIDIA's CUDA beside a build for ROCm, and their like for ROCm.
void cuda_package_facts(const Environment& env, const std::vector<Framework>& frameworks,
                        Facts* f) {
  for (const Framework& fw : frameworks)
    if (fw.build == Build::kRocm) f->set("env.rocm", fw.product, fw.build_proof);
  static constexpr std::pair<const char*, const char*> kPackages[] = {
      {"onnxruntime-gpu", "onnxruntime-rocm"},
      {"cupy-cuda11x", ""},
      {"cupy-cuda12x", ""},
      {"cupy-cuda13x", ""},
      {"tensorrt", ""},
      {"paddlepaddle-gpu", ""}};
  for (const auto& [name, rocm] : kPackages)
    if (const Dist* dist = env.dist(name)) {
      f->set("env.cuda_package", name,
             std::string(name) + " " + dist->version + " is installed in " + env.prefix + ".");
      f->set("env.rocm_package", rocm);
      return;
    }
}

/// Two frameworks of one environment that ask for different builds of the same library.
void clash_facts(const Data& data, const Environment& env, const std::vector<Framework>& all,
                 const Framework& fw, Facts* f) {
  if (f->has("fw.shadow") ||
      (!f->has("fw.cudnn_low") && !f->has("fw.cudnn_major") && !f->has("fw.jax_outdated")))
    return;
  const CudnnNeed own = cudnn_need(data, &env, fw);
  std::vector<CudnnNeed> fitting = {own};
  for (const Framework& other : all) {
    if (other.id == fw.id) continue;
    const CudnnNeed need = cudnn_need(data, &env, other);
    if (!need.by_pip()) continue;
    // What JAX lacks besides cuDNN is of the CUDA that the other one pins.
    const Dist* installed = env.dist(need.package());
    const bool pins_all = f->has("fw.jax_outdated") && installed != nullptr &&
                          two(need.exact) == two(installed->version);
    if (clash_between(own, need).empty() && !pins_all) {
      fitting.push_back(need);
      continue;
    }
    f->set("fw.clash", other.product,
           other.product + " " + other.version + " (" + other.dist + ") in the same environment " +
               need.words() + ".");
    f->set("fw.clash_id", other.id);
    f->set("fw.clash_dist", other.dist);
    f->set("fw.clash_version", other.version);
  }
  if (own.id != "torch") f->set("fw.cudnn_pinned", pinned_cudnn(fitting));
}

}  // namespace

Facts environment_facts(const Facts& machine, const Environment& env,
                        const std::vector<Framework>& frameworks) {
  Facts f = machine;
  f.set("env", env.prefix,
        "The environment is " + env.prefix +
            (env.python.empty() ? "." : ", Python " + env.python + "."));
  f.set("env.kind", env.kind);
  f.set("env.tool", env.tool);
  cuda_package_facts(env, frameworks, &f);
  if (!env.active) f.set("env.stray", env.stray, env.stray);
  f.set("env.python_path", env.python_path,
        env.python_path.empty() ? ""
                                : "PYTHONPATH puts the packages of " + env.python_path +
                                      " before those of " + env.prefix + ".");
  f.set("env.python", env.python,
        env.python.empty() ? "" : "The Python of " + env.prefix + " is " + env.python + ".");
  f.set("env.minor", leading(env.python, 2));
  installer_facts("", &env, &f);
  f.set("python", env.interpreter);
  const Dist* cu12 = env.dist("nvidia-cudnn-cu12");
  const Dist* cu13 = env.dist("nvidia-cudnn-cu13");
  if (cu12 != nullptr && cu13 != nullptr) {
    f.set("cudnn.clobber", "yes",
          "nvidia-cudnn-cu12 " + cu12->version + " and nvidia-cudnn-cu13 " + cu13->version +
              " are both installed in " + env.prefix +
              "; both own nvidia/cudnn/lib/libcudnn.so.9, and the one that was installed last is "
              "there.");
    bool wants13 = false, wants12 = false;
    for (const Framework& fw : frameworks)
      if (fw.build == Build::kGpu) (major_of(fw.cuda) == 13 ? wants13 : wants12) = true;
    f.set("cudnn.keep", wants13 && !wants12 ? "nvidia-cudnn-cu13" : "nvidia-cudnn-cu12");
    f.set("cudnn.drop", wants13 && !wants12 ? "nvidia-cudnn-cu12" : "nvidia-cudnn-cu13");
    f.flag("cudnn.both_wanted", wants12 && wants13);
  }
  if (const Dist* stub = env.dist("tensorflow-gpu");
      stub != nullptr && compare_versions(stub->version, "2.12") >= 0)
    f.set("tensorflow_gpu.stub", stub->version,
          "tensorflow-gpu " + stub->version + " is installed in " + env.prefix +
              ": an empty package; the name ended with 2.11.");
  std::vector<std::string> names;
  for (const Framework& fw : frameworks) names.push_back(fw.id);
  f.set("env.frameworks", join(names, " "));
  return f;
}

Facts framework_facts(const Facts& environment, const Root& root, const Machine& m,
                      const Data& data, const Environment& env, const std::vector<Framework>& all,
                      const Framework& fw) {
  Facts f = environment;
  f.set("fw", fw.id);
  f.set("fw.product", fw.product);
  f.set("fw.dist", fw.dist);
  f.set("fw.version", fw.version,
        fw.product + " " + fw.version + " (" + fw.dist + " " + fw.version + ") is installed in " +
            env.prefix + ".");
  f.set("fw.release", two(fw.version));
  f.set("fw.build",
        fw.build == Build::kGpu    ? "gpu"
        : fw.build == Build::kCpu  ? "cpu"
        : fw.build == Build::kRocm ? "rocm"
                                   : "unknown",
        fw.build_proof);
  f.set(
      "fw.cuda", fw.cuda,
      fw.cuda.empty() ? "" : fw.product + " " + fw.version + " is built for CUDA " + fw.cuda + ".");
  f.set("fw.cuda_major", leading(fw.cuda, 1));
  f.flag("fw.aarch64", fw.aarch64 || f.get("arch") == "aarch64");
  f.set("fw.variant", fw.variant);
  f.flag("fw.conda", fw.conda);
  if (env.kind == "conda") f.set("pip.by", fw.conda ? "conda" : "pip");
  f.set("fw.conda_build", fw.conda_build);
  f.set("fw.search", fw.search_proof, fw.search_proof);
  f.flag("env.legacy_keras", m.variable("TF_USE_LEGACY_KERAS") == "1" ||
                                 lower(m.variable("TF_USE_LEGACY_KERAS")) == "true");
  bool pypi = env.dist(fw.dist) != nullptr;
  f.flag("fw.pypi", pypi);
  if (const Json* release = data.release(fw.id, fw.version)) {
    f.set("fw.cudnn_pip", fw.cudnn);
    auto extra = release->find("extra");
    bool has_extra = extra != release->end() && extra->is_boolean() && extra->get<bool>();
    f.flag("fw.no_extra", fw.id == "tensorflow" && !has_extra);
  }
  std::string floor = data.driver_floor(fw.cuda, m.wsl);
  if (fw.build == Build::kGpu && !floor.empty()) {
    f.set("fw.driver_floor", floor,
          "CUDA " + leading(fw.cuda, 1) + ".x needs driver " + floor + " or newer.");
    std::string driver = f.get("driver.version");
    f.flag("fw.driver_low", !driver.empty() && compare_versions(driver, floor) < 0,
           fw.product + " " + fw.version + " is built for CUDA " + fw.cuda +
               ", which needs driver " + floor + " or newer; the driver is " + driver + ".");
    f.set("cmd.driver_floor", driver_command(m, data, f, major_of(floor)));
    std::string last = f.get("driver.last_branch");
    f.flag("fw.no_driver_for_gpu", !last.empty() && major_of(last) < major_of(floor));
  }
  if (fw.id == "jax") jax_facts(data, env, fw, &f);
  // A plug-in that is not used opens nothing.
  if (fw.build == Build::kGpu && !f.has("fw.plugin_differs")) {
    if (m.platform == "windows")
      windows_library_facts(root, m, env, fw, &f);
    else
      library_facts(root, m, data, env, fw, &f);
    cudnn_facts(env, fw, &f);
    shadow_facts(root, m, env, fw, &f);
    capability_facts(m, data, fw, &f);
    old_cuda_facts(m, data, fw, &f);
  }
  python_package_facts(m, data, env, fw, &f);
  compiler_facts(root, m, env, fw, &f);
  keras_facts(root, m, data, env, all, fw, &f);
  clash_facts(data, env, all, fw, &f);
  auto cublas = [&]() -> std::string {
    for (std::string name : {"nvidia-cublas-cu12", "nvidia-cublas"})
      if (const Dist* dist = env.dist(name)) return dist->version;
    return "";
  }();
  bool affected = false;
  for (const Gpu& gpu : m.gpus)
    affected |= major_of(gpu.capability) == 10 || major_of(gpu.capability) == 11;
  if (fw.id == "jax" && affected && !cublas.empty() && compare_versions(cublas, "12.8") >= 0 &&
      compare_versions(cublas, "13.2") < 0)
    f.set("fw.cublas_corrupts", cublas,
          "cuBLAS is " + cublas +
              "; versions 12.8 to 13.1 can corrupt data on GPUs of compute capability 10.x and "
              "11.x.");
  if (fw.build == Build::kGpu && major_of(f.get("gpu.cc")) >= 12) f.set("fw.torch_index", "cu128");
  return f;
}

}  // namespace tracefire::doctor
