// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/location.h"
#include "core/base/status.h"
#include "core/graph/attrs.h"
#include "tracefire/device.h"
#include "tracefire/dtype.h"
#include "tracefire/shape.h"

namespace tracefire {

/// Number of a row of the op table. The graph knows numbers only; names come from an OpSet.
using OpId = uint16_t;

/// The result `index` of node `node`; parameters have node == -1 and index = parameter number.
struct Value {
  int32_t node = -2;
  int32_t index = 0;
  bool valid() const { return node >= -1; }
  bool is_param() const { return node == -1; }
  friend bool operator==(Value a, Value b) { return a.node == b.node && a.index == b.index; }
  friend bool operator!=(Value a, Value b) { return !(a == b); }
  friend bool operator<(Value a, Value b) {
    return a.node != b.node ? a.node < b.node : a.index < b.index;
  }
};

/// Elements lie in row-major order.
struct ValueType {
  DType dtype = DType::kInvalid;
  Shape shape;
  friend bool operator==(const ValueType& a, const ValueType& b) {
    return a.dtype == b.dtype && a.shape == b.shape;
  }
  std::string str() const;  ///< "f32(128, 784)" written as "float32(128, 784)"
};

class Graph;
using GraphPtr = std::shared_ptr<const Graph>;

/// One operation. Immutable once its graph is built.
struct Node {
  OpId op = 0;
  std::vector<Value> inputs;
  Attrs attrs;
  std::vector<ValueType> outputs;
  std::vector<GraphPtr> regions;  ///< if: then, else; while: cond, body; fused: the loop body
  Device device;                  ///< fixed by the user or by place; unset before
  bool device_by_user = false;    ///< placed by hand: never counts as a fall-back
  /// Set by place: why the node runs on the CPU although another device was wanted; else empty.
  std::string fell_back;
  Location location;  ///< the user's source line
  std::string name;   ///< name scope, "dense/matmul"; may be empty
};

enum class ParamKind : uint8_t {
  kInput,  ///< given at each call
  kSlot,   ///< value of a variable when the call starts
  kToken,  ///< effect order coming in (regions only)
};

struct Param {
  ValueType type;
  ParamKind kind = ParamKind::kInput;
  std::string name;
  Device device;
};

/// A result: an output, or (slot >= 0) the new value of the variable behind parameter `slot`.
struct ResultValue {
  Value value;
  int32_t slot = -1;
};

/// A static-single-assignment graph: nodes in topological order, parameters in, results out.
/// Captures nothing: everything a graph uses comes through its parameters.
class Graph {
 public:
  std::string name;
  std::vector<Param> params;
  std::vector<Node> nodes;
  std::vector<ResultValue> results;

  const ValueType& type(Value value) const {
    return value.is_param()
               ? params[static_cast<size_t>(value.index)].type
               : nodes[static_cast<size_t>(value.node)].outputs[static_cast<size_t>(value.index)];
  }
  const Node& node(Value value) const { return nodes[static_cast<size_t>(value.node)]; }
};

/// For each value, how many node inputs and results use it. Index with users.of(value).
class UseCounts {
 public:
  explicit UseCounts(const Graph& graph);
  int of(Value value) const;

 private:
  std::vector<int> params_;
  std::vector<std::vector<int>> nodes_;
};

}  // namespace tracefire
