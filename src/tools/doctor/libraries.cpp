// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/libraries.h"

#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

/// Library -> the part of a package's name that brings it.
struct Part {
  const char* stem;
  const char* pip;    ///< nvidia-PIP-cu12, nvidia-PIP
  const char* conda;  ///< package of conda-forge and nvidia
};
constexpr Part kParts[] = {{"libcudart", "cuda-runtime", "cuda-cudart"},
                           {"libcublasLt", "cublas", "libcublas"},
                           {"libcublas", "cublas", "libcublas"},
                           {"libcudnn", "cudnn", "cudnn"},
                           {"libcufft", "cufft", "libcufft"},
                           {"libcurand", "curand", "libcurand"},
                           {"libcusolver", "cusolver", "libcusolver"},
                           {"libcusparseLt", "cusparselt", "cusparselt"},
                           {"libcusparse", "cusparse", "libcusparse"},
                           {"libnccl", "nccl", "nccl"},
                           {"libcupti", "cuda-cupti", "cuda-cupti"},
                           {"libnvrtc", "cuda-nvrtc", "cuda-nvrtc"},
                           {"libnvJitLink", "nvjitlink", "libnvjitlink"},
                           {"libnvshmem_host", "nvshmem", "libnvshmem3"},
                           {"libnvToolsExt", "nvtx", "cuda-nvtx"}};

const Part* part_of(const std::string& soname) {
  std::string stem = stem_of(soname);
  for (const Part& part : kParts)
    if (stem == part.stem) return &part;
  return nullptr;
}

/// Everything pip could have put it into: nvidia/COMPONENT/lib, nvidia/cu13/lib, cusparselt/lib.
std::string pip_file(const Root& root, const Environment& env, const std::string& soname) {
  const Part* part = part_of(soname);
  std::string component = part == nullptr ? "" : replace_all(part->pip, "-", "_");
  for (const std::string& site : env.sites) {
    for (std::string dir : {site + "/nvidia/" + component + "/lib/", site + "/nvidia/cu13/lib/",
                            site + "/nvidia/cu12/lib/", site + "/" + component + "/lib/"})
      if (!component.empty() && root.exists(dir + soname)) return dir + soname;
  }
  return "";
}

/// Names like STEM.so.N in `dir` with another N than `soname` has.
std::string other_major(const Root& root, const std::string& dir, const std::string& soname) {
  std::string stem = stem_of(soname) + ".so.";
  // Up to CUDA 10 the runtime's name carries the minor version; "11.0" stands for all of CUDA 11.
  std::string number = soname.substr(stem.size());
  int parts = contains(number, ".") && number != "11.0" ? 2 : 1;
  for (const std::string& name : root.list(dir, 20000))
    if (name.rfind(stem, 0) == 0 && is_version(name.substr(stem.size())) &&
        name.rfind(soname, 0) != 0 &&
        leading(name.substr(stem.size()), parts) != leading(number, parts))
      return dir + "/" + name;
  return "";
}

std::string conda_version(const Environment& env, const std::string& soname) {
  const Part* part = part_of(soname);
  if (part == nullptr) return "";
  if (auto it = env.conda.find(part->conda); it != env.conda.end()) return it->second.version;
  if (auto it = env.conda.find("cudatoolkit");
      it != env.conda.end() && stem_of(soname) != "libcudnn")
    return it->second.version;
  return "";
}

std::string version_of_file(const Root& root, const Machine& machine, const Environment& env,
                            const std::string& path, const std::string& soname) {
  std::string version = version_from_name(root, path);
  std::string number = soname.substr(std::min(soname.size(), stem_of(soname).size() + 4));
  if (!version.empty() && version != number) return version;
  std::string dir = parent_of(path);
  for (const std::string& site : env.sites)
    if (path.rfind(site + "/", 0) == 0)
      if (std::vector<const Dist*> owners = pip_owners(env, soname); owners.size() == 1)
        return owners[0]->version;
  if (path.rfind(env.prefix + "/lib/", 0) == 0)
    if (std::string found = conda_version(env, soname); !found.empty()) return found;
  if (stem_of(soname) == "libcudnn") {
    for (std::string header :
         {parent_of(dir) + "/include/cudnn_version.h", parent_of(dir) + "/include/cudnn.h",
          std::string("/usr/include/cudnn_version.h")}) {
      if (header.rfind("/usr/include", 0) == 0 && dir.rfind("/usr/lib", 0) != 0) continue;
      std::string found = parse_cudnn_header(root.read(header, 256 << 10).value_or(""));
      if (!found.empty() && major_of(found) == major_of(number)) return found;
    }
    for (const auto& [name, package] : machine.packages)
      if (name.rfind("libcudnn" + number, 0) == 0 && !contains(name, "dev") &&
          dir.rfind("/usr/lib", 0) == 0)
        return package.version;
  }
  return version;
}

