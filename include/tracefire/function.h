// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tracefire/control.h"
#include "tracefire/tensor.h"

namespace tracefire {

/// A node of a traced function's graph, for graph viewers. Inputs are names of nodes.
struct TRACEFIRE_API GraphNode {
  std::string name;  ///< unique: "dense/matmul_3"
  std::string op;    ///< "matmul"; "Placeholder" for parameters, "Variable" for variables
  std::string device;
  std::string type;      ///< of its first result: "float32(128, 10)"
  std::string location;  ///< the user's source line
  std::vector<std::string> inputs;
};

/// A traced function: a graph with its inputs, the slots it touches and the tensors it captured.
/// A handle: copies are the same function. Compiled on first call; calls from several threads are
/// allowed. All members but defined() throw kBadUsage where it is undefined.
class TRACEFIRE_API Function {
 public:
  Function() = default;

  bool defined() const { return state_ != nullptr; }
  /// Runs the function; arguments must fit the parameters given while tracing (symbols take the
  /// arguments' sizes; kBadArity, kDTypeMismatch, kShapeMismatch), and are copied where they lie on
  /// other devices. Assigned variables hold their new values when it returns. Inside a function
  /// being traced its graph becomes part of that one's.
  Tensors operator()(const Tensors& args) const;

  /// A stretch of an epoch over data on the device, without a word to the host in between.
  /// For step s in [lo, hi): parameter k of the function receives the rows
  /// order[s * batch … (s + 1) * batch) of data[k]. `order` is int32 [≥ hi * batch]; undefined:
  /// rows as they lie, of which there must be hi * batch. Returns the outputs of the last step
  /// (which is why hi > lo is required). On a GPU: a captured graph of up to 64 unrolled steps,
  /// replayed; nothing is synchronised.
  Tensors run_epoch(const Tensors& data, const Tensor& order, int64_t batch, int64_t lo,
                    int64_t hi) const;
  /// The same, but returns the outputs with the numbers `wanted` of every step: where a step gives
  /// [n, …], the steps' values joined to [(hi - lo) * n, …]; scalars as [hi - lo]. Throws
  /// kSymbolUnbound where the size of an output depends on data.
  Tensors collect_epoch(const Tensors& data, const Tensor& order, int64_t batch, int64_t lo,
                        int64_t hi, const std::vector<int32_t>& wanted) const;

  /// The graph as text, and after compilation the program: steps, devices, kernels, refusals.
  std::string graph_text() const;
  std::string program_text() const;
  /// The graph's parameters and nodes, in order.
  std::vector<GraphNode> nodes() const;
  /// Variables that the function reads or assigns, in the order of its parameters.
  std::vector<Variable> variables() const;
  /// Those of them that a run assigns.
  std::vector<Variable> assigned() const;
  /// Whether a run can fail on its data: a label or index out of range, a check, host code.
  bool can_fail() const;
  /// Whether a run is seen outside: it prints, asserts or calls host code.
  bool has_effects() const;
  int parameters() const;
  int outputs() const;

  struct State;
  explicit Function(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  State& state() const;
  std::shared_ptr<State> state_;
};

/// The values of variables at one moment, in memory of their own, to go back to where a run fails
/// on its data. Programs keep the addresses of their variables.
class TRACEFIRE_API Savepoint {
 public:
  explicit Savepoint(std::vector<Variable> variables);
  ~Savepoint();
  Savepoint(Savepoint&&) noexcept;
  Savepoint& operator=(Savepoint&&) noexcept;

  /// Copies the values there are now, on their devices, behind the work that makes them; does not
  /// wait for it. Throws kOutOfMemory, and kSlotLost where a variable has no value.
  void keep();
  /// Throws what went wrong in computing the values there are now. Waits for the device only where
  /// nobody has read results of the runs that made them.
  void check() const;
  /// The variables get the values of the last keep() back, also those that a failed run has lost.
  /// Throws kBadUsage where nothing is kept: keep() comes first, once for each restore().
  void restore();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Tracing, step by step, for front ends. From construction to finish() or destruction, operations
/// of this thread are recorded into the function instead of being run. Functions and scopes that
/// were begun inside end before it does; used later, they throw kValueInTrace.
class TRACEFIRE_API FunctionTrace {
 public:
  explicit FunctionTrace(std::string name);
  ~FunctionTrace();
  FunctionTrace(const FunctionTrace&) = delete;
  FunctionTrace& operator=(const FunctionTrace&) = delete;
  /// The next parameter. Symbolic dims make one program serve many sizes. Errors: kDTypeMismatch
  /// for a dtype without values, kShapeMismatch for a negative size, kBadUsage after finish().
  Tensor parameter(DType dtype, const Shape& shape, const std::string& name = "");
  /// Ends tracing. Errors: kBadAttribute for an undefined output, kBadUsage where it has ended.
  Function finish(const Tensors& outputs);
  /// Ends tracing without a function.
  void abandon();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Traces `body` once with parameters of these specs.
TRACEFIRE_API Function trace_function(const std::string& name,
                                      const std::vector<TensorSpec>& parameters,
                                      const std::function<Tensors(const Tensors&)>& body);

/// True while a function or region is being traced on this thread.
TRACEFIRE_API bool is_tracing();

/// While alive, this thread is outside of every function and abstract scope: what is computed is
/// computed now. For variables that are created while a function is being traced.
class TRACEFIRE_API InitScope {
 public:
  InitScope();
  ~InitScope();
  InitScope(const InitScope&) = delete;
  InitScope& operator=(const InitScope&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// While alive, operations of this thread only infer dtypes and shapes; nothing can be observed.
class TRACEFIRE_API AbstractScope {
 public:
  AbstractScope();
  ~AbstractScope();
  AbstractScope(const AbstractScope&) = delete;
  AbstractScope& operator=(const AbstractScope&) = delete;
  Tensor parameter(DType dtype, const Shape& shape);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tracefire
