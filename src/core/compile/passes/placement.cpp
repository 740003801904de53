// SPDX-License-Identifier: Apache-2.0
#include "core/compile/passes/placement.h"

#include "core/base/log.h"
#include "core/compile/passes/expansion.h"

namespace tracefire {
namespace {

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

/// "op dense/matmul at train.py:12" as far as known.
std::string describe(const Node& node) {
  std::string text(OpTable::instance().name(node.op));
  if (!node.name.empty()) text += " (" + node.name + ")";
  const std::string where = node.location.str();
  if (!where.empty()) text += " at " + where;
  return text;
}

void say_fell_back(const Node& node, Device wanted) {
  const std::string op(OpTable::instance().name(node.op));
  say_once("fell back: " + op + " " + device_kind_name(wanted.kind),
           describe(node) + " runs on " + kHostDevice.str() + " instead of " + wanted.str() + ": " +
               node.fell_back);
}

}  // namespace

std::string Choice::why_not(Device device) const {
  if (refusals.empty()) return device.str() + " has no kernel for it";
  return join(refusals);
}

std::vector<ValueType> input_types(const Graph& graph, const Node& node) {
  std::vector<ValueType> types;
  types.reserve(node.inputs.size());
  for (Value value : node.inputs) types.push_back(graph.type(value));
  return types;
}

Result<Choice> choose_kernel(const Graph& graph, const Node& node, Device device,
                             const CompileOptions& options) {
  Backends& backends = Backends::instance();
  TF_ASSIGN(DeviceBackend * backend, backends.find(device));
  Choice choice;
  const std::string_view op = OpTable::instance().name(node.op);
  if (backends.masked(device.kind, op)) {
    choice.refusals.push_back(std::string(op) + " is masked on " + device_kind_name(device.kind));
    return choice;
  }
  choice.loop = emit_loop(graph, node);
  const std::vector<ValueType> inputs = input_types(graph, node);
  NodeView view;
  view.node = &node;
  view.inputs = inputs;
  view.outputs = node.outputs;
  view.loop = choice.loop.get();
  view.precision = options.precision;
  view.deterministic = options.deterministic;
  for (const Kernel* kernel : backend->kernels(node.op)) {
    Answer answer = kernel->accept(view);
    if (answer.accepted && options.deterministic && !answer.deterministic) {
      answer = Answer::no("results differ from run to run, and deterministic mode is on");
    }
    if (answer.accepted) {
      choice.kernel = kernel;
      return choice;
    }
    choice.refusals.push_back(std::string(kernel->name()) + ": " + answer.refusal);
  }
  return choice;
}

bool has_strings(const Graph& graph, const Node& node) {
  for (const ValueType& type : node.outputs) {
    if (type.dtype == DType::kString) return true;
  }
  for (Value value : node.inputs) {
    if (graph.type(value).dtype == DType::kString) return true;
  }
  return false;
}

bool belongs_on_host(const Graph& graph, const Node& node) {
  if (KnownOps::get().has_programs(node)) return false;
  return OpTable::instance().row(node.op).op_class == OpClass::kHost || has_strings(graph, node);
}

Device natural_device(const Graph& graph, const Node& node, Device fallback) {
  return belongs_on_host(graph, node) ? kHostDevice : fallback;
}

NodeKind node_kind(const Node& node) {
  const KnownOps& known = KnownOps::get();
  if (known.is_alias(node.op)) return NodeKind::kAlias;
  if (node.op == known.copy) return NodeKind::kCopy;
  if (node.op == known.token) return NodeKind::kNothing;
  if (known.has_programs(node)) return NodeKind::kPrograms;
  const OpRow& row = OpTable::instance().row(node.op);
  if (row.effect[0] != '\0' && row.op_class == OpClass::kHost) return NodeKind::kHostCall;
  return NodeKind::kKernel;
}

Status place_node(const Graph& graph, const CompileOptions& options, Node* node) {
  const NodeKind kind = node_kind(*node);
  if (kind == NodeKind::kNothing) return {};
  if (kind == NodeKind::kCopy) {
    if (!node->device.is_set()) node->device = options.device;
    if (has_strings(graph, *node)) node->device = kHostDevice;
    return {};
  }
  if (kind == NodeKind::kAlias) {
    // Where its bytes are, unless somebody wants it elsewhere.
    if (has_strings(graph, *node)) node->device = kHostDevice;
    if (!node->device.is_set()) node->device = device_of(graph, node->inputs[0]);
    return {};
  }
  const Device wanted =
      node->device.is_set() ? node->device : natural_device(graph, *node, options.device);
  node->device = wanted;
  if (kind == NodeKind::kPrograms) return {};
  if (kind == NodeKind::kHostCall) {
    node->device = kHostDevice;
    return {};
  }
  // What belongs on the host has no other place, also inside a device scope.
  if (wanted != kHostDevice && belongs_on_host(graph, *node)) node->device = kHostDevice;

  TF_ASSIGN(const Choice choice, choose_kernel(graph, *node, node->device, options));
  if (choice.kernel) return {};
  if (expansion(*node)) return {};
  const std::string why = choice.why_not(node->device);
  if (node->device.kind == Device::kCpu) {
    return error(ErrorCode::kNoKernel, describe(*node), ": no kernel of ", node->device.str(),
                 " accepts it (", why, ").");
  }
  if (options.policy == Policy::kStrict) {
    return error(ErrorCode::kPlacementRefused, describe(*node), ": no kernel of ",
                 node->device.str(), " accepts it (", why,
                 "), and the strict policy lets nothing fall back. Put it on ", kHostDevice.str(),
                 " by hand, or use the soft policy.");
  }
  TF_ASSIGN(const Choice host, choose_kernel(graph, *node, kHostDevice, options));
  if (!host.kernel) {
    return error(ErrorCode::kNoKernel, describe(*node), ": no kernel of ", wanted.str(),
                 " accepts it (", why, "), nor does one of ", kHostDevice.str(), " (",
                 host.why_not(kHostDevice), ").");
  }
  node->device = kHostDevice;
  node->device_by_user = false;
  node->fell_back = why;
  say_fell_back(*node, wanted);
  return {};
}

Device results_device(const Node& node, size_t region) {
  return node.op == KnownOps::get().while_op && region == 0 ? Device{} : node.device;
}

Device device_of(const Graph& graph, Value value) {
  const ValueType& type = graph.type(value);
  if (type.dtype == DType::kToken) return {};
  if (type.dtype == DType::kString) return kHostDevice;
  return value.is_param() ? graph.params[static_cast<size_t>(value.index)].device
                          : graph.node(value).device;
}

}  // namespace tracefire
