// SPDX-License-Identifier: Apache-2.0
#include "core/compile/constants.h"

#include <cstring>

#include "core/base/element.h"
#include "tracefire/half.h"

namespace tracefire {
namespace {

template <class T>
T load(const std::string& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
int64_t load_integer(const std::string& bytes, int64_t index) {
  return static_cast<int64_t>(load<T>(bytes, index));
}

}  // namespace

std::optional<Scalar> read_element(DType dtype, const std::string& bytes, int64_t index) {
  const size_t size = dtype_size(dtype);
  if (size == 0 || dtype == DType::kString || index < 0 ||
      bytes.size() / size <= static_cast<size_t>(index)) {
    return std::nullopt;
  }
  Scalar scalar;
  scalar.dtype = dtype;
  switch (dtype) {
    case DType::kBool:
      scalar.integer = load<uint8_t>(bytes, index) != 0;
      return scalar;
    case DType::kI4:
    case DType::kI8:
      scalar.integer = load_integer<int8_t>(bytes, index);
      return scalar;
    case DType::kU4:
    case DType::kU8:
      scalar.integer = load_integer<uint8_t>(bytes, index);
      return scalar;
    case DType::kI16:
      scalar.integer = load_integer<int16_t>(bytes, index);
      return scalar;
    case DType::kU16:
      scalar.integer = load_integer<uint16_t>(bytes, index);
      return scalar;
    case DType::kI32:
      scalar.integer = load_integer<int32_t>(bytes, index);
      return scalar;
    case DType::kU32:
      scalar.integer = load_integer<uint32_t>(bytes, index);
      return scalar;
    case DType::kI64:
    case DType::kU64:
      scalar.integer = load_integer<int64_t>(bytes, index);
      return scalar;
    case DType::kF64:
      scalar.real = load<double>(bytes, index);
      return scalar;
    case DType::kF32:
      scalar.real = load<float>(bytes, index);
      return scalar;
    case DType::kF16:
      scalar.real = f16_to_float(load<uint16_t>(bytes, index));
      return scalar;
    case DType::kBF16:
      scalar.real = bf16_to_float(load<uint16_t>(bytes, index));
      return scalar;
    case DType::kF8E4M3:
      scalar.real = f8e4m3_to_float(load<uint8_t>(bytes, index));
      return scalar;
    case DType::kF8E5M2:
      scalar.real = f8e5m2_to_float(load<uint8_t>(bytes, index));
      return scalar;
    default:
      return std::nullopt;
  }
}

std::string element_bytes(const Scalar& scalar) {
  const bool real = is_floating(scalar.dtype);
  return real ? element_bytes(scalar.real, scalar.dtype)
              : element_bytes(scalar.integer, scalar.dtype);
}

ConstantView::ConstantView(const Node& node) {
  const Attr* dtype = node.attrs.find("dtype");
  const Attr* shape = node.attrs.find("shape");
  const Attr* bytes = node.attrs.find("bytes");
  if (!node.inputs.empty() || !dtype || !shape || !bytes) return;
  if (!std::holds_alternative<DType>(*dtype) || !std::holds_alternative<Shape>(*shape) ||
      !std::holds_alternative<std::string>(*bytes)) {
    return;
  }
  dtype_ = std::get<DType>(*dtype);
  shape_ = &std::get<Shape>(*shape);
  bytes_ = &std::get<std::string>(*bytes);
  if (!read_element(dtype_, *bytes_, 0)) return;
  const int64_t stored = static_cast<int64_t>(bytes_->size() / dtype_size(dtype_));
  elements_ = shape_->is_constant() ? shape_->elements().value() : -1;
  splat_ = stored == 1;
  ok_ = splat_ || stored == elements_;
}

}  // namespace tracefire
