// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/frameworks.h"

#include <algorithm>
#include <iterator>

#include "tools/doctor/libraries.h"
#include "tools/doctor/read/elf.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

/// Distributions that bring a framework, the most telling first.
struct Bringer {
  const char* id;
  const char* dist;
};
constexpr Bringer kBringers[] = {
    {"tensorflow", "tensorflow"},
    {"tensorflow", "tensorflow-cpu"},
    {"tensorflow", "tensorflow-gpu"},
    {"tensorflow", "tensorflow-intel"},
    {"tensorflow", "tf-nightly"},
    {"tensorflow", "tf-nightly-cpu"},
    {"tensorflow", "tf-nightly-gpu"},
    {"tensorflow", "tf-nightly-intel"},
    {"tensorflow", "tf-nightly-macos"},
    {"tensorflow", "tensorflow-macos"},
    {"tensorflow", "tensorflow-rocm"},
    {"tensorflow", "tensorflow-cpu-aws"},
    {"tensorflow", "tensorflow-aarch64"},
    {"tensorflow", "nvidia-tensorflow"},
    {"tensorflow", "intel-tensorflow"},
    {"tensorflow", "intel-tensorflow-avx512"},
    {"torch", "torch"},
    {"jax", "jaxlib"},
    {"jax", "jax"},
    {"keras", "keras"},
    {"tracefire", "tracefire"},
};

/// conda's packages that bring a framework, the one with its library first.
const std::map<std::string, std::vector<std::string>>& conda_bringers() {
  static const std::map<std::string, std::vector<std::string>> kNames = {
      {"tensorflow",
       {"tensorflow-base", "tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-mkl",
        "tensorflow-eigen"}},
      {"torch", {"pytorch", "libtorch", "pytorch-cpu", "pytorch-gpu"}},
      {"jax", {"jaxlib"}},
      {"keras", {"keras"}}};
  return kNames;
}

/// Builds whose name says that they are without CUDA.
bool cpu_by_name(const std::string& dist) {
  return contains(dist, "-cpu") || contains(dist, "-macos") || contains(dist, "intel") ||
         dist == "tensorflow-aarch64";
}

BuildInfo tensorflow_build(const Root& root, const std::string& site) {
  return parse_tensorflow_build(
      root.read(site + "/tensorflow/python/platform/build_info.py", 64 << 10).value_or(""));
}

void set_release(const Data& data, Framework* f) {
  const Json* release = data.release(f->id, f->version);
  if (release == nullptr) return;
  if (f->cuda.empty()) f->cuda = text_of(*release, "cuda");
  // A build that tells its major version (NVIDIA's own take a newer one than PyPI's) keeps it.
  std::string cudnn = text_of(*release, "cudnn");
  if (f->cudnn.empty() || (!contains(f->cudnn, ".") && major_of(cudnn) == major_of(f->cudnn)))
    f->cudnn = cudnn;
  if (f->sass.empty() && f->ptx.empty()) {
    f->sass = texts_of(*release, "sass");
    f->ptx = texts_of(*release, "ptx");
  }
}

