// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>

#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

void string_length(Eval& e) {
  for (size_t i = 0; i < e.in[0].text.size(); ++i) {
    e.out[0].whole[i] = static_cast<Int>(e.in[0].text[i].size());
  }
}

template <char first, char last, int distance>
void shift_letters(Eval& e) {
  e.out[0].text = e.in[0].text;
  for (std::string& text : e.out[0].text) {
    for (char& c : text) {
      if (c >= first && c <= last) c = static_cast<char>(c + distance);
    }
  }
}

void string_join(Eval& e) {
  const std::string& separator = e.attrs().text("separator");
  for (size_t part = 0; part < e.in.size(); ++part) {
    const std::vector<int64_t> strides = broadcast_strides(e.in[part].sizes, e.out[0].sizes);
    for_each(e.out[0].sizes, [&](int64_t i, const std::vector<int64_t>& index) {
      std::string& text = e.out[0].text[static_cast<size_t>(i)];
      if (part > 0) text += separator;
      text += e.in[part].text[static_cast<size_t>(dot(index, strides))];
    });
  }
}

/// Shortest text that reads back to the same number of the type, or with fixed digits.
std::string real_text(double value, DType dtype, int64_t precision) {
  if (std::isnan(value)) return "nan";
  char buffer[512];
  std::to_chars_result end{};
  if (precision >= 0) {
    end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed,
                        static_cast<int>(precision > 100 ? 100 : precision));
  } else if (dtype == DType::kF64) {
    end = std::to_chars(buffer, buffer + sizeof buffer, value);
  } else {
    end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value));
  }
  return std::string(buffer, end.ptr);
}

std::string whole_text(Int value) {
  if (value < 0) return std::to_string(static_cast<int64_t>(value));
  return std::to_string(static_cast<uint64_t>(value));
}

void as_string(Eval& e) {
  const Array& x = e.in[0];
  for (size_t i = 0; i < e.out[0].text.size(); ++i) {
    std::string& text = e.out[0].text[i];
    if (x.is_real()) {
      text = real_text(x.real[i], x.dtype, e.attrs().integer("precision"));
    } else if (x.dtype == DType::kBool) {
      text = x.whole[i] ? "true" : "false";
    } else {
      text = whole_text(x.whole[i]);
    }
  }
}

}  // namespace

std::vector<Entry> string_entries() {
  return {{"string_length", string_length},
          {"string_upper", shift_letters<'a', 'z', 'A' - 'a'>},
          {"string_lower", shift_letters<'A', 'Z', 'a' - 'A'>},
          {"string_join", string_join},
          {"as_string", as_string}};
}

}  // namespace tracefire::ref
