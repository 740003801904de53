// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>
#include <unordered_set>

#include "core/base/dim_text.h"
#include "core/base/text.h"
#include "core/graph/text.h"
#include "core/graph/text_limits.h"

namespace tracefire {
namespace {

/// "text" with escapes for everything but printable ASCII.
std::string quoted(const std::string& text) {
  static const char* digits = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (u < 0x20 || u >= 0x7f) {
      out += "\\x";
      out += digits[u >> 4];
      out += digits[u & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Names of the symbols of one text: unique, and identifiers.
class SymbolNames {
 public:
  /// Name of `symbol`; sets `fresh` where this is its first use.
  std::string use(int32_t symbol, bool* fresh) {
    auto known = names_.find(symbol);
    *fresh = known == names_.end();
    if (!*fresh) return known->second;
    std::string name = symbol_name(symbol);
    for (char& c : name) {
      if (!is_identifier_part(c)) c = '_';
    }
    if (!is_identifier(name)) name = "N" + name;
    std::string unique = name;
    for (int i = 2; unique == "max" || !taken_.insert(unique).second; ++i) {
      unique = name + "_" + std::to_string(i);
    }
    names_[symbol] = unique;
    return unique;
  }

 private:
  std::unordered_map<int32_t, std::string> names_;
  std::unordered_set<std::string> taken_;
};

class Printer {
 public:
  Printer(const OpSet& ops, PrintOptions options) : ops_(ops), options_(options) {}

  void graph(const Graph& graph, const std::string& indent) {
    out_ += indent + "graph ";
    if (!graph.name.empty()) {
      out_ += is_identifier(graph.name) ? graph.name : quoted(graph.name);
    }
    out_ += "(";
    for (size_t i = 0; i < graph.params.size(); ++i) {
      out_ += (i ? ", %" : "%") + std::to_string(i) + ": ";
      param(graph.params[i]);
    }
    out_ += ") {\n";
    std::vector<size_t> firsts;
    size_t next = graph.params.size();
    for (const Node& node : graph.nodes) {
      firsts.push_back(next);
      next += node.outputs.size();
    }
    auto value = [&firsts](Value v) {
      if (!v.valid() || (!v.is_param() && static_cast<size_t>(v.node) >= firsts.size())) {
        return std::string("%?");  // a broken graph can be printed, to be looked at
      }
      size_t index = static_cast<size_t>(v.index);
      return "%" +
             std::to_string(v.is_param() ? index : firsts[static_cast<size_t>(v.node)] + index);
    };
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      node(graph.nodes[i], firsts[i], indent + "  ", value);
    }
    out_ += indent + "  return";
    for (size_t i = 0; i < graph.results.size(); ++i) {
      const ResultValue& result = graph.results[i];
      out_ += i ? ", " : " ";
      if (result.slot >= 0) out_ += "slot %" + std::to_string(result.slot) + " = ";
      out_ += value(result.value);
    }
    out_ += "\n" + indent + "}\n";
  }

  std::string take() { return std::move(out_); }

 private:
  /// `text` with "<=bound" after the first place where `name` stands.
  static void add_bound(std::string* text, const std::string& name, int64_t bound) {
    for (size_t at = 0; (at = text->find(name, at)) != std::string::npos; at += name.size()) {
      size_t end = at + name.size();
      bool starts = at == 0 || !is_identifier_part((*text)[at - 1]);
      bool ends = end == text->size() || !is_identifier_part((*text)[end]);
      if (starts && ends) {
        text->insert(end, "<=" + std::to_string(bound));
        return;
      }
    }
  }

  std::string dim(Dim d) {
    if (d.is_constant()) return std::to_string(d.value());
    std::unordered_map<int32_t, std::string> words;
    std::vector<int32_t> fresh;
    for (int32_t symbol : free_symbols(d)) {
      bool first = false;
      words[symbol] = names_.use(symbol, &first);
      if (first) fresh.push_back(symbol);
    }
    std::string text = dim_text(d, [&words](int32_t symbol) { return words[symbol]; });
    for (int32_t symbol : fresh) {
      int64_t bound = Dim::from_symbol(symbol).bound();
      if (bound != Dim::kUnbounded) add_bound(&text, words[symbol], bound);
    }
    return text;
  }

  std::string shape(const Shape& s) {
    std::string text = "(";
    for (int i = 0; i < s.rank(); ++i) text += (i ? ", " : "") + dim(s[i]);
    return text + (s.rank() == 1 ? ",)" : ")");
  }

  std::string type(const ValueType& t) { return std::string(dtype_name(t.dtype)) + shape(t.shape); }

  void param(const Param& p) {
    if (p.kind == ParamKind::kSlot) out_ += "slot ";
    if (p.kind == ParamKind::kToken) out_ += "token ";
    out_ += type(p.type);
    if (!p.name.empty()) out_ += " " + quoted(p.name);
    if (options_.devices && p.device.is_set()) out_ += " @" + p.device.str();
  }

  std::string attr(const Attr& value) {
    if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const int64_t* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
    if (const double* number = std::get_if<double>(&value)) return real_text(*number);
    if (const std::string* text = std::get_if<std::string>(&value)) return quoted(*text);
    if (const DType* dtype = std::get_if<DType>(&value)) return std::string(dtype_name(*dtype));
    if (const Shape* s = std::get_if<Shape>(&value)) return shape(*s);
    std::string text = "[";
    for (int64_t item : std::get<std::vector<int64_t>>(value)) {
      text += (text.size() > 1 ? ", " : "") + std::to_string(item);
    }
    return text + "]";
  }

  template <class ValueText>
  void node(const Node& node, size_t first, const std::string& indent, const ValueText& value) {
    out_ += indent;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      out_ += (i ? ", %" : "%") + std::to_string(first + i);
    }
    if (!node.outputs.empty()) out_ += " = ";
    out_ += std::string(ops_.name(node.op));
    if (ops_.version(node.op) != 1) out_ += ".v" + std::to_string(ops_.version(node.op));
    out_ += "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      out_ += (i ? ", " : "") + value(node.inputs[i]);
    }
    out_ += ")";
    const auto& attrs = node.attrs.entries();
    for (size_t i = 0; i < attrs.size(); ++i) {
      out_ += (i ? ", " : " {") + attrs[i].first + " = " + attr(attrs[i].second);
    }
    if (!attrs.empty()) out_ += "}";
    if (!node.regions.empty()) {
      out_ += " [\n";
      for (const GraphPtr& region : node.regions) graph(*region, indent + "  ");
      out_ += indent + "]";
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      out_ += (i ? ", " : " : ") + type(node.outputs[i]);
    }
    if (!node.name.empty()) out_ += " as " + quoted(node.name);
    if (options_.devices && node.device.is_set()) {
      out_ += " @" + node.device.str() + (node.device_by_user ? " by user" : "");
    }
    if (options_.locations && !node.location.file_name().empty()) {
      out_ += " at " + quoted(std::string(node.location.file_name())) + ":" +
              std::to_string(node.location.line);
    }
    out_ += "\n";
  }

  const OpSet& ops_;
  const PrintOptions options_;
  SymbolNames names_;
  std::string out_;
};

}  // namespace

std::string print(const OpSet& ops, const Graph& graph, PrintOptions options) {
  Printer printer(ops, options);
  printer.graph(graph, "");
  return printer.take();
}

}  // namespace tracefire
