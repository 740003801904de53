// SPDX-License-Identifier: Apache-2.0
#include "lib/nn/values.h"

#include <cstring>

namespace tracefire::nn {
namespace {

template <class T>
std::string bytes_of(double value) {
  const T element = static_cast<T>(value);
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &element, sizeof(T));
  return bytes;
}

Tensor filled(DType dtype, const Shape& shape, std::string bytes) {
  return apply_op("constant", std::span<const Tensor>(),
                  AttrList{{"dtype", dtype}, {"shape", shape}, {"bytes", std::move(bytes)}})[0];
}

}  // namespace

Tensor constant(double value, DType dtype, const Shape& shape) {
  switch (dtype) {
    case DType::kF64:
      return filled(dtype, shape, bytes_of<double>(value));
    case DType::kF32:
      return filled(dtype, shape, bytes_of<float>(value));
    case DType::kI32:
      return filled(dtype, shape, bytes_of<int32_t>(value));
    case DType::kI64:
      return filled(dtype, shape, bytes_of<int64_t>(value));
    case DType::kU32:
      return filled(dtype, shape, bytes_of<uint32_t>(value));
    default:
      return cast(filled(DType::kF32, shape, bytes_of<float>(value)), dtype);
  }
}

}  // namespace tracefire::nn
