// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/environment.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "backends/nvidia/search.h"
#include "tools/inject/escape.h"
#include "tools/inject/launch.h"

extern char** environ;

namespace tracefire::inject {
namespace {

namespace fs = std::filesystem;

constexpr char kLibraryName[] = "libtracefire_inject.so";

/// Names that reports may show, exactly or (with a '*') by their beginning.
constexpr std::array<std::string_view, 44> kShown = {"CUDA_*",
                                                     "NVIDIA_*",
                                                     "NCCL_*",
                                                     "XLA_*",
                                                     "JAX_*",
                                                     "TF_XLA_*",
                                                     "TF_FORCE_*",
                                                     "TF_GPU_*",
                                                     "TF_CPP_*",
                                                     "TF_ENABLE_*",
                                                     "TORCH_*",
                                                     "PYTORCH_*",
                                                     "TRITON_*",
                                                     "CUBLAS_*",
                                                     "CUDNN_*",
                                                     "OMP_*",
                                                     "MKL_*",
                                                     "OPENBLAS_*",
                                                     "KERAS_BACKEND",
                                                     "TRACEFIRE_*",
                                                     "RANK",
                                                     "LOCAL_RANK",
                                                     "WORLD_SIZE",
                                                     "LOCAL_WORLD_SIZE",
                                                     "MASTER_ADDR",
                                                     "MASTER_PORT",
                                                     "OMPI_COMM_WORLD_*",
                                                     "PMI_*",
                                                     "SLURM_JOB_ID",
                                                     "SLURM_PROCID",
                                                     "SLURM_NTASKS",
                                                     "SLURM_LOCALID",
                                                     "SLURM_NODEID",
                                                     "SLURM_NNODES",
                                                     "SLURM_GPUS*",
                                                     "VIRTUAL_ENV",
                                                     "CONDA_PREFIX",
                                                     "CONDA_DEFAULT_ENV",
                                                     "LD_LIBRARY_PATH",
                                                     "PYTHONPATH",
                                                     "LANG",
                                                     "ZE_*",
                                                     "HIP_VISIBLE_DEVICES",
                                                     "ROCR_VISIBLE_DEVICES"};

bool is_shown(std::string_view name) {
  return std::any_of(kShown.begin(), kShown.end(), [&](std::string_view pattern) {
    if (pattern.back() != '*') return name == pattern;
    return name.substr(0, pattern.size() - 1) == pattern.substr(0, pattern.size() - 1);
  });
}

void append(std::vector<std::string>& list, const std::string& path) {
  if (!path.empty() && std::find(list.begin(), list.end(), path) == list.end()) {
    list.push_back(path);
  }
}

/// Folders with packages of the environment whose bin/ holds `program`.
void append_packages(std::vector<std::string>& list, const fs::path& program) {
  std::error_code ignored;
  const fs::path lib = program.parent_path().parent_path() / "lib";
  std::vector<std::string> found;
  for (fs::directory_iterator it(lib, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->path().filename().string().rfind("python3", 0) != 0) continue;
    for (const char* kind : {"site-packages", "dist-packages"}) {
      found.push_back((it->path() / kind).string());
    }
  }
  std::sort(found.rbegin(), found.rend());  // the newest Python first
  for (const std::string& path : found) append(list, path);
}

/// The interpreter that a script names in its first line; empty for other files.
std::string interpreter_of(const std::string& file) {
  FILE* opened = std::fopen(file.c_str(), "re");
  if (opened == nullptr) return "";
  char line[512] = "";
  const size_t n = std::fread(line, 1, sizeof(line) - 1, opened);
  std::fclose(opened);
  std::string text(line, n);
  if (text.rfind("#!", 0) != 0) return "";
  text = text.substr(2, text.find('\n') - 2);
  text.erase(0, text.find_first_not_of(' '));
  return text.substr(0, text.find(' '));
}

}  // namespace

Variables trace_variables(const TracePlan& plan) {
  Variables list = {{"CUDA_INJECTION64_PATH", plan.library}, {"TRACEFIRE_PROVE_DIR", plan.folder}};
  if (plan.window_limit >= 0) {
    list.emplace_back("TRACEFIRE_PROVE_LIMIT", std::to_string(plan.window_limit));
  }
  if (!plan.graphs_by_node) list.emplace_back("TRACEFIRE_PROVE_GRAPHS", "graph");
  if (plan.beat_ms > 0) list.emplace_back("TRACEFIRE_PROVE_BEAT_MS", std::to_string(plan.beat_ms));
  if (!plan.cupti.empty()) list.emplace_back("TRACEFIRE_PROVE_CUPTI", plan.cupti);
  return list;
}

std::string writable_by_others(const std::string& file) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (failed) return file + " cannot be read: " + failed.message();
  for (fs::path path = real;; path = path.parent_path()) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return path.string() + " cannot be read";
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
      return path.string() + " belongs to another user";
    }
    const bool sticky = (info.st_mode & S_ISVTX) != 0;  // as /tmp: others cannot replace its files
    if ((info.st_mode & S_IWOTH) != 0 && !sticky) return path.string() + " is writable by everyone";
    if (path == real && (info.st_mode & S_IWGRP) != 0) {
      return path.string() + " is writable by its group";
    }
    if (path == path.root_path()) return "";
  }
}

