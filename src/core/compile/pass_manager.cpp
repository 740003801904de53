// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/log.h"
#include "core/base/settings.h"
#include "core/compile/known_ops.h"
#include "core/compile/passes/passes.h"
#include "core/graph/text.h"

namespace tracefire {
namespace {

/// "Changed" and the graphs must agree; where they do not, the pass is wrong.
Status check_honesty(const char* pass, const GraphPtr& before, const GraphPtr& after,
                     bool changed) {
#ifdef NDEBUG
  const bool by_text = settings::verify_graphs();
#else
  const bool by_text = true;
#endif
  const OpTable& table = OpTable::instance();
  const bool same = before == after || (by_text && print(table, *before) == print(table, *after));
  if (same || changed) return {};
  return error(ErrorCode::kInternal, "pass ", pass, " changed graph '", before->name,
               "' and says that it did not. This is a bug of Tracefire; please report it.");
}

/// Writes graphs into the folder of the setting dump_directory, where it is set: NUMBER-GRAPH-PASS.
class Dump {
 public:
  Status write(const Graph& graph, const std::string& pass) const {
    if (folder_.empty()) return {};
    static std::atomic<int> count{0};
    char number[16];
    std::snprintf(number, sizeof number, "%06d", count.fetch_add(1));
    std::string name = concat_text(number, '-', graph.name.substr(0, 100), '-', pass, ".txt");
    for (char& c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
    }
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::error_code told_by_the_next_step;
    std::filesystem::create_directories(folder_, told_by_the_next_step);
    std::ofstream file(path);
    file << print(OpTable::instance(), graph);
    file.close();
    if (file) return {};
    return error(ErrorCode::kCannotWrite, "the graph '", graph.name, "' cannot be written to ",
                 path.string(),
                 ", where the setting dump_directory wants it: ", std::strerror(errno),
                 ". A folder that this user may write to was expected.");
  }

 private:
  const std::string folder_ = settings::dump_directory();
};

/// The names of the passes that may be disabled.
std::string optional_passes() {
  std::string names;
  for (const auto* list : {&raise_passes(), &lowering_passes()}) {
    for (const Pass& pass : *list) {
      if (!pass.required) names += (names.empty() ? "" : ", ") + std::string(pass.name);
    }
  }
  return names;
}

/// The setting is checked where it is given, by whoever gives it.
const struct CheckSetting {
  CheckSetting() {
    set_setting_check("disabled_passes", [](std::string_view value) {
      return check_disabled_passes(pass_names(value));
    });
  }
} check_setting_of_passes;

}  // namespace

std::vector<std::string> pass_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    const size_t first = name.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    names.emplace_back(name.substr(first, name.find_last_not_of(' ') - first + 1));
  }
  return names;
}

Status check_disabled_passes(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const Pass* found = nullptr;
    for (const auto* list : {&raise_passes(), &lowering_passes()}) {
      for (const Pass& pass : *list) {
        if (pass.name == name) found = &pass;
      }
    }
    if (found != nullptr && !found->required) continue;
    return error(
        ErrorCode::kBadSetting, "the setting disabled_passes names '", name.substr(0, 100),
        found == nullptr ? "', which is no pass. " : "', without which no program can be made. ",
        "Names of these were expected, separated by commas: ", optional_passes(), ".");
  }
  return {};
}

const std::vector<Pass>& raise_passes() {
  static const std::vector<Pass> passes = {
      {"raise_softmax", raise_softmax},
  };
  return passes;
}

const std::vector<Pass>& lowering_passes() {
  static const std::vector<Pass> passes = {
      {"inline_calls", inline_calls, /*required=*/true},
      {"place", place, /*required=*/true},
      {"decompose", decompose, /*required=*/true},
      {"simplify", simplify},
      {"fuse", fuse},
  };
  return passes;
}

Result<GraphPtr> run_passes(const std::vector<Pass>& passes, GraphPtr graph,
                            const CompileOptions& options) {
  using Clock = std::chrono::steady_clock;
  const bool timed = log_enabled(LogLevel::kDebug);
  const bool verify_all = settings::verify_graphs();
  const Dump dump;
  TF_RETURN_IF_ERROR(dump.write(*graph, "given"));
  for (const Pass& pass : passes) {
    const auto& off = options.disabled_passes;
    if (std::find(off.begin(), off.end(), pass.name) != off.end()) continue;
    const auto start = timed ? Clock::now() : Clock::time_point();
    bool changed = false;
    Result<GraphPtr> result = pass.run(graph, options, &changed);
    if (!result.ok()) return result.status();
    const GraphPtr& now = *result;
    TF_RETURN_IF_ERROR(check_honesty(pass.name, graph, now, changed));
    if (now != graph || verify_all) {
      const Status verified = verify(OpTable::instance(), *now);
      if (!verified.ok()) return verified.prefixed(concat_text("after pass ", pass.name, ": "));
    }
    if (now != graph) TF_RETURN_IF_ERROR(dump.write(*now, pass.name));
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
