// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "core/graph/symbols.h"
#include "core/graph/text.h"

namespace tracefire {
namespace {

/// One graph under test. `path` says where it is: "" or "node 3 (if), region 0 (then), ".
struct Subject {
  const OpSet& ops;
  const Graph& graph;
  std::string path;
  bool is_region;
};

using Broken = std::string;  // what is wrong; empty: nothing

std::string value_text(Value value) {
  if (value.is_param()) return concat_text("parameter ", value.index);
  return concat_text("result ", value.index, " of node ", value.node);
}

/// What is wrong with using `value` where only the first `nodes` nodes exist.
Broken wrong_use(const Subject& s, Value value, size_t nodes) {
  std::string outside = s.is_region ? " A region captures nothing: what it uses from outside must "
                                      "come through its parameters."
                                    : "";
  if (!value.valid() || value.index < 0) return "uses a value that was never made." + outside;
  size_t index = static_cast<size_t>(value.index);
  if (value.is_param()) {
    if (index < s.graph.params.size()) return "";
    return concat_text("uses parameter ", index, " of ", s.graph.params.size(), ".") + outside;
  }
  size_t node = static_cast<size_t>(value.node);
  if (node >= nodes) return "uses " + value_text(value) + ", which comes later." + outside;
  if (index < s.graph.nodes[node].outputs.size()) return "";
  return concat_text("uses ", value_text(value), ", which has ", s.graph.nodes[node].outputs.size(),
                     " results.");
}

Broken wrong_type(const ValueType& type) {
  if (type.dtype == DType::kInvalid) return "has no element type.";
  if (type.dtype == DType::kToken && type.shape.rank() != 0) return "is a token with a shape.";
  for (Dim dim : type.shape) {
    if (dim.is_constant() && dim.value() < 0) return "has the negative size " + dim.str() + ".";
  }
  return "";
}

// Rules of a node.

Broken order(const Subject& s, size_t i) {
  for (size_t k = 0; k < s.graph.nodes[i].inputs.size(); ++k) {
    Broken broken = wrong_use(s, s.graph.nodes[i].inputs[k], i);
    if (!broken.empty()) return concat_text("input ", k, " ", broken);
  }
  return "";
}

Broken types(const Subject& s, size_t i) {
  const Node& node = s.graph.nodes[i];
  std::vector<ValueType> inputs;
  for (Value input : node.inputs) inputs.push_back(s.graph.type(input));
  Node copy = node;
  copy.outputs.clear();
  Status status = s.ops.infer(inputs, &copy);
  if (!status.ok()) return "its row refuses it: " + status.str();
  if (node.outputs.size() != copy.outputs.size()) {
    return concat_text("has ", node.outputs.size(), " results where its row gives ",
                       copy.outputs.size(), ".");
  }
  if (same_up_to_new_symbols(node.outputs, copy.outputs, symbols_into(inputs, copy))) return "";
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (node.outputs[k].dtype != copy.outputs[k].dtype ||
        node.outputs[k].shape != copy.outputs[k].shape) {
      return concat_text("result ", k, " is written as ", node.outputs[k].str(),
                         " where its row infers ", copy.outputs[k].str(), ".");
    }
  }
  return "";
}

Broken placement(const Subject& s, size_t i) {
  const Node& node = s.graph.nodes[i];
  return node.device_by_user && !node.device.is_set() ? "is placed by hand, but on no device." : "";
}

Broken regions(const Subject& s, size_t i) {
  for (const GraphPtr& region : s.graph.nodes[i].regions) {
    if (!region) return "has an empty region.";
    for (const Param& param : region->params) {
      if (param.kind == ParamKind::kSlot) {
        return "has a region with a variable among its parameters; regions get values.";
      }
    }
    for (const ResultValue& result : region->results) {
      if (result.slot >= 0) return "has a region that writes a variable; regions return values.";
    }
  }
  return "";
}

// Rules of a whole graph.

Broken params(const Subject& s) {
  for (size_t i = 0; i < s.graph.params.size(); ++i) {
    const Param& param = s.graph.params[i];
    Broken broken = wrong_type(param.type);
    if (broken.empty() && param.kind == ParamKind::kToken && param.type.dtype != DType::kToken) {
      broken = "orders effects but holds " + param.type.str() + ".";
    }
    if (broken.empty() && param.kind == ParamKind::kSlot && param.type.dtype == DType::kToken) {
      broken = "is a variable that holds a token.";
    }
    if (!broken.empty()) return concat_text("parameter ", i, " ", broken);
  }
  return "";
}

Broken results(const Subject& s) {
  for (size_t i = 0; i < s.graph.results.size(); ++i) {
    Broken broken = wrong_use(s, s.graph.results[i].value, s.graph.nodes.size());
    if (!broken.empty()) return concat_text("result ", i, " ", broken);
  }
  return "";
}

Broken slots(const Subject& s) {
  std::set<int32_t> written;
  for (size_t i = 0; i < s.graph.results.size(); ++i) {
    auto [value, slot] = s.graph.results[i];
    if (slot < 0) continue;
    size_t param = static_cast<size_t>(slot);
    if (param >= s.graph.params.size() || s.graph.params[param].kind != ParamKind::kSlot) {
      return concat_text("result ", i, " is written to parameter ", slot,
                         ", which is no variable.");
    }
    const ValueType &now = s.graph.type(value), &before = s.graph.params[param].type;
    if (now.dtype != before.dtype || now.shape != before.shape) {
      return concat_text("result ", i, " is ", now.str(),
                         " and does not fit the variable of "
                         "parameter ",
                         slot, ", which is ", before.str(), ".");
    }
    if (!written.insert(slot).second) {
      return concat_text("the variable of parameter ", slot, " is written twice.");
    }
  }
  return "";
}

/// Follows every token: it goes on to at most one place, and each class has one chain.
class Chains {
 public:
  explicit Chains(const Subject& s) : s_(s) {}