Result<std::string> find_inject_library() {
  std::vector<std::string> candidates;
  if (const char* given = std::getenv("TRACEFIRE_INJECT_LIBRARY"); given != nullptr && *given) {
    candidates.push_back(given);
  } else {
    std::error_code ignored;
    const auto near = [&](const fs::path& file) {
      for (const char* below : {".", "../lib", "../lib64"}) {
        candidates.push_back((file.parent_path() / below / kLibraryName).lexically_normal());
      }
    };
    Dl_info self{};
    // In a program without libtracefire.so the name is argv[0]: where it is no whole path, it would
    // be looked for in the current folder, where anyone may have put a library.
    if (dladdr(reinterpret_cast<void*>(&writable_by_others), &self) != 0 &&
        self.dli_fname != nullptr && self.dli_fname[0] == '/') {
      near(self.dli_fname);
    }
    near(fs::read_symlink("/proc/self/exe", ignored));
  }
  std::string searched;
  for (const std::string& path : candidates) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) {
      if (const std::string why = writable_by_others(path); !why.empty()) {
        return error(ErrorCode::kLibraryNotFound, why, ". Expected ", kLibraryName,
                     " and the folders above it to be writable by you and root alone, since it is "
                     "loaded into every program below. Correct it with chmod go-w and chown.");
      }
      return fs::canonical(path, ignored).string();
    }
    searched += (searched.empty() ? "" : ", ") + path;
  }
  return error(ErrorCode::kLibraryNotFound, kLibraryName, " was not found. Searched: ", searched,
               ". Set TRACEFIRE_INJECT_LIBRARY to its path.");
}

std::string find_cupti(const std::string& command) {
  nvidia::SearchOptions options = nvidia::SearchOptions::from_environment();
  std::vector<std::string> roots;
  const std::string file = find_program(command).path;
  if (!file.empty()) {
    append_packages(roots, file);
    if (const std::string interpreter = interpreter_of(file); !interpreter.empty()) {
      append_packages(roots, interpreter);
    }
  }
  for (const std::string& root : options.python_roots) append(roots, root);
  std::vector<std::string> folders;
  for (const std::string& dir : options.explicit_dirs) {
    for (const char* below : {"", "/lib64", "/lib", "/extras/CUPTI/lib64"}) {
      append(folders, dir + below);
    }
  }
  for (const std::string& root : roots) {
    append(folders, root + "/nvidia/cu13/lib");
    append(folders, root + "/nvidia/cuda_cupti/lib");
  }
  for (const std::string& dir : options.path_dirs) append(folders, dir);
  for (const std::string& root : options.toolkit_roots) {
    append(folders, root + "/extras/CUPTI/lib64");
    append(folders, root + "/lib64");
  }
  std::string list;
  for (const int major : {13, 12}) {
    for (const std::string& folder : folders) {
      const std::string library = folder + "/libcupti.so." + std::to_string(major);
      std::error_code ignored;
      // The list is separated by colons; a folder with one cannot be told.
      if (library.find(':') == std::string::npos && fs::exists(library, ignored)) {
        list += (list.empty() ? "" : ":") + std::to_string(major) + "=" +
                fs::absolute(library, ignored).string();
        break;
      }
    }
  }
  return list;
}

std::map<std::string, std::string> shown_environment() {
  std::map<std::string, std::string> shown;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view text(*at);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (!is_shown(name)) continue;
    const std::string_view value = text.substr(equals + 1);
    shown[std::string(name)] = names_a_secret(name) ? "[redacted]" : redacted(value.substr(0, 512));
  }
  return shown;
}

}  // namespace tracefire::inject
