// SPDX-License-Identifier: Apache-2.0
// Operations on strings; the CPU is their place by design.

#include <charconv>
#include <cmath>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/move/numbers.h"

namespace tracefire::cpu {
namespace {

const std::string* strings(const void* data) { return static_cast<const std::string*>(data); }
std::string* strings(void* data) { return static_cast<std::string*>(data); }

BoundLaunch bind_length(const NodeView& node) {
  const int64_t elements = elements_of(node.inputs[0]);
  return make_launch("cpu_string_length", [=](const LaunchArgs& args) -> Status {
    const std::string* x = strings(static_cast<const void*>(args.inputs[0]));
    int32_t* y = static_cast<int32_t*>(args.outputs[0]);
    for (int64_t i = 0; i < elements; ++i) y[i] = static_cast<int32_t>(x[i].size());
    return {};
  });
}

/// Letters first … first + 25 turned into `to` … : only ASCII, whatever the locale is.
template <char first, char to>
BoundLaunch bind_case(const NodeView& node) {
  const int64_t elements = elements_of(node.inputs[0]);
  return make_launch("cpu_string_case", [=](const LaunchArgs& args) -> Status {
    const std::string* x = strings(static_cast<const void*>(args.inputs[0]));
    std::string* y = strings(args.outputs[0]);
    for (int64_t i = 0; i < elements; ++i) {
      std::string text = x[i];
      for (char& c : text) {
        if (c >= first && c < first + 26) c = static_cast<char>(c - first + to);
      }
      y[i] = std::move(text);
    }
    return {};
  });
}

BoundLaunch bind_join(const NodeView& node) {
  const std::vector<int64_t> sizes = sizes_of(node.outputs[0]);
  // Strides of each input over the result's axes, 0 where it is repeated.
  std::vector<std::vector<int64_t>> strides;
  for (const ValueType& input : node.inputs) {
    const std::vector<int64_t> own = sizes_of(input), steps = row_major(own);
    std::vector<int64_t> over(sizes.size(), 0);
    for (size_t axis = 0; axis < own.size(); ++axis) {
      if (own[axis] != 1) over[axis + sizes.size() - own.size()] = steps[axis];
    }
    strides.push_back(std::move(over));
  }
  const int64_t elements = elements_of(node.outputs[0]);
  const std::string separator = node.node->attrs.text("separator");
  return make_launch("cpu_string_join", [=](const LaunchArgs& args) -> Status {
    for (int64_t i = 0; i < elements; ++i) {
      std::string text;
      for (size_t k = 0; k < strides.size(); ++k) {
        int64_t rest = i, offset = 0;
        for (size_t axis = sizes.size(); axis-- > 0;) {
          offset += rest % sizes[axis] * strides[k][axis];
          rest /= sizes[axis];
        }
        if (k > 0) text += separator;
        text += strings(static_cast<const void*>(args.inputs[k]))[offset];
      }
      strings(args.outputs[0])[i] = std::move(text);
    }
    return {};
  });
}

/// `value` with `precision` digits after the point, or as few as read back to the same number.
template <class C>
std::string real_as_text(C value, int64_t precision) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[512];
  const int digits = static_cast<int>(std::min<int64_t>(precision, 100));
  const std::to_chars_result end = precision < 0 ? std::to_chars(text, text + sizeof text, value)
                                                 : std::to_chars(text, text + sizeof text, value,
                                                                 std::chars_format::fixed, digits);
  return std::string(text, end.ptr);
}

BoundLaunch bind_as_string(const NodeView& node) {
  const int64_t elements = elements_of(node.inputs[0]);
  const int64_t precision = node.node->attrs.integer("precision");
  const DType dtype = node.inputs[0].dtype;
  return make_launch("cpu_as_string", [=](const LaunchArgs& args) -> Status {
    std::string* y = strings(args.outputs[0]);
    if (dtype == DType::kBool) {
      const uint8_t* x = static_cast<const uint8_t*>(args.inputs[0]);
      for (int64_t i = 0; i < elements; ++i) y[i] = x[i] ? "true" : "false";
      return {};
    }
    with_real(dtype, [&](auto element) {
      using T = decltype(element);
      const T* x = static_cast<const T*>(args.inputs[0]);
      for (int64_t i = 0; i < elements; ++i) {
        if constexpr (std::is_integral_v<T>) {
          y[i] = std::to_string(x[i]);
        } else {
          y[i] = real_as_text(number(x[i]), precision);
        }
      }
    });
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> host_kernels() {
  return {
      {"string_length", "cpu_string_length", accept_any, bind_length},
      {"string_upper", "cpu_string_upper", accept_any, bind_case<'a', 'A'>},
      {"string_lower", "cpu_string_lower", accept_any, bind_case<'A', 'a'>},
      {"string_join", "cpu_string_join", accept_any, bind_join},
      {"as_string", "cpu_as_string", accept_any, bind_as_string},
  };
}

}  // namespace tracefire::cpu
