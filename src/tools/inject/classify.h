// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/inject/prove_table.h"

namespace tracefire::inject {

using table::KernelClass;

enum class TensorCores : uint8_t { kNo, kYes, kUnknown };

/// What a kernel is, told from its name by schema/prove.json.
struct KernelKind {
  KernelClass work = KernelClass::kOther;
  TensorCores tensor_cores = TensorCores::kUnknown;  ///< of products, convolutions and attention
};

/// The name as people read it: C++ names are taken apart, everything passes printable().
std::string readable_kernel(std::string_view mangled);
/// A readable name without its template arguments and parameters, for narrow tables.
std::string short_kernel(std::string_view readable);
KernelKind classify_kernel(std::string_view readable);

/// Whether the class can run on tensor cores.
inline bool is_product(KernelClass work) {
  return work == KernelClass::kMatmul || work == KernelClass::kConvolution ||
         work == KernelClass::kAttention;
}

}  // namespace tracefire::inject
