// SPDX-License-Identifier: Apache-2.0
//
// A few operations for tests of graph code, which knows no op table.
#pragma once

#include <string>
#include <vector>

#include "core/graph/builder.h"

namespace tracefire::test {

/// "constant" (dtype, shape, bytes), "add" (equal types), "matmul" ([m, k] [k, n]), "reshape"
/// (shape), "split" (two halves of axis 0), "unique" (a data-dependent size), "print" (effect
/// "print": value, token -> token), "log" (effect "log"), "if" (pred, operands; then, else),
/// "exp" (version 2), "scale" (factor, real, 1.0 if not given; axes, ints).
class FakeOps final : public OpSet {
 public:
  std::string_view name(OpId op) const override { return names()[op]; }

  std::optional<OpId> find(std::string_view wanted) const override {
    for (size_t i = 0; i < names().size(); ++i) {
      if (names()[i] == wanted) return static_cast<OpId>(i);
    }
    return std::nullopt;
  }

  int version(OpId op) const override { return names()[op] == "exp" ? 2 : 1; }

  std::string_view effect(OpId op) const override {
    return names()[op] == "print" || names()[op] == "log" ? names()[op] : std::string_view();
  }

  Status infer(const std::vector<ValueType>& in, Node* node) const override {
    const std::string& op = names()[node->op];
    auto give = [node](DType dtype, Shape shape) {
      node->outputs.push_back({dtype, std::move(shape)});
      return Status();
    };
    auto bad = [&op](const char* why) { return error(ErrorCode::kShapeMismatch, op, ": ", why); };
    if (op == "constant") {
      for (const char* name : {"dtype", "shape", "bytes"}) {
        if (!node->attrs.has(name)) return bad("an attribute is missing");
      }
      if (!std::holds_alternative<DType>(*node->attrs.find("dtype")) ||
          !std::holds_alternative<Shape>(*node->attrs.find("shape"))) {
        return bad("an attribute has the wrong type");
      }
      return give(node->attrs.dtype("dtype"), node->attrs.shape("shape"));
    }
    if (in.empty()) return bad("takes an input");
    if (op == "add" || op == "matmul") {
      if (in.size() != 2) return bad("takes two inputs");
      if (op == "matmul") {
        if (in[0].shape.rank() != 2 || in[1].shape.rank() != 2) return bad("takes matrices");
        if (in[0].shape[1] != in[1].shape[0]) return bad("inner sizes differ");
        return give(in[0].dtype, {in[0].shape[0], in[1].shape[1]});
      }
      if (in[0].shape != in[1].shape || in[0].dtype != in[1].dtype) return bad("types differ");
    }
    if (op == "scale" && !node->attrs.has("factor")) node->attrs.set("factor", 1.0);
    if (op == "reshape") {
      const Attr* shape = node->attrs.find("shape");
      if (!shape || !std::holds_alternative<Shape>(*shape)) return bad("needs a shape");
      return give(in[0].dtype, std::get<Shape>(*shape));
    }
    if (op == "split") {
      if (in[0].shape.rank() < 1) return bad("takes an axis");
      Shape half = in[0].shape;
      half[0] = floor_div(half[0], 2);
      Status first = give(in[0].dtype, half);
      half[0] = in[0].shape[0] - half[0];
      return first.ok() ? give(in[0].dtype, half) : first;
    }
    if (op == "unique") {
      Dim count = Dim::fresh("U", in[0].shape.elements().bound());
      Status values = give(in[0].dtype, {count});
      return values.ok() ? give(DType::kI64, {count + 1}) : values;
    }
    if (op == "print" || op == "log") {
      if (in.size() != 2 || in[1].dtype != DType::kToken) return bad("takes a value and a token");
      return give(DType::kToken, {});
    }
    if (op == "if") {
      if (node->regions.size() != 2) return bad("takes two regions");
      for (const ResultValue& result : node->regions[0]->results) {
        node->outputs.push_back(node->regions[0]->type(result.value));
      }
      return {};
    }
    return give(in[0].dtype, in[0].shape);
  }

 private:
  static const std::vector<std::string>& names() {
    static const std::vector<std::string> all = {"constant", "add",    "matmul", "reshape",
                                                 "split",    "unique", "print",  "log",
                                                 "if",       "exp",    "scale"};
    return all;
  }
};

}  // namespace tracefire::test
