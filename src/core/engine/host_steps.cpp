// SPDX-License-Identifier: Apache-2.0
// print, assert and host_call: the steps that run on the host, in program order.
#include <cstdio>

#include "core/engine/engine.h"
#include "core/engine/format_value.h"
#include "core/ops/op_table.h"
#include "core/trace/host_functions.h"
#include "tracefire/half.h"

namespace tracefire {
namespace {

Status run_print(const Node& node, const std::vector<HostArray>& inputs) {
  const std::string& format = node.attrs.text("format");
  std::string line;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '{' && i + 1 < format.size() && format[i + 1] == '}') {
      line += next < inputs.size() ? format_value(inputs[next]) : "{}";
      ++next;
      ++i;
    } else {
      line += format[i];
    }
  }
  for (; next < inputs.size(); ++next) line += " " + format_value(inputs[next]);
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  return {};
}

Status run_assert(const Node& node, const std::vector<HostArray>& inputs) {
  for (char flag : inputs[0].bytes) {
    if (flag == 0) {
      std::string text = node.attrs.text("message");
      if (text.empty()) text = "the condition is false";
      for (size_t i = 1; i < inputs.size(); ++i) text += " " + format_value(inputs[i]);
      return error(ErrorCode::kAssertFailed, text);
    }
  }
  return {};
}

Status run_host_function(const Node& node, const std::vector<HostArray>& inputs,
                         std::vector<HostArray>* outputs) {
  const HostFunction* function = trace::find_host_function(node.attrs.integer("callback"));
  if (function == nullptr) {
    return error(ErrorCode::kHostCallFailed, "function ", node.attrs.integer("callback"),
                 " is not registered in this process");
  }
  try {
    *outputs = (*function)(inputs);
  } catch (const std::exception& failure) {
    return error(ErrorCode::kHostCallFailed, "the function failed: ", failure.what());
  } catch (...) {  // on a thread of its own, where what leaves ends the process
    return error(ErrorCode::kHostCallFailed,
                 "the function failed: it threw what is no std::exception");
  }
  return {};
}

}  // namespace

Status serve_host_step(const Node& node, const std::vector<HostArray>& inputs,
                       std::vector<HostArray>* outputs) {
  const std::string_view op = OpTable::instance().name(node.op);
  if (op == "print") return run_print(node, inputs);
  if (op == "assert") return run_assert(node, inputs);
  return run_host_function(node, inputs, outputs);
}

}  // namespace tracefire
