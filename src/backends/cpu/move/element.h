// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tracefire/dtype.h"

namespace tracefire::cpu {

/// Elements of 16 bytes, moved and compared as bits.
struct Wide {
  uint64_t low, high;
};

/// Calls fn(T()) with a type that moves elements of `dtype`: an unsigned word of their size, or
/// std::string.
template <class Fn>
void with_element(DType dtype, Fn&& fn) {
  if (dtype == DType::kString) return fn(std::string());
  switch (dtype_size(dtype)) {
    case 1: return fn(uint8_t());
    case 2: return fn(uint16_t());
    case 4: return fn(uint32_t());
    case 8: return fn(uint64_t());
    case 16: return fn(Wide());
    default: return;  // tokens hold nothing
  }
}

}  // namespace tracefire::cpu
