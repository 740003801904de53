// SPDX-License-Identifier: Apache-2.0
//
// What package managers write down: Python's dist-info, conda's conda-meta, dpkg's status; and the
// small Python files in which frameworks say how they were built (read as text, never run).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::doctor {

/// METADATA or PKG-INFO: the headers only.
struct DistMetadata {
  std::string name, version;
  std::string requires_python;
  std::vector<std::string> requires_dist;
};
DistMetadata parse_metadata(std::string_view text);
/// "nvidia-cudnn-cu12" of "nvidia_cudnn_cu12" (PEP 503).
std::string normal_name(std::string_view name);

/// One Requires-Dist line, taken apart.
struct Requirement {
  std::string name;        ///< normal name
  std::string conditions;  ///< "==9.1.0.70", "" for any version
  std::string extra;       ///< "and-cuda" where the line is for that extra alone
  std::string marker;      ///< the rest behind ";"
};
Requirement parse_requirement(std::string_view line);

/// Paths that RECORD lists, at most `limit`.
std::vector<std::string> parse_record(std::string_view text, size_t limit = 100000);

/// conda-meta/NAME.json. Empty name where it is none.
struct CondaPackage {
  std::string name, version, build;
};
CondaPackage parse_conda_meta(std::string_view text);

/// One installed or half-installed package of dpkg's status file.
struct SystemPackage {
  std::string version;  ///< without epoch and Debian revision
  std::string state;    ///< "installed", "half-configured", …
};
/// Only packages whose name begins with one of `prefixes`.
std::map<std::string, SystemPackage> parse_dpkg_status(std::string_view text,
                                                       const std::vector<std::string>& prefixes);

/// "key = value" lines (pyvenv.cfg) and KEY="value" lines (os-release).
std::map<std::string, std::string> parse_assignments(std::string_view text);

/// tensorflow/python/platform/build_info.py and torch/version.py.
struct BuildInfo {
  bool known = false;
  bool cuda = false, rocm = false;
  std::string cuda_version, cudnn_version, framework_version;
  std::vector<std::string> sass, ptx;  ///< "80" for sm_80, "90" for compute_90
};
BuildInfo parse_tensorflow_build(std::string_view text);
BuildInfo parse_torch_version(std::string_view text);

/// argv of a Jupyter kernel.json.
std::vector<std::string> parse_kernel_argv(std::string_view text);
/// CUDA's version.json or version.txt.
std::string parse_cuda_version(std::string_view text);
/// cudnn_version.h or cudnn.h.
std::string parse_cudnn_header(std::string_view text);

}  // namespace tracefire::doctor