void describe_tensorflow(const Root& root, const Machine& machine, const Data& data,
                         const Environment& env, Framework* f) {
  BuildInfo info;
  for (const std::string& site : env.sites)
    if (!info.known) {
      info = tensorflow_build(root, site);
      if (info.known) f->site = site;
    }
  const std::string file = f->site + "/tensorflow/python/platform/build_info.py";
  if (f->dist == "tensorflow-rocm" || info.rocm) {
    f->build = Build::kRocm;
    f->build_proof = f->dist + " is built for ROCm.";
  } else if (cpu_by_name(f->dist)) {
    bool gpu = info.known && info.cuda && env.dist("tensorflow") != nullptr;
    f->build = gpu ? Build::kGpu : Build::kCpu;
    f->build_proof = f->dist + " " + f->version + " is a build without CUDA.";
  } else if (info.known) {
    f->build = info.cuda ? Build::kGpu : Build::kCpu;
    f->build_proof = file + " says is_cuda_build " + (info.cuda ? "True." : "False.");
  } else if ((machine.arch == "aarch64" || f->aarch64) && !f->conda &&
             (f->dist == "tensorflow" || f->dist == "tf-nightly")) {
    f->build = Build::kCpu;
    f->build_proof = "The aarch64 wheels of TensorFlow on PyPI are built without CUDA.";
  } else if (!f->conda) {
    f->build = Build::kGpu;
    f->build_proof = "The wheel " + f->dist + " " + f->version + " for Linux is built with CUDA.";
  }
  // On PyPI only the aarch64 wheels named tensorflow are without CUDA.
  bool nvidia_packages = false;
  for (const auto& [name, dist] : env.dists)
    nvidia_packages |= name.rfind("nvidia-", 0) == 0 && contains(name, "-cu");
  bool plain = f->dist == "tensorflow" || f->dist == "tf-nightly";
  if (info.known && !info.cuda && plain && nvidia_packages && machine.platform == "linux")
    f->aarch64 = true;
  f->cuda = info.cuda_version;
  if (f->dist == "nvidia-tensorflow" && info.cuda_version.empty())
    f->cuda = "11.8";  // NVIDIA's own build of 1.15
  f->cudnn = info.cudnn_version;
  f->sass = info.sass;
  f->ptx = info.ptx;
  set_release(data, f);
  // The library itself tells whether its own search path comes before or after LD_LIBRARY_PATH.
  for (std::string name :
       {"/tensorflow/libtensorflow_cc.so.2", "/tensorflow/libtensorflow_framework.so.2"}) {
    std::string path = f->site + name;
    if (!root.exists(path)) continue;
    ElfFacts elf = read_elf(
        [&](uint64_t at, size_t size) { return root.read_at(path, static_cast<off_t>(at), size); });
    if (!elf.valid) continue;
    if (!elf.runpath.empty())
      f->search_proof =
          path + " carries DT_RUNPATH, so LD_LIBRARY_PATH comes before its own folders.";
    if (!elf.rpath.empty() && elf.runpath.empty())
      f->pip_first = true,
      f->search_proof = path + " carries DT_RPATH, which comes before LD_LIBRARY_PATH.";
    break;
  }
}

void describe_torch(const Root& root, const Machine& machine, const Data& data, Framework* f) {
  BuildInfo info =
      parse_torch_version(root.read(f->site + "/torch/version.py", 64 << 10).value_or(""));
  std::string local =
      local_part(f->version).empty() ? local_part(info.framework_version) : local_part(f->version);
  f->variant = local;
  bool wheel_cpu = local.rfind("cpu", 0) == 0;
  if (info.rocm || local.rfind("rocm", 0) == 0) {
    f->build = Build::kRocm;
    f->build_proof = "PyTorch " + f->version + " is built for ROCm.";
  } else if (wheel_cpu || (info.known && !info.cuda)) {
    f->build = Build::kCpu;
    f->build_proof = wheel_cpu
                         ? "The version of PyTorch ends in +" + local + ": a build without CUDA."
                         : f->site + "/torch/version.py says cuda = None.";
  } else if (info.cuda || local.rfind("cu", 0) == 0) {
    f->build = Build::kGpu;
    f->build_proof = "PyTorch is built with CUDA " + info.cuda_version + ".";
  }
  if (info.cuda) f->cuda = info.cuda_version;
  // "cu124" is CUDA 12.4.
  if (f->cuda.empty() && local.rfind("cu", 0) == 0 && local.size() >= 4)
    f->cuda = local.substr(2, local.size() - 3) + "." + local.substr(local.size() - 1);
  if (f->variant.empty() && !f->cuda.empty())
    f->variant = "cu" + replace_all(leading(f->cuda, 2), ".", "");
  const Json* release = data.release("torch", f->version);
  auto variants = data.versions().find("torch_variants");
  bool is_default = release != nullptr && text_of(*release, "local") == f->variant;
  if (!is_default && variants != data.versions().end() && variants->contains(f->variant)) {
    f->sass = texts_of((*variants)[f->variant], "sass");
    f->ptx = texts_of((*variants)[f->variant], "ptx");
  }
  if (is_default || f->variant.empty()) set_release(data, f);
  if (f->build == Build::kUnknown && machine.platform == "windows") {
    f->build = Build::kCpu;
    f->build_proof = "The wheel of PyTorch that PyPI has for Windows is built without CUDA.";
  }
  if (f->build == Build::kUnknown && !f->conda && release != nullptr) f->build = Build::kGpu;
  f->pip_first = true;
  for (std::string name : {"/torch/lib/libtorch_cuda.so", "/torch/lib/libtorch_global_deps.so"}) {
    std::string path = f->site + name;
    ElfFacts elf = root.exists(path) ? read_elf([&](uint64_t at, size_t size) {
      return root.read_at(path, static_cast<off_t>(at), size);
    })
                                     : ElfFacts{};
    if (elf.valid && elf.rpath.empty() && !elf.runpath.empty()) {
      f->pip_first = false;
      f->search_proof =
          path + " carries DT_RUNPATH, so LD_LIBRARY_PATH comes before its own folders.";
    }
    if (elf.valid) break;
  }
}

