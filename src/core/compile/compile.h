// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/program.h"

namespace tracefire {

enum class Policy : uint8_t {
  kSoft,    ///< an op without a kernel on its device runs on the CPU and says so once
  kStrict,  ///< it is an error (kPlacementRefused)
};

struct CompileOptions {
  Device device;  ///< where nodes without a device go; unset: Backends::default_device()
  Policy policy = Policy::kSoft;
  Precision precision = Precision::kTf32;
  bool deterministic = false;
  bool optimize = true;  ///< false: only required passes run, one step an op on ready kernels
  std::vector<std::string> disabled_passes;
  /// Called after each pass with its name, the graph and whether the pass says it changed it.
  std::function<void(const char* pass, const Graph&, bool changed)> observer;
};

/// A named graph -> graph rewrite. `changed` must be honest; the manager checks it in debug builds.
struct Pass {
  const char* name;
  Result<GraphPtr> (*run)(const GraphPtr& graph, const CompileOptions& options, bool* changed);
  /// No program comes out without it: it cannot be disabled, and also a new eager structure has it.
  bool required = false;
};

/// The passes that run first: they recognise composites in primitives (docs/adr/0002) …
const std::vector<Pass>& raise_passes();
/// … and those between them and plan, in order: inline_calls, place, decompose, simplify, fuse.
const std::vector<Pass>& lowering_passes();

/// "fuse, simplify" as names; blanks around them do not count.
std::vector<std::string> pass_names(std::string_view text);
/// Errors: kBadSetting for a name that no pass has, and for a pass that is required; both name
/// those that may be disabled.
Status check_disabled_passes(const std::vector<std::string>& names);

/// Runs passes in order, verifying after each; names of `options.disabled_passes` are skipped.
Result<GraphPtr> run_passes(const std::vector<Pass>& passes, GraphPtr graph,
                            const CompileOptions& options);

/// Graph in, program out: raise, lowering passes, plan. Regions become sub-programs. Reports
/// fall-backs (soft policy) once an op through base/log.h's say_once with reason and source line.
Result<ProgramPtr> compile(const GraphPtr& graph, const CompileOptions& options);

/// Loop program of an element-wise, random or fused node; null where the node is none.
std::shared_ptr<const LoopProgram> emit_loop(const Graph& graph, const Node& node);

}  // namespace tracefire
