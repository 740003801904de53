// SPDX-License-Identifier: Apache-2.0
//
// The frameworks in an environment: what each was built for, which libraries it opens, and which
// files it would get.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/data.h"
#include "tools/doctor/environments.h"
#include "tools/doctor/machine.h"

namespace tracefire::doctor {

enum class Build { kUnknown, kGpu, kCpu, kRocm };

/// A library that a framework opens, and the file it would get.
struct Needed {
  std::string soname;
  std::string path;     ///< "" where nothing on its way has it
  std::string origin;   ///< "LD_LIBRARY_PATH", "pip", "conda", "bundled", "ld.so.cache", "default"
  std::string version;  ///< of that file, "" where nothing tells it
  std::string pip_path, pip_version;  ///< the copy that pip installed for it, if any
  std::string elsewhere;              ///< a copy off the way
  std::string other;                  ///< a copy of another major version on the way
};

struct Framework {
  std::string id;       ///< "tensorflow", "torch", "jax", "keras", "tracefire"
  std::string product;  ///< "TensorFlow"
  std::string dist;     ///< distribution that brings it: "tensorflow-cpu"
  std::string version;
  std::string site;  ///< folder of packages
  bool conda = false;
  std::string conda_build;
  Build build = Build::kUnknown;
  std::string build_proof;
  std::string cuda, cudnn;  ///< built with; cuDNN as "9.3"
  std::string variant;      ///< torch's local part: "cu124"
  std::vector<std::string> sass, ptx;
  std::string plugin, plugin_version, pjrt_version;  ///< JAX's
  bool aarch64 = false;                              ///< the wheel for that processor
  bool pip_first = false;  ///< its own search path wins over LD_LIBRARY_PATH
  std::string search_proof;
  std::vector<Needed> needed;
};

/// In the order TensorFlow, PyTorch, JAX, Keras, Tracefire.
std::vector<Framework> find_frameworks(const Root& root, const Machine& machine, const Data& data,
                                       const Environment& env);
/// "TensorFlow" of "tensorflow".
std::string product_of(const std::string& framework);
/// "tensorflow" of "TensorFlow", "tf", "pytorch" of …; "" where unknown.
std::string framework_of(const std::string& name);
/// Whether a distribution of this normal name is a framework itself, and not a part or a helper.
bool brings_framework(const std::string& dist);
/// Whether a framework is installed there, by pip or conda.
bool brings_framework(const Environment& env);
/// Product name of a distribution that is listed in the inventory ("cuDNN" of nvidia-cudnn-cu12),
/// "" else.
std::string product_of_dist(const std::string& dist);

}  // namespace tracefire::doctor