void describe_jax(const Data& data, const Environment& env, Framework* f) {
  const Dist* lib = env.dist("jaxlib");
  f->version = lib != nullptr ? lib->version : f->version;
  for (std::string major : {"13", "12", "11"}) {
    const Dist* plugin = env.dist("jax-cuda" + major + "-plugin");
    const Dist* pjrt = env.dist("jax-cuda" + major + "-pjrt");
    if (plugin == nullptr && pjrt == nullptr) continue;
    f->plugin = "jax-cuda" + major + "-plugin";
    f->plugin_version = plugin != nullptr ? plugin->version : "";
    f->pjrt_version = pjrt != nullptr ? pjrt->version : "";
    f->build = Build::kGpu;
    f->cuda = major;
    break;
  }
  if (auto rocm = env.dists.lower_bound("jax-rocm");
      f->plugin.empty() && rocm != env.dists.end() && rocm->first.rfind("jax-rocm", 0) == 0) {
    f->build = Build::kRocm;
    f->build_proof = rocm->first + " " + rocm->second.version + " is built for ROCm.";
  }
  // Before the plugins: "0.4.14+cuda12.cudnn89".
  std::string local = local_part(f->version);
  if (f->plugin.empty() && local.rfind("cuda", 0) == 0) {
    f->build = Build::kGpu;
    f->cuda = leading(local.substr(4, 2), 1);
    std::string cudnn = between(local, "cudnn", "");
    if (cudnn.size() == 2) f->cudnn = cudnn.substr(0, 1) + "." + cudnn.substr(1);
  }
  if (f->build == Build::kUnknown && !f->conda) {
    f->build = Build::kCpu;
    f->build_proof = lib == nullptr
                         ? "jax " + f->version + " is installed without jaxlib and without a " +
                               "jax-cuda12-plugin or jax-cuda13-plugin."
                         : "jaxlib " + f->version +
                               " is installed without a jax-cuda12-plugin or jax-cuda13-plugin.";
  }
  const Json* release = data.release("jax", f->version);
  std::string major = leading(f->cuda, 1);
  if (release != nullptr && release->contains(major)) {
    const Json& entry = (*release)[major];
    f->sass = texts_of(entry, "sass");
    f->ptx = texts_of(entry, "ptx");
    std::string needed = text_of(entry, "cudnn"), built = text_of(entry, "built_cudnn");
    if (f->cudnn.empty()) f->cudnn = needed.empty() ? leading(built, 2) : needed;
    if (std::string cuda = text_of(entry, "built_cuda"); !cuda.empty()) f->cuda = cuda;
  }
  f->pip_first = true;
}

