// SPDX-License-Identifier: Apache-2.0
#include "core/engine/format_value.h"

#include <cstdio>
#include <cstring>

#include "tracefire/half.h"

namespace tracefire {
namespace {

constexpr int64_t kShown = 3;  // at either end of an axis

template <class T>
T read(const HostArray& array, size_t index) {
  T value;
  std::memcpy(&value, array.bytes.data() + index * sizeof(T), sizeof value);
  return value;
}

std::string format_real(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

void append(const HostArray& array, size_t axis, size_t first, size_t stride, std::string* out) {
  if (axis == array.sizes.size()) {
    *out += format_element(array, first);
    return;
  }
  const int64_t size = array.sizes[axis];
  const size_t inner = size == 0 ? 0 : stride / static_cast<size_t>(size);
  *out += '[';
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) *out += ' ';
    if (size > 2 * kShown && i == kShown) {
      *out += "...";
      i = size - kShown - 1;
      continue;
    }
    append(array, axis + 1, first + static_cast<size_t>(i) * inner, inner, out);
  }
  *out += ']';
}

}  // namespace

std::string format_element(const HostArray& array, size_t index) {
  switch (array.dtype) {
    case DType::kBool:
      return array.bytes[index] ? "true" : "false";
    case DType::kI4:
    case DType::kI8:
      return std::to_string(read<int8_t>(array, index));
    case DType::kI16:
      return std::to_string(read<int16_t>(array, index));
    case DType::kI32:
      return std::to_string(read<int32_t>(array, index));
    case DType::kI64:
      return std::to_string(read<int64_t>(array, index));
    case DType::kU4:
    case DType::kU8:
      return std::to_string(read<uint8_t>(array, index));
    case DType::kU16:
      return std::to_string(read<uint16_t>(array, index));
    case DType::kU32:
      return std::to_string(read<uint32_t>(array, index));
    case DType::kU64:
      return std::to_string(read<uint64_t>(array, index));
    case DType::kF16:
      return format_real(f16_to_float(read<uint16_t>(array, index)));
    case DType::kBF16:
      return format_real(bf16_to_float(read<uint16_t>(array, index)));
    case DType::kF8E4M3:
      return format_real(f8e4m3_to_float(read<uint8_t>(array, index)));
    case DType::kF8E5M2:
      return format_real(f8e5m2_to_float(read<uint8_t>(array, index)));
    case DType::kF32:
      return format_real(static_cast<double>(read<float>(array, index)));
    case DType::kF64:
      return format_real(read<double>(array, index));
    case DType::kC64:
      return format_real(static_cast<double>(read<float>(array, 2 * index))) + "+" +
             format_real(static_cast<double>(read<float>(array, 2 * index + 1))) + "j";
    case DType::kC128:
      return format_real(read<double>(array, 2 * index)) + "+" +
             format_real(read<double>(array, 2 * index + 1)) + "j";
    case DType::kString:
      return "\"" + array.strings[index] + "\"";
    case DType::kToken:
    case DType::kInvalid:
      break;
  }
  return "?";
}

std::string format_value(const HostArray& array) {
  size_t elements = 1;
  for (int64_t size : array.sizes) elements *= static_cast<size_t>(size);
  std::string out;
  append(array, 0, 0, elements, &out);
  return out;
}

}  // namespace tracefire
