// SPDX-License-Identifier: Apache-2.0
//
// `tracefire doctor`: why a GPU is not used, and what to do.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tools/text/layout.h"

namespace tracefire::doctor {

/// A product of 5000 x 5000 that an environment's own Python computed.
struct ProductTrial {
  std::string framework;  ///< "PyTorch 2.9.0 (/opt/venv)"
  std::string device;     ///< as the framework reports it; empty where it failed
  std::string problem;    ///< why there is no rate; empty where there is one
  double flops_per_second = 0;
};

/// `arguments` are those after "doctor". Returns the exit status: 0 gpu-ok, 1 gpu-broken, 3
/// gpu-degraded, 4 cpu-only, 2 for wrong arguments. Text on `out` has the `look`. `products` gets
/// the products of frameworks that a running machine was tried out with. Throws nothing.
int doctor_main(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
                const text::Look& look = {}, std::vector<ProductTrial>* products = nullptr);

}  // namespace tracefire::doctor
