// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tracefire/dtype.h"

namespace tracefire {

/// A number as one element of `dtype`, as it lies in memory (little-endian). Empty where `dtype`
/// holds no numbers.
///
/// The rules are those of the op `cast`, and so of a constant that is folded and one that is
/// computed: whole numbers keep their low bits in integer types, as NumPy's astype does it; real
/// numbers are cut off towards zero and to the ends of an integer type, NaN gives 0; floating types
/// round to the nearest. Four-bit types take a byte of which the upper half repeats the sign.
/// Numbers that a user gives are checked where they come in (kBadAttribute), before any of this.
std::string element_bytes(double value, DType dtype);
std::string element_bytes(int64_t value, DType dtype);

}  // namespace tracefire
