// SPDX-License-Identifier: Apache-2.0
#include "ir/golden.h"

#include <sstream>

#include "core/compile/compile.h"
#include "core/compile/plan/plan.h"
#include "core/graph/text.h"

namespace tracefire::test {
namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \n"), last = text.find_last_not_of(" \n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> words(std::string text) {
  for (char& c : text) c = c == ',' ? ' ' : c;
  std::istringstream in(text);
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

std::string setting(const Golden& golden, const char* name, const char* fallback) {
  const auto it = golden.settings.find(name);
  return it == golden.settings.end() ? fallback : it->second;
}

/// Ops are masked while the case runs: "NULL softmax log; CPU tanh".
class MaskScope {
 public:
  explicit MaskScope(const std::string& text) {
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ';');) {
      std::vector<std::string> ops = words(part);
      if (ops.empty()) continue;
      kinds_.push_back(register_device_kind(ops[0]));
      ops.erase(ops.begin());
      Backends::instance().mask(kinds_.back(), ops);
    }
  }
  ~MaskScope() {
    for (uint8_t kind : kinds_) Backends::instance().mask(kind, {});
  }

 private:
  std::vector<uint8_t> kinds_;
};

/// Every loop of the graph, in order.
std::string loops(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    const auto loop = emit_loop(graph, node);
    text += std::string(OpTable::instance().name(node.op)) + ": ";
    text += loop ? loop->str() : "no loop\n";
  }
  return text;
}

Result<std::string> outcome(const Golden& golden, const CompileOptions& options,
                            std::string* kind) {
  TF_ASSIGN(GraphPtr graph, tracefire::parse(OpTable::instance(), golden.before));
  std::vector<Pass> passes;
  *kind = "graph";
  for (const std::string& name : words(setting(golden, "pass", ""))) {
    if (name == "plan" || name == "loop" || name == "compile") {
      *kind = name == "loop" ? "loop" : "program";
      TF_ASSIGN(graph, run_passes(passes, graph, options));
      if (name == "loop") return loops(*graph);
      TF_ASSIGN(const ProgramPtr program,
                name == "plan" ? plan(graph, options) : compile(graph, options));
      return program->str();
    }
    for (const auto* list : {&raise_passes(), &lowering_passes()}) {
      for (const Pass& pass : *list) {
        if (name == pass.name) passes.push_back(pass);
      }
    }
  }
  TF_ASSIGN(graph, run_passes(passes, graph, options));
  return print(OpTable::instance(), *graph);
}

}  // namespace

Golden Golden::parse(const std::string& text) {
  Golden golden;
  std::istringstream in(text);
  std::string* part = &golden.before;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("#", 0) == 0) {
      golden.comment += line + "\n";
      const size_t colon = line.find(':');
      if (colon != std::string::npos) {
        golden.settings[trimmed(line.substr(1, colon - 1))] = trimmed(line.substr(colon + 1));
      }
    } else if (line.rfind("=== ", 0) == 0) {
      golden.kind = line.substr(4);
      part = &golden.after;
    } else {
      *part += line + "\n";
    }
  }
  return golden;
}

std::string Golden::str() const { return comment + before + "=== " + kind + "\n" + after; }

Golden run_golden(const Golden& golden) {
  // Some programs span two CPU devices. Devices are made on first use, by these tests only.
  static const Status two_cpus = Backends::instance().set_cpu_devices(2);
  two_cpus.throw_if_error();
  const uint8_t null = register_device_kind("NULL");
  CompileOptions options;
  options.device = Device{null, 0};
  const std::string device = setting(golden, "device", "");
  if (!device.empty()) options.device = parse_device(device);
  if (setting(golden, "policy", "") == "strict") options.policy = Policy::kStrict;
  options.optimize = setting(golden, "optimize", "true") == "true";
  const MaskScope mask(setting(golden, "mask", ""));
  Golden now = golden;
  const Result<std::string> result = outcome(golden, options, &now.kind);
  if (result.ok()) {
    now.after = *result;
  } else {
    now.kind = "error";
    now.after = result.status().str() + "\n";
  }
  return now;
}

}  // namespace tracefire::test