/// conda names its builds: cuda112py39h…, gpu_py38h…, cpu_py310h…, mkl_py37h…,
/// py3.10_cuda12.1_cudnn8.9.2_0.
void describe_conda(const Environment& env, Framework* f) {
  const auto names = conda_bringers().find(f->id);
  if (names == conda_bringers().end()) return;
  for (const std::string& name : names->second) {
    auto it = env.conda.find(name);
    if (it == env.conda.end()) continue;
    const std::string& build = it->second.build;
    if (f->conda_build.empty()) f->conda_build = build;
    bool gpu = contains(build, "cuda") || build.rfind("gpu", 0) == 0;
    bool cpu = contains(build, "cpu") || build.rfind("mkl", 0) == 0 || build.rfind("eigen", 0) == 0;
    if (gpu || cpu) {
      f->build = gpu ? Build::kGpu : Build::kCpu;
      f->conda_build = build;
      f->build_proof = env.prefix + "/conda-meta names " + name + " " + it->second.version +
                       " build " + build + ".";
      break;
    }
  }
  for (std::string name : {"cuda-version", "cudatoolkit", "cuda-cudart"})
    if (auto it = env.conda.find(name); it != env.conda.end() && f->build != Build::kCpu) {
      f->cuda = leading(it->second.version, 2);
      if (f->build == Build::kUnknown) f->build = Build::kGpu;
      break;
    }
}

}  // namespace

std::string product_of(const std::string& framework) {
  static const std::map<std::string, std::string> kNames = {{"tensorflow", "TensorFlow"},
                                                            {"torch", "PyTorch"},
                                                            {"jax", "JAX"},
                                                            {"keras", "Keras"},
                                                            {"tracefire", "Tracefire"}};
  auto it = kNames.find(framework);
  return it == kNames.end() ? framework : it->second;
}

std::string framework_of(const std::string& name) {
  std::string low = normal_name(name.substr(0, name.find_first_of("=<>!~[ ")));
  if (low == "tf" || low.rfind("tensorflow", 0) == 0 || low.rfind("tf-nightly", 0) == 0 ||
      low.rfind("nvidia-tensorflow", 0) == 0 || low.rfind("intel-tensorflow", 0) == 0)
    return "tensorflow";
  if (low == "pytorch" || low.rfind("torch", 0) == 0) return "torch";
  if (low.rfind("jax", 0) == 0) return "jax";
  if (low == "keras" || low == "tf-keras") return "keras";
  if (low == "tracefire") return "tracefire";
  return "";
}

bool brings_framework(const std::string& dist) {
  return std::any_of(std::begin(kBringers), std::end(kBringers),
                     [&](const Bringer& bringer) { return dist == bringer.dist; });
}

bool brings_framework(const Environment& env) {
  for (const auto& [name, dist] : env.dists)
    if (brings_framework(name)) return true;
  for (const auto& [id, names] : conda_bringers())
    for (const std::string& name : names)
      if (env.conda.count(name) != 0) return true;
  return env.conda.count("jax") != 0;
}

