// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/builder.h"

namespace tracefire {

enum class AttrType : uint8_t { kFlag, kInteger, kReal, kText, kDType, kInts, kShape };

/// One attribute of a row. `fallback` unset means it must be given.
struct AttrSpec {
  const char* name;
  AttrType type;
  std::optional<Attr> fallback;
  const char* doc;
};

/// How many tensors go in. `max` < 0: any number from `min` on.
struct Arity {
  int min;
  int max;
};

/// What a row computes on: decides fusion and which bindings are made.
enum class OpClass : uint8_t {
  kElementwise,  ///< one result element from one element of each (broadcast) input
  kReduction,
  kMovement,     ///< reorders or repeats elements, computes nothing
  kProduct,      ///< matmul
  kRandom,
  kComposite,    ///< stays a node; decomposes where no kernel accepts
  kControl,      ///< has regions
  kHost,         ///< strings, tables, files, host calls: the CPU is their place by design
};

/// Types in, types out: fills node->outputs. node->attrs are complete and of the right types.
using InferFn = Status (*)(const std::vector<ValueType>& inputs, Node* node);

/// Given the forward node's values in the builder, returns the gradient of each input (invalid
/// Value: no gradient flows). `out_grads[i]` is invalid where result i has none.
struct GradContext {
  Builder& b;
  const Node& node;                     ///< attributes and regions of the forward node
  const std::vector<Value>& inputs;     ///< forward inputs
  const std::vector<Value>& outputs;    ///< forward results
  const std::vector<Value>& out_grads;
};
using GradFn = std::vector<Value> (*)(GradContext&);

/// A gradient function with the residuals it reads, or the reason why there is none. Not default
/// constructible: a row that forgets its gradient does not compile.
struct Gradient {
  GradFn fn;
  const char* why_not;
  uint32_t reads_inputs;   ///< bit i: reads forward input i (bit 31: all)
  uint32_t reads_outputs;  ///< bit i: reads forward result i
  Gradient() = delete;
  constexpr Gradient(GradFn f, uint32_t ins, uint32_t outs)
      : fn(f), why_not(nullptr), reads_inputs(ins), reads_outputs(outs) {}
  constexpr explicit Gradient(const char* why)
      : fn(nullptr), why_not(why), reads_inputs(0), reads_outputs(0) {}
};
constexpr Gradient no_gradient(const char* why) { return Gradient(why); }

/// Rewrites a node into smaller ones; returns its results.
using DecomposeFn = std::vector<Value> (*)(Builder& b, const Node& node,
                                           const std::vector<Value>& inputs);

/// Work of one execution with bound sizes.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
using CostFn = Cost (*)(const Node& node, const std::vector<ValueType>& inputs);

/// Largest relative error of a kernel against the oracle, by result type.
struct Tolerance {
  double f64 = 1e-12, f32 = 1e-5, f16 = 2e-3, bf16 = 1.6e-2;
};

/// THE row of an op. Everything else (docs, bindings, support matrix, fuzz entries) derives from it.
struct OpRow {
  const char* name;   ///< lower snake case, ours: "matmul"
  const char* tf_name;  ///< TensorFlow's name in logs: "MatMul"
  OpClass op_class;
  Arity arity;
  std::vector<const char*> input_names;
  std::vector<const char*> output_names;  ///< also fixes the number of results; empty for regions'
  std::vector<AttrSpec> attrs;
  InferFn infer;
  Gradient gradient;
  CostFn cost;
  const char* doc;
  DecomposeFn decompose = nullptr;
  /// Class of its effect chain, "" where pure. An ordered op takes the chain's token as its last
  /// input and gives the next one as its last result (both counted in arity and outputs).
  const char* effect = "";
  int regions = 0;
  Tolerance tolerance = {};
  int version = 1;
  /// Result whose number is the size of a data-dependent dimension, or -1.
  int size_output = -1;
  bool checks_data = false;      ///< kernels may set the run's error block
};

}  // namespace tracefire
