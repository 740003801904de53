// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "core/base/log.h"
#include "core/compile/known_ops.h"
#include "core/compile/passes/passes.h"
#include "core/graph/text.h"

namespace tracefire {
namespace {

/// "Changed" and the graphs must agree; where they do not, a pass lies about its work.
Status check_honesty(const char* pass, const GraphPtr& before, const GraphPtr& after,
                     bool changed) {
#ifdef NDEBUG
  const bool same = before == after;
#else
  const OpTable& table = OpTable::instance();
  const bool same = before == after || print(table, *before) == print(table, *after);
#endif
  if (same || changed) return {};
  return error(ErrorCode::kInternal, "pass ", pass, " changed graph '", before->name,
               "' and says that it did not. This is a bug of Tracefire; please report it.");
}

}  // namespace

const std::vector<Pass>& raise_passes() {
  static const std::vector<Pass> passes = {
      {"raise_softmax", raise_softmax},
  };
  return passes;
}

const std::vector<Pass>& lowering_passes() {
  static const std::vector<Pass> passes = {
      {"inline_calls", inline_calls}, {"place", place}, {"decompose", decompose},
      {"simplify", simplify},         {"fuse", fuse},
  };
  return passes;
}

Result<GraphPtr> run_passes(const std::vector<Pass>& passes, GraphPtr graph,
                            const CompileOptions& options) {
  using Clock = std::chrono::steady_clock;
  const bool timed = log_enabled(LogLevel::kDebug);
  for (const Pass& pass : passes) {
    const auto& off = options.disabled_passes;
    if (std::find(off.begin(), off.end(), pass.name) != off.end()) continue;
    const auto start = timed ? Clock::now() : Clock::time_point();
    bool changed = false;
    Result<GraphPtr> result = pass.run(graph, options, &changed);
    if (!result.ok()) return result.status();
    const GraphPtr& now = *result;
    TF_RETURN_IF_ERROR(check_honesty(pass.name, graph, now, changed));
    if (now != graph) {
      const Status verified = verify(OpTable::instance(), *now);
      if (!verified.ok()) return verified.prefixed(concat_text("after pass ", pass.name, ": "));
    }
    if (timed) {
      const std::chrono::duration<double, std::micro> spent = Clock::now() - start;
      log_line(LogLevel::kDebug,
               concat_text("pass ", pass.name, " of '", graph->name, "': ", spent.count(), " us, ",
                           graph->nodes.size(), " -> ", now->nodes.size(), " nodes"));
    }
    graph = now;
    if (options.observer) options.observer(pass.name, *graph, changed);
  }
  return graph;
}

Result<GraphPtr> rewrite_regions(const GraphPtr& source, const CompileOptions& options,
                                 bool* changed, decltype(Pass::run) pass) {
  GraphPtr graph = source;
  for (size_t i = 0; i < source->nodes.size(); ++i) {
    const Node& node = source->nodes[i];
    if (!KnownOps::get().has_programs(node)) continue;
    for (size_t r = 0; r < node.regions.size(); ++r) {
      TF_ASSIGN(const GraphPtr region, pass(node.regions[r], options, changed));
      if (region == node.regions[r]) continue;
      auto now = std::make_shared<Graph>(*graph);
      now->nodes[i].regions[r] = region;
      graph = now;
    }
  }
  return graph;
}

}  // namespace tracefire
