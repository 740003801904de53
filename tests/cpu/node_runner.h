// SPDX-License-Identifier: Apache-2.0
//
// Runs one node on /CPU:0 the way a program does: infer, choose a kernel, bind, run.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backends/api/device_backend.h"

namespace tracefire::test {

/// A dense array on the host. Strings have no bytes.
struct HostTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> sizes;
  std::vector<char> bytes;
  std::vector<std::string> strings;

  int64_t elements() const;
  /// Element `i` as a double, whatever the type is.
  double at(int64_t i) const;
  std::vector<double> numbers() const;
};

/// `values` converted to `dtype`; one value for all elements is repeated.
HostTensor tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values);
HostTensor string_tensor(std::vector<int64_t> sizes, std::vector<std::string> values);
/// Numbers between `low` and `high`, the same for the same seed; whole where dtype is an integer.
HostTensor random_tensor(DType dtype, std::vector<int64_t> sizes, double low, double high,
                         uint32_t seed = 1);

struct RunOptions {
  const char* kernel = nullptr;  ///< its name; null: the first that accepts
  bool one_thread = false;
  bool in_place = false;         ///< result 0 is written over input 0
  ErrorWord* error = nullptr;    ///< receives what the run left there
};

/// Results of a node. A failure (inference, no kernel, kernel error) throws tracefire::Error.
std::vector<HostTensor> run_node(const char* op, const std::vector<HostTensor>& inputs,
                                 Attrs attrs = {}, RunOptions options = {});

/// True where |a - b| <= tolerance * max(1, |b|), or both are the same infinity, or both NaN.
bool near(double a, double b, double tolerance);
/// Index of the first element that is not near, or -1; sizes must agree.
int64_t first_difference(const HostTensor& got, const std::vector<double>& wanted,
                         double tolerance);

}  // namespace tracefire::test
