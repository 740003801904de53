// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "core/compile/known_ops.h"

namespace tracefire {

inline constexpr Device kHostDevice{Device::kCpu, 0};

/// The kernel that will run a node on a device, or why none does.
struct Choice {
  const Kernel* kernel = nullptr;
  std::shared_ptr<const LoopProgram> loop;
  std::vector<std::string> refusals;  ///< "name: reason" of better candidates, in list order
  /// The refusals in one line: "the CUDA list is empty" style words where there are none.
  std::string why_not(Device device) const;
};

/// Types of a node's inputs.
std::vector<ValueType> input_types(const Graph& graph, const Node& node);

/// Asks the ordered list of `device` for the node's op. kUnknownDevice where there is no such
/// device; no kernel is not an error.
Result<Choice> choose_kernel(const Graph& graph, const Node& node, Device device,
                             const CompileOptions& options);

/// Where a node without a device of its own goes: /CPU:0 for what belongs on the host, else
/// `fallback`.
Device natural_device(const Graph& graph, const Node& node, Device fallback);
bool has_strings(const Graph& graph, const Node& node);
bool belongs_on_host(const Graph& graph, const Node& node);

/// What running a node takes: a kernel; the bytes of its input under another shape; a copy between
/// devices; programs of its regions; ordered host work; nothing (the start of a chain of effects).
enum class NodeKind : uint8_t { kKernel, kAlias, kCopy, kPrograms, kHostCall, kNothing };
NodeKind node_kind(const Node& node);

/// Decides `node->device` (and fell_back) for one node of `graph`. Leaves a composite that nobody
/// accepts on its wanted device, to be decomposed. kPlacementRefused under the strict policy,
/// kNoKernel where not even the CPU has a kernel.
Status place_node(const Graph& graph, const CompileOptions& options, Node* node);

/// The device of each value: its parameter's or its producer's (strings are always on the host).
Device device_of(const Graph& graph, Value value);

/// Where the node's region leaves its results: on the device of the node, whose results they are.
/// Unset for the truth value of a loop's condition, which the host reads wherever it is.
Device results_device(const Node& node, size_t region);

/// Puts a `copy` on every edge between devices, one a value and target, and before results whose
/// slot lives elsewhere; drops copies that go nowhere. Where `results` is set, results (except
/// strings) are copied there.
Result<GraphPtr> insert_copies(const GraphPtr& graph, Device results, bool* changed);

}  // namespace tracefire
