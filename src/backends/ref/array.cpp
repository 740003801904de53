// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/array.h"

#include <cstring>

#include "tracefire/half.h"

namespace tracefire::ref {
namespace {

template <class T>
T read(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void write(void* data, int64_t i, T value) {
  std::memcpy(static_cast<char*>(data) + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

double read_real(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF64:
      return read<double>(data, i);
    case DType::kF32:
      return static_cast<double>(read<float>(data, i));
    case DType::kF16:
      return static_cast<double>(f16_to_float(read<uint16_t>(data, i)));
    case DType::kBF16:
      return static_cast<double>(bf16_to_float(read<uint16_t>(data, i)));
    case DType::kF8E4M3:
      return static_cast<double>(f8e4m3_to_float(read<uint8_t>(data, i)));
    case DType::kF8E5M2:
      return static_cast<double>(f8e5m2_to_float(read<uint8_t>(data, i)));
    default:
      return 0;
  }
}

void write_real(void* data, DType dtype, int64_t i, double value) {
  const float single = static_cast<float>(value);
  switch (dtype) {
    case DType::kF64:
      return write(data, i, value);
    case DType::kF32:
      return write(data, i, single);
    case DType::kF16:
      return write(data, i, f16_from_float(single));
    case DType::kBF16:
      return write(data, i, bf16_from_float(single));
    case DType::kF8E4M3:
      return write(data, i, f8e4m3_from_float(single));
    case DType::kF8E5M2:
      return write(data, i, f8e5m2_from_float(single));
    default:
      return;
  }
}

Int read_whole(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kBool:
      return read<uint8_t>(data, i) != 0;
    case DType::kI4:
    case DType::kI8:
      return read<int8_t>(data, i);
    case DType::kI16:
      return read<int16_t>(data, i);
    case DType::kI32:
      return read<int32_t>(data, i);
    case DType::kI64:
      return read<int64_t>(data, i);
    case DType::kU4:
    case DType::kU8:
      return read<uint8_t>(data, i);
    case DType::kU16:
      return read<uint16_t>(data, i);
    case DType::kU32:
      return read<uint32_t>(data, i);
    case DType::kU64:
      return read<uint64_t>(data, i);
    default:
      return 0;
  }
}

void write_whole(void* data, DType dtype, int64_t i, Int value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  switch (dtype_size(dtype)) {
    case 1:
      return write(data, i, static_cast<uint8_t>(bits));
    case 2:
      return write(data, i, static_cast<uint16_t>(bits));
    case 4:
      return write(data, i, static_cast<uint32_t>(bits));
    default:
      return write(data, i, bits);
  }
}

}  // namespace

Array::Array(DType type, std::vector<int64_t> shape) : dtype(type), sizes(std::move(shape)) {
  const size_t elements = static_cast<size_t>(count_of(sizes));
  if (is_floating(dtype)) {
    real.resize(elements);
  } else if (dtype == DType::kString) {
    text.resize(elements);
  } else if (dtype != DType::kToken) {
    whole.resize(elements);
  }
}

int64_t Array::count() const { return count_of(sizes); }

double Array::number(int64_t i) const {
  const size_t at = static_cast<size_t>(i);
  return is_real() ? real[at] : static_cast<double>(whole[at]);
}

int64_t count_of(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= sizes[axis];
  }
  return strides;
}

std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& sizes,
                                       const std::vector<int64_t>& out) {
  const std::vector<int64_t> own = strides_of(sizes);
  const size_t lead = out.size() - sizes.size();
  std::vector<int64_t> strides(out.size());
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != 1) strides[lead + axis] = own[axis];
  }
  return strides;
}

int64_t dot(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t sum = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) sum += index[axis] * strides[axis];
  return sum;
}

int bits_of(DType dtype) {
  if (dtype == DType::kBool) return 1;
  if (dtype == DType::kI4 || dtype == DType::kU4) return 4;
  return 8 * static_cast<int>(dtype_size(dtype));
}

Int lowest(DType dtype) {
  return is_signed_integer(dtype) ? -(static_cast<Int>(1) << (bits_of(dtype) - 1)) : 0;
}

Int highest(DType dtype) {
  const int bits = bits_of(dtype) - (is_signed_integer(dtype) ? 1 : 0);
  return (static_cast<Int>(1) << bits) - 1;
}

Int wrap_to(DType dtype, Int value) {
  if (dtype == DType::kBool) return value != 0;
  const int bits = bits_of(dtype);
  const Int mask = (static_cast<Int>(1) << bits) - 1;
  const Int low = value & mask;
  return low > highest(dtype) ? low - mask - 1 : low;
}

double round_to(DType dtype, double value) {
  char bytes[8] = {};
  write_real(bytes, dtype, 0, value);
  return read_real(bytes, dtype, 0);
}

void settle(Array* array) {
  for (double& value : array->real) value = round_to(array->dtype, value);
  for (Int& value : array->whole) value = wrap_to(array->dtype, value);
}

Array load(const void* data, DType dtype, const std::vector<int64_t>& sizes) {
  Array array(dtype, sizes);
  for (size_t i = 0; i < array.real.size(); ++i) {
    array.real[i] = read_real(data, dtype, static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < array.whole.size(); ++i) {
    array.whole[i] = read_whole(data, dtype, static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < array.text.size(); ++i) {
    array.text[i] = static_cast<const std::string*>(data)[i];
  }
  return array;
}

void store(const Array& array, void* data) {
  for (size_t i = 0; i < array.real.size(); ++i) {
    write_real(data, array.dtype, static_cast<int64_t>(i), array.real[i]);
  }
  for (size_t i = 0; i < array.whole.size(); ++i) {
    write_whole(data, array.dtype, static_cast<int64_t>(i), array.whole[i]);
  }
  for (size_t i = 0; i < array.text.size(); ++i) {
    static_cast<std::string*>(data)[i] = array.text[i];
  }
}

std::string bytes_of(const Array& array) {
  std::string bytes(static_cast<size_t>(array.count()) * dtype_size(array.dtype), '\0');
  store(array, bytes.data());
  return bytes;
}

Array from_bytes(const std::string& bytes, DType dtype, const std::vector<int64_t>& sizes) {
  return load(bytes.data(), dtype, sizes);
}

void copy_element(const Array& source, int64_t from, Array* target, int64_t to) {
  const size_t f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  if (!source.real.empty()) target->real[t] = source.real[f];
  if (!source.whole.empty()) target->whole[t] = source.whole[f];
  if (!source.text.empty()) target->text[t] = source.text[f];
}

}  // namespace tracefire::ref
