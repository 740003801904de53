// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tracefire {

/// One element of a constant: exactly as an integer where its type is one, else as a double.
struct Scalar {
  DType dtype = DType::kInvalid;
  double real = 0;
  int64_t integer = 0;  ///< bool as 0 or 1; u64 keeps its bits
};

/// Element `index` of little-endian `bytes`; nullopt for types that are no plain numbers.
std::optional<Scalar> read_element(DType dtype, const std::string& bytes, int64_t index);
/// The bytes of one element; real values are rounded to the type.
std::string element_bytes(const Scalar& scalar);

/// What a `constant` node holds.
class ConstantView {
 public:
  /// Empty (ok() false) where `node` is no constant of plain numbers or has a symbolic size and
  /// more than one different element.
  explicit ConstantView(const Node& node);
  bool ok() const { return ok_; }
  /// One number for all elements.
  bool splat() const { return splat_; }
  int64_t elements() const { return elements_; }
  const Shape& shape() const { return *shape_; }
  DType dtype() const { return dtype_; }
  Scalar at(int64_t index) const { return *read_element(dtype_, *bytes_, splat_ ? 0 : index); }

 private:
  bool ok_ = false;
  bool splat_ = false;
  int64_t elements_ = 0;
  DType dtype_ = DType::kInvalid;
  const Shape* shape_ = nullptr;
  const std::string* bytes_ = nullptr;
};

}  // namespace tracefire