/// A build of TensorFlow for another CUDA or cuDNN than PyPI's, such as NVIDIA's own.
void own_build(const Data& data, const Framework& f, std::vector<std::string>* names) {
  const Json* release = data.release("tensorflow", f.version);
  const int major = major_of(f.cuda), cudnn = major_of(f.cudnn);
  if (release == nullptr || names->empty() || f.dist == "nvidia-tensorflow") return;
  if (major >= 11 && major_of(text_of(*release, "cuda")) != major) {
    std::vector<std::string> other;
    auto table = data.versions().find("tensorflow");
    for (const auto& [version, entry] : table->items())
      if (major_of(text_of(entry, "cuda")) == major) other = texts_of(entry, "sonames");
    auto jax = data.versions().find("jax_sonames");
    if (other.empty() && jax != data.versions().end())
      for (const std::string& name : texts_of(*jax, std::to_string(major)))
        if (name.rfind("libnccl", 0) != 0 && name.rfind("libcupti", 0) != 0 &&
            name.rfind("libnv", 0) != 0)
          other.push_back(name);
    if (!other.empty()) *names = other;
  }
  for (std::string& name : *names)
    if (cudnn > 0 && stem_of(name) == "libcudnn") name = "libcudnn.so." + std::to_string(cudnn);
}

std::vector<std::string> sonames_of(const Data& data, const Environment& env, const Framework& f) {
  std::vector<std::string> out;
  if (f.id == "tensorflow") {
    if (const Json* release =
            data.release("tensorflow", f.dist == "nvidia-tensorflow" ? "2.5" : f.version))
      out = texts_of(*release, "sonames");
    own_build(data, f, &out);
  } else if (f.id == "jax") {
    auto it = data.versions().find("jax_sonames");
    if (it != data.versions().end()) out = texts_of(*it, leading(f.cuda, 1));
    // NVSHMEM and NVRTC came later; what the plugin's own release asks for decides.
    if (compare_versions(f.version, "0.7") < 0)
      std::erase_if(out, [](const std::string& name) {
        return name.rfind("libnvshmem", 0) == 0 || name.rfind("libnvrtc", 0) == 0;
      });
    // Until 0.4.29 it was built with cuDNN 8.
    if (int cudnn_major = major_of(f.cudnn); cudnn_major > 0)
      for (std::string& name : out)
        if (stem_of(name) == "libcudnn") name = "libcudnn.so." + std::to_string(cudnn_major);
    std::erase_if(out, [](const std::string& name) {
      return name.rfind("libnccl", 0) == 0 || name.rfind("libnvshmem", 0) == 0;
    });
  } else if (f.id == "torch") {
    // What its wheel asks pip for, by name of the file that it opens.
    const Dist* dist = env.dist("torch");
    std::string major = leading(f.cuda, 1);
    bool asks = false;
    if (dist != nullptr)
      for (const Requirement& requirement : dist->requirements)
        asks |= requirement.name.rfind("nvidia-cudnn", 0) == 0;
    if (!asks) return out;
    bool cu13 = major == "13";
    int cudnn_major = major_of(f.cudnn);
    for (const Requirement& requirement : dist->requirements)
      if (requirement.name.rfind("nvidia-cudnn", 0) == 0)
        if (int pinned = major_of(
                requirement.conditions.substr(requirement.conditions.find_last_of("=><~!") + 1));
            pinned > 0)
          cudnn_major = pinned;
    out = {"libcudart.so." + std::string(major == "11" ? "11.0" : major),
           "libcublas.so." + major,
           "libcublasLt.so." + major,
           std::string("libcufft.so.") + (major == "11" ? "10"
                                          : cu13        ? "12"
                                                        : "11"),
           "libcurand.so.10",
           std::string("libcusolver.so.") + (cu13 ? "12" : "11"),
           "libcusparse.so." + std::string(major == "11" ? "11" : "12"),
           "libnccl.so.2"};
    if (cudnn_major > 0) out.push_back("libcudnn.so." + std::to_string(cudnn_major));
  }
  return out;
}

}  // namespace

std::string stem_of(const std::string& soname) { return soname.substr(0, soname.find(".so")); }

std::vector<const Dist*> pip_owners(const Environment& env, const std::string& soname) {
  std::vector<const Dist*> out;
  const Part* part = part_of(soname);
  if (part == nullptr) return out;
  for (std::string ending : {"-cu11", "-cu12", "-cu13", ""})
    if (const Dist* dist = env.dist("nvidia-" + std::string(part->pip) + ending))
      out.push_back(dist);
  return out;
}

