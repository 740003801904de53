// SPDX-License-Identifier: Apache-2.0
#include "backends/api/program.h"

namespace tracefire {
namespace {

const char* kind_name(StepKind kind) {
  switch (kind) {
    case StepKind::kKernel:
      return "kernel";
    case StepKind::kAlias:
      return "alias";
    case StepKind::kCopy:
      return "copy";
    case StepKind::kIf:
      return "if";
    case StepKind::kWhile:
      return "while";
    case StepKind::kCall:
      return "call";
    case StepKind::kHostCall:
      return "host call";
  }
  return "";
}

const char* placement_name(Placement placement) {
  switch (placement) {
    case Placement::kOnDevice:
      return "";
    case Placement::kHostByDesign:
      return "host by design";
    case Placement::kByUser:
      return "placed by hand";
    case Placement::kFellBack:
      return "fell back";
  }
  return "";
}

std::string value_list(const std::vector<int32_t>& values) {
  std::string text;
  for (int32_t value : values) text += (text.empty() ? "v" : ", v") + std::to_string(value);
  return text;
}

std::string number_list(const std::vector<int32_t>& numbers) {
  std::string text;
  for (int32_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::string indented(const std::string& text, const char* indent) {
  std::string result;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    const size_t next = end == std::string::npos ? text.size() : end + 1;
    result += indent + text.substr(at, next - at);
    at = next;
  }
  return result;
}

std::string value_text(const ProgramValue& value, size_t index) {
  std::string text = "v" + std::to_string(index) + " = " + value.type.str();
  if (value.device.is_set()) text += " @" + value.device.str();
  if (value.param >= 0) text += " parameter " + std::to_string(value.param);
  if (value.alias_of >= 0) text += " alias of v" + std::to_string(value.alias_of);
  if (value.in_slot >= 0) text += " in slot " + std::to_string(value.in_slot);
  text += " steps " + std::to_string(value.first_step) + ".." + std::to_string(value.last_step);
  return text;
}

}  // namespace

std::string Program::str() const {
  const OpTable& table = OpTable::instance();
  std::string text = "program " + name + " {\n";
  for (size_t i = 0; i < values.size(); ++i) text += "  " + value_text(values[i], i) + "\n";
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const Node& node = graph->nodes[static_cast<size_t>(step.node)];
    text += "  step " + std::to_string(i) + ": ";
    if (!step.outputs.empty()) text += value_list(step.outputs) + " = ";
    text += std::string(table.name(node.op)) + "(" + value_list(step.inputs) + ") @" +
            step.device.str() + " " + kind_name(step.kind);
    if (step.kernel) text += " " + std::string(step.kernel->name());
    if (const char* placed = placement_name(step.placement); *placed) {
      text += std::string(" [") + placed;
      text += step.placement == Placement::kFellBack ? ": " + step.reason + "]" : "]";
    }
    text += '\n';
    for (const std::string& refusal : step.refusals) text += "    refused by " + refusal + "\n";
    for (const auto& region : step.regions) text += indented(region->str(), "    ");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    text += "  result v" + std::to_string(results[i]);
    if (result_slots[i] >= 0) text += " -> slot " + std::to_string(result_slots[i]);
    if (!result_checks[i].empty()) text += " checked by " + number_list(result_checks[i]);
    text += '\n';
  }
  for (const SizeRead& read : size_reads) {
    text += "  after step " + std::to_string(read.step) + ": " +
            Dim::from_symbol(read.symbol).str() + " = v" + std::to_string(read.value) + "\n";
  }
  text += capturable ? "  capturable\n" : "  not capturable: " + why_not_capturable + "\n";
  return text + "}\n";
}

}  // namespace tracefire
