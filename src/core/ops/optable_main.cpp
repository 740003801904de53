// SPDX-License-Identifier: Apache-2.0
// optable: prints the rows of the op table as JSON, one row a line, for scripts/generate_ops.py.

#include <cstdio>
#include <limits>

#include "core/ops/op_table.h"
#include "core/ops/row_names.h"

namespace tracefire {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// Calls `text` for each element and joins the results as a JSON list.
template <class List, class Fn>
std::string list_of(const List& list, Fn text) {
  std::string out;
  for (const auto& element : list) out += (out.empty() ? "" : ", ") + text(element);
  return "[" + out + "]";
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", std::numeric_limits<double>::digits10, value);
  return text;
}

/// Dtypes by name; sizes of shapes as numbers, which is all that a default can have.
std::string value_text(const Attr& attr) {
  const auto whole = [](int64_t value) { return std::to_string(value); };
  if (const bool* flag = std::get_if<bool>(&attr)) return *flag ? "true" : "false";
  if (const int64_t* value = std::get_if<int64_t>(&attr)) return whole(*value);
  if (const double* real = std::get_if<double>(&attr)) return number(*real);
  if (const std::string* text = std::get_if<std::string>(&attr)) return quoted(*text);
  if (const DType* dtype = std::get_if<DType>(&attr)) return quoted(dtype_name(*dtype));
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr)) return list_of(*ints, whole);
  return list_of(std::get<Shape>(attr).sizes(), whole);
}

std::string attr_text(const AttrSpec& attr) {
  std::string text = "{\"name\": " + quoted(attr.name) + ", \"type\": " +
                     quoted(attr_type_name(attr.type)) + ", \"doc\": " + quoted(attr.doc);
  if (attr.fallback) text += ", \"default\": " + value_text(*attr.fallback);
  return text + "}";
}

std::string row_text(const OpRow& row) {
  const auto name = [](const char* text) { return quoted(text); };
  const std::pair<const char*, std::string> fields[] = {
      {"name", quoted(row.name)},
      {"tf_name", quoted(row.tf_name)},
      {"class", quoted(op_class_name(row.op_class))},
      {"min_inputs", std::to_string(row.arity.min)},
      {"max_inputs", std::to_string(row.arity.max)},
      {"inputs", list_of(row.input_names, name)},
      {"outputs", list_of(row.output_names, name)},
      {"attrs", list_of(row.attrs, attr_text)},
      {"doc", quoted(row.doc)},
      {"gradient", row.gradient.fn ? "true" : "false"},
      {"why_no_gradient", quoted(row.gradient.why_not ? row.gradient.why_not : "")},
      {"decomposes", row.decompose ? "true" : "false"},
      {"effect", quoted(row.effect)},
      {"regions", std::to_string(row.regions)},
      {"checks_data", row.checks_data ? "true" : "false"},
      {"size_output", std::to_string(row.size_output)},
      {"version", std::to_string(row.version)},
      {"tolerance", "{\"float64\": " + number(row.tolerance.f64) +
                        ", \"float32\": " + number(row.tolerance.f32) +
                        ", \"float16\": " + number(row.tolerance.f16) +
                        ", \"bfloat16\": " + number(row.tolerance.bf16) + "}"}};
  std::string text;
  for (const auto& [key, value] : fields) {
    text += (text.empty() ? "" : ", ") + quoted(key) + ": " + value;
  }
  return "{" + text + "}";
}

}  // namespace
}  // namespace tracefire

int main() {
  std::string text;
  for (const tracefire::OpRow& row : tracefire::OpTable::instance().rows()) {
    text += (text.empty() ? "" : ",\n") + tracefire::row_text(row);
  }
  const std::string all = "[\n" + text + "\n]\n";
  const bool written = std::fwrite(all.data(), 1, all.size(), stdout) == all.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}
