// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/dim_text.h"
#include "core/graph/text.h"

namespace tracefire {
namespace {

/// Appends to a byte string so that no two different graphs give the same bytes: every list and
/// text is preceded by its length.
class KeyWriter {
 public:
  explicit KeyWriter(const OpSet& ops) : ops_(ops) {}

  /// Numbers the symbols that stand alone in a parameter's type, before those inside expressions,
  /// whose order follows from when they were made.
  void number_symbols(const Graph& g) {
    for (const Param& param : g.params) {
      for (Dim d : param.type.shape) {
        if (d.is_constant() || !is_free_symbol(d.symbol())) continue;
        symbols_.try_emplace(d.symbol(), "s" + std::to_string(symbols_.size()));
      }
    }
  }

  void graph(const Graph& g) {
    number(g.params.size());
    for (const Param& param : g.params) {
      type(param.type);
      byte(static_cast<uint8_t>(param.kind));
      device(param.device);
      if (param.kind == ParamKind::kToken) text(param.name);  // the class of the effect chain
    }
    number(g.nodes.size());
    for (const Node& n : g.nodes) node(n);
    number(g.results.size());
    for (const ResultValue& result : g.results) {
      value(result.value);
      number(static_cast<uint64_t>(result.slot + 1));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void byte(uint8_t b) { out_.push_back(static_cast<char>(b)); }

  void number(uint64_t n) {  // 7 bits a byte, so that the usual small numbers take one
    while (n >= 0x80) {
      byte(static_cast<uint8_t>(n | 0x80));
      n >>= 7;
    }
    byte(static_cast<uint8_t>(n));
  }

  void raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }

  void text(std::string_view t) {
    number(t.size());
    raw(t.data(), t.size());
  }

  void device(Device d) {
    byte(d.kind);
    byte(d.index);
  }

  void value(Value v) {
    number(static_cast<uint64_t>(int64_t{v.node} + 2));
    number(static_cast<uint64_t>(v.index));
  }

  void dim(Dim d) {
    if (d.is_constant()) {
      byte(0);
      number(static_cast<uint64_t>(d.value()));
      return;
    }
    byte(1);
    text(dim_text(d, [this](int32_t symbol) {
      return symbols_.try_emplace(symbol, "s" + std::to_string(symbols_.size())).first->second;
    }));
    std::map<std::string_view, int64_t> bounds;  // of symbols not met before, by name
    for (int32_t symbol : free_symbols(d)) {
      if (!bounded_.insert(symbol).second) continue;
      bounds[symbols_.at(symbol)] = Dim::from_symbol(symbol).bound();
    }
    for (const auto& [name, bound] : bounds) {
      text(name);
      number(static_cast<uint64_t>(bound));
    }
  }

  void shape(const Shape& s) {
    number(static_cast<uint64_t>(s.rank()));
    for (Dim d : s) dim(d);
  }

  void type(const ValueType& t) {
    byte(static_cast<uint8_t>(t.dtype));
    shape(t.shape);
  }

  void attr(const Attr& a) {
    byte(static_cast<uint8_t>(a.index()));
    if (const bool* flag = std::get_if<bool>(&a)) byte(*flag ? 1 : 0);
    if (const int64_t* n = std::get_if<int64_t>(&a)) raw(n, sizeof(*n));
    if (const double* n = std::get_if<double>(&a)) raw(n, sizeof(*n));
    if (const std::string* t = std::get_if<std::string>(&a)) text(*t);
    if (const DType* t = std::get_if<DType>(&a)) byte(static_cast<uint8_t>(*t));
    if (const Shape* s = std::get_if<Shape>(&a)) shape(*s);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&a)) {
      number(list->size());
      raw(list->data(), list->size() * sizeof(int64_t));
    }
  }

  void node(const Node& n) {
    text(ops_.name(n.op));
    number(static_cast<uint64_t>(ops_.version(n.op)));
    number(n.inputs.size());
    for (Value input : n.inputs) value(input);
    number(n.attrs.entries().size());
    for (const auto& [name, a] : n.attrs.entries()) {
      text(name);
      attr(a);
    }
    number(n.outputs.size());
    for (const ValueType& t : n.outputs) type(t);
    number(n.regions.size());
    for (const GraphPtr& region : n.regions) graph(*region);
    device(n.device);
    byte(n.device_by_user ? 1 : 0);
  }

  const OpSet& ops_;
  std::string out_;
  std::unordered_map<int32_t, std::string> symbols_;
  std::unordered_set<int32_t> bounded_;  // whose bound is in the key
};

}  // namespace

std::string cache_key(const OpSet& ops, const Graph& graph) {
  KeyWriter writer(ops);
  writer.number_symbols(graph);
  writer.graph(graph);
  return writer.take();
}

}  // namespace tracefire
