// SPDX-License-Identifier: Apache-2.0
//
// What a framework asks of the cuDNN that pip installs, and whether two frameworks can share one
// environment, where each of NVIDIA's packages is there once.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/frameworks.h"

namespace tracefire::doctor {

struct CudnnNeed {
  std::string id, product, version;  ///< "torch", "PyTorch", "2.6.0"
  std::string dist;                  ///< "torch"
  std::string
      cuda;  ///< CUDA major of the packages of its libraries: "12"; "" where pip brings none
  std::string exact;  ///< the one version that it pins: "9.1.0.70"; "" where it takes several
  std::string least;  ///< the oldest that it runs with: "9.3"
  std::string package() const { return "nvidia-cudnn-cu" + cuda; }
  bool by_pip() const { return !cuda.empty(); }
  /// "pins nvidia-cudnn-cu12==9.1.0.70", "needs nvidia-cudnn-cu12>=9.3,<10"
  std::string words() const;
  /// "nvidia-cudnn-cu12==9.1.0.70", "nvidia-cudnn-cu12>=9.3,<10"
  std::string requirement() const;
};

/// The version of the condition "==VERSION" on `package`, "" where the distribution has none.
std::string exact_pin(const Dist& dist, const std::string& package);

/// Of an installed framework: its metadata, then the tables. Of one that is not installed
/// (`env` null): the tables.
CudnnNeed cudnn_need(const Data& data, const Environment* env, const Framework& framework);

/// Why both cannot be in one environment, as a part of a sentence; "" where they can.
std::string clash_between(const CudnnNeed& one, const CudnnNeed& other);

/// The pin among needs that do not clash, as "nvidia-cudnn-cu12==9.10.2.21"; "" where none pins.
std::string pinned_cudnn(const std::vector<CudnnNeed>& needs);

}  // namespace tracefire::doctor