std::string toolkit_version(const Root& root, const std::string& library_dir) {
  std::string dir = root.follow(library_dir);
  for (int up = 0; up < 4 && dir != "/"; ++up) {
    for (std::string name : {"/version.json", "/version.txt"})
      if (std::optional<std::string> text = root.read(dir + name, 64 << 10)) {
        std::string version = parse_cuda_version(*text);
        if (!version.empty()) return version;
      }
    std::string name = name_of(dir);
    if (name.rfind("cuda-", 0) == 0 && is_version(name.substr(5))) return name.substr(5);
    std::string target = name_of(root.follow(dir));
    if (target.rfind("cuda-", 0) == 0 && is_version(target.substr(5))) return target.substr(5);
    dir = parent_of(dir);
  }
  return "";
}

void resolve_needed(const Root& root, const Machine& machine, const Data& data,
                    const Environment& env, Framework* f) {
  const Json* release = data.release(f->id, f->version);
  std::string pip_mode = f->id != "tensorflow" ? "runpath"
                         : release == nullptr  ? "runpath"
                                               : text_of(*release, "pip_libs");
  std::vector<std::string>
      off_way;  // toolkits that may lie there without being on the loader's way
  for (const std::string& name : root.list("/usr/local"))
    if (name.rfind("cuda", 0) == 0) {
      off_way.push_back("/usr/local/" + name + "/lib64");
      off_way.push_back("/usr/local/" + name + "/targets/x86_64-linux/lib");
      off_way.push_back("/usr/local/" + name + "/lib");
      off_way.push_back("/usr/local/" + name + "/extras/CUPTI/lib64");
    }
  for (std::string dir :
       {std::string("/opt/cuda/lib64"), std::string("/usr/lib/cuda/lib64"), env.prefix + "/lib"})
    off_way.push_back(dir);
  for (const std::string& soname : sonames_of(data, env, *f)) {
    Needed need;
    need.soname = soname;
    need.pip_path = pip_file(root, env, soname);
    if (!need.pip_path.empty())
      need.pip_version = version_of_file(root, machine, env, need.pip_path, soname);
    DriverFile loader = find_in_loader_order(root, machine, soname);
    std::string conda_file =
        f->conda && root.exists(env.prefix + "/lib/" + soname) ? env.prefix + "/lib/" + soname : "";
    std::string conda_known = f->conda && conda_file.empty() ? conda_version(env, soname) : "";
    std::string bundled;
    for (std::string dir :
         {f->site + "/torch/lib/", f->site + "/tensorflow/", f->site + "/tensorflow/python/"})
      if (bundled.empty() && root.exists(dir + soname)) bundled = dir + soname;
    auto take = [&](const std::string& path, const std::string& origin) {
      if (need.path.empty() && !path.empty()) need.path = path, need.origin = origin;
    };
    bool shadowed = loader.origin == "LD_LIBRARY_PATH" && !f->pip_first;
    take(bundled, "bundled");
    if (shadowed) take(loader.path, loader.origin);
    take(conda_file, "conda");
    if (pip_mode == "runpath") take(need.pip_path, "pip");
    take(loader.path, loader.origin);
    if (!need.path.empty()) need.version = version_of_file(root, machine, env, need.path, soname);
    if (need.path.empty() &&
        !conda_known.empty()) {  // conda's records name it though its file is not in this tree
      need.path = env.prefix + "/lib/" + soname;
      need.origin = "conda";
      need.version = conda_known;
    }
    if (need.path.empty()) {
      if (!need.pip_path.empty()) need.elsewhere = need.pip_path;
      for (const std::string& dir : off_way)
        if (need.elsewhere.empty() && root.exists(dir + "/" + soname))
          need.elsewhere = dir + "/" + soname;
      std::vector<std::string> way = machine.ld_dirs;
      way.insert(way.end(), machine.default_dirs.begin(), machine.default_dirs.end());
      if (const Part* part = part_of(soname); part != nullptr)
        for (const std::string& site : env.sites)
          way.push_back(site + "/nvidia/" + replace_all(part->pip, "-", "_") + "/lib");
      if (pip_mode ==
          "none")  // no package brings the libraries: an installed toolkit is meant for it
        way.insert(way.end(), off_way.begin(), off_way.end());
      for (const std::string& dir : way)
        if (need.other.empty()) need.other = other_major(root, dir, soname);
      for (const auto& [name, path] : machine.ld_cache)
        if (need.other.empty() && stem_of(name) == stem_of(soname) && contains(name, ".so.") &&
            name != soname)
          need.other = path;
    }
    f->needed.push_back(std::move(need));
  }
}

}  // namespace tracefire::doctor