std::string product_of_dist(const std::string& dist) {
  for (const Bringer& bringer : kBringers)
    if (dist == bringer.dist) return product_of(bringer.id);
  if (dist == "numpy") return "NumPy";
  if (dist == "tf-keras") return "Keras 2 for TensorFlow";
  if (dist.rfind("jax-cuda", 0) == 0) return "JAX CUDA plugin";
  if (dist == "cuda-toolkit" || dist == "cudatoolkit" || dist == "cuda-version")
    return "CUDA toolkit";
  static const std::pair<const char*, const char*> kParts[] = {{"cudnn", "cuDNN"},
                                                               {"cublas", "cuBLAS"},
                                                               {"cuda-runtime", "CUDA runtime"},
                                                               {"cuda-cudart", "CUDA runtime"},
                                                               {"cuda-nvcc", "CUDA compiler"},
                                                               {"cuda-nvrtc", "NVRTC"},
                                                               {"cuda-cupti", "CUPTI"},
                                                               {"cufft", "cuFFT"},
                                                               {"curand", "cuRAND"},
                                                               {"cusolver", "cuSOLVER"},
                                                               {"cusparselt", "cuSPARSELt"},
                                                               {"cusparse", "cuSPARSE"},
                                                               {"nccl", "NCCL"},
                                                               {"nvjitlink", "nvJitLink"},
                                                               {"nvtx", "NVTX"},
                                                               {"cufile", "cuFile"},
                                                               {"nvshmem", "NVSHMEM"}};
  if (dist.rfind("nvidia-", 0) == 0 || dist.rfind("lib", 0) == 0 || dist.rfind("cuda-", 0) == 0 ||
      dist == "cudnn" || dist == "nccl")
    for (const auto& [part, product] : kParts)
      if (contains(dist, part)) return product;
  return "";
}

std::vector<Framework> find_frameworks(const Root& root, const Machine& machine, const Data& data,
                                       const Environment& env) {
  std::vector<Framework> out;
  for (std::string id : {"tensorflow", "torch", "jax", "keras", "tracefire"}) {
    Framework f;
    f.id = id;
    f.product = product_of(id);
    std::vector<const Dist*> found;
    for (const Bringer& bringer : kBringers)
      if (id == bringer.id)
        if (const Dist* dist = env.dist(bringer.dist)) found.push_back(dist);
    // tensorflow is an empty package beside tensorflow-cpu or tensorflow-intel on some systems; on
    // Linux both hold the same files, and build_info.py tells whose they are.
    const Dist* chosen = found.empty() ? nullptr : found[0];
    for (const Dist* dist : found)
      if (id == "tensorflow" && cpu_by_name(normal_name(dist->name))) chosen = dist;
    // tensorflow-gpu from 2.12 on is empty.
    if (chosen != nullptr && normal_name(chosen->name) == "tensorflow-gpu" &&
        compare_versions(chosen->version, "2.12") >= 0)
      chosen = nullptr;
    const Dist* conda = nullptr;
    if (auto it = conda_bringers().find(id); it != conda_bringers().end())
      for (const std::string& name : it->second)
        if (auto at = env.conda.find(name); at != env.conda.end() && conda == nullptr)
          conda = &at->second;
    if (chosen == nullptr && conda == nullptr) continue;
    f.dist = normal_name(chosen != nullptr ? chosen->name : conda->name);
    f.version = chosen != nullptr ? chosen->version : conda->version;
    f.site = chosen != nullptr   ? chosen->site
             : env.sites.empty() ? env.prefix + "/lib/python3/site-packages"
                                 : env.sites[0];
    f.conda = conda != nullptr;
    if (f.conda && id != "keras") describe_conda(env, &f);
    std::string conda_cuda = f.cuda;
    Build conda_kind = f.build;
    std::string conda_proof = f.build_proof;
    f.aarch64 = chosen != nullptr && contains(chosen->wheel, "aarch64");
    if (id == "tensorflow") describe_tensorflow(root, machine, data, env, &f);
    if (id == "torch") describe_torch(root, machine, data, &f);
    if (id == "jax") describe_jax(data, env, &f);
    if (conda_kind != Build::kUnknown) {
      f.build = conda_kind;
      f.build_proof = conda_proof;
      if (!conda_cuda.empty()) f.cuda = conda_cuda;
    }
    if (f.build == Build::kGpu) resolve_needed(root, machine, data, env, &f);
    out.push_back(std::move(f));
  }
  return out;
}

}  // namespace tracefire::doctor