  Broken run() {
    for (size_t i = 0; i < s_.graph.params.size(); ++i) {
      const Param& param = s_.graph.params[i];
      if (param.type.dtype != DType::kToken) continue;
      Broken broken = start({-1, static_cast<int32_t>(i)}, param.name);
      if (!broken.empty()) return broken;
    }
    for (size_t i = 0; i < s_.graph.nodes.size(); ++i) {
      Broken broken = node(static_cast<int32_t>(i));
      if (!broken.empty()) return broken;
    }
    for (const ResultValue& result : s_.graph.results) {
      if (s_.graph.type(result.value).dtype != DType::kToken) continue;
      Broken broken = end(result.value, "a result");
      if (!broken.empty()) return broken;
    }
    return "";
  }

 private:
  Broken start(Value value, const std::string& effect) {
    class_of_[value] = effect;
    if (effect.empty() || started_.insert(effect).second) return "";
    return concat_text("a second chain of '", effect, "' effects starts at ", value_text(value),
                       ".");
  }

  Broken end(Value value, const std::string& user) {
    if (ended_.insert(value).second) return "";
    return concat_text("the token ", value_text(value), " is used again by ", user,
                       "; effects of one class form one chain.");
  }

  Broken node(int32_t i) {
    const Node& node = s_.graph.nodes[static_cast<size_t>(i)];
    std::string where = concat_text("node ", i, " (", s_.ops.name(node.op), ")");
    std::vector<std::string> classes;
    for (Value input : node.inputs) {
      if (s_.graph.type(input).dtype != DType::kToken) continue;
      Broken broken = end(input, where);
      if (!broken.empty()) return broken;
      classes.push_back(class_of_[input]);
    }
    std::string own(s_.ops.effect(node.op));
    if (!own.empty() && classes.size() > 1) return where + " takes more than one token.";
    if (!own.empty() && classes.size() == 1 && !classes[0].empty() && classes[0] != own) {
      return concat_text(where, " has '", own, "' effects but stands in the chain of '", classes[0],
                         "'.");
    }
    size_t next = 0;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k].dtype != DType::kToken) continue;
      Value token{i, static_cast<int32_t>(k)};
      if (next < classes.size()) {
        class_of_[token] = own.empty() ? classes[next] : own;
        ++next;
        continue;
      }
      Broken broken = start(token, own);
      if (!broken.empty()) return broken;
    }
    return "";
  }

  const Subject& s_;
  std::map<Value, std::string> class_of_;
  std::set<std::string> started_;
  std::set<Value> ended_;
};

Broken effects(const Subject& s) { return Chains(s).run(); }

struct NodeRule {
  const char* name;
  Broken (*broken)(const Subject&, size_t node);
};
/// In this order: a rule may rely on those above it, and those of kTypeRules on whole regions.
constexpr NodeRule kNodeRules[] = {
    {"inputs come from before", order},
    {"regions stand alone", regions},
};
constexpr NodeRule kTypeRules[] = {
    {"types are what the row infers", types},
    {"placement by hand names a device", placement},
};

struct GraphRule {
  const char* name;
  Broken (*broken)(const Subject&);
};
constexpr GraphRule kGraphRules[] = {
    {"parameters have a type of their kind", params},
    {"results exist", results},
    {"variables get values that fit", slots},
    {"one chain for each class of effects", effects},
};

Status broken_rule(const Subject& s, const std::string& where, const char* rule,
                   const Broken& what) {
  std::string name = s.graph.name.empty() ? "" : " '" + s.graph.name + "'";
  return error(ErrorCode::kBadGraph, "graph", name, ": ", s.path, where, ": ", what,
               " Rule: ", rule, ". If you did not write the graph by hand, please report it.");
}

std::string node_text(const Subject& s, size_t i) {
  const Node& node = s.graph.nodes[i];
  std::string out = concat_text("node ", i, " (", s.ops.name(node.op));
  if (!node.name.empty()) out += ", " + node.name;
  if (node.location.file) out += ", " + node.location.str();
  return out + ")";
}

template <size_t n>
Status check_node(const Subject& s, size_t i, const NodeRule (&rules)[n]) {
  for (const NodeRule& rule : rules) {
    Broken wrong = rule.broken(s, i);
    if (!wrong.empty()) return broken_rule(s, node_text(s, i), rule.name, wrong);
  }
  return {};
}

Status check(const Subject& s) {
  // Parameters first, because nodes read them; the rest of the graph after its nodes.
  Broken wrong = kGraphRules[0].broken(s);
  if (!wrong.empty()) return broken_rule(s, "parameters", kGraphRules[0].name, wrong);
  for (size_t i = 0; i < s.graph.nodes.size(); ++i) {
    TF_RETURN_IF_ERROR(check_node(s, i, kNodeRules));
    const Node& node = s.graph.nodes[i];
    for (size_t r = 0; r < node.regions.size(); ++r) {
      std::string region = node.regions[r]->name;
      std::string path = concat_text(s.path, node_text(s, i), ", region ", r,
                                     region.empty() ? "" : " (" + region + ")", ", ");
      TF_RETURN_IF_ERROR(check({s.ops, *node.regions[r], path, true}));
    }
    TF_RETURN_IF_ERROR(check_node(s, i, kTypeRules));
  }
  for (const GraphRule& rule : kGraphRules) {
    wrong = rule.broken(s);
    if (!wrong.empty()) return broken_rule(s, "the whole", rule.name, wrong);
  }
  return {};
}

}  // namespace

Status verify(const OpSet& ops, const Graph& graph) { return check({ops, graph, "", false}); }

}  // namespace tracefire
