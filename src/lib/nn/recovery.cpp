// SPDX-License-Identifier: Apache-2.0
#include "lib/nn/recovery.h"

#include <algorithm>
#include <optional>

#include "core/base/log.h"
#include "core/base/status.h"

namespace tracefire::nn {
namespace {

constexpr int64_t kParts = 16;  ///< of a stretch that is run again to find the step that failed

std::vector<Variable> assigned(const std::vector<Function>& functions) {
  std::vector<Variable> all;
  for (const Function& function : functions) {
    for (const Variable& variable : function.assigned()) {
      const bool known = std::any_of(all.begin(), all.end(), [&](const Variable& other) {
        return other.slot() == variable.slot();
      });
      if (!known) all.push_back(variable);
    }
  }
  return all;
}

bool any_of(const std::vector<Function>& functions, bool (Function::*property)() const) {
  return std::any_of(functions.begin(), functions.end(),
                     [&](const Function& function) { return (function.*property)(); });
}

bool is_good(const Savepoint& point) {
  try {
    point.check();
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// Runs steps up to the one that fails, at whose begin it stops. None: they went well now, or were
/// interrupted between two of them.
std::optional<int64_t> run_to_failure(const Steps& steps, Savepoint* point, int64_t first,
                                      int64_t end) {
  const int64_t size = (end - first + kParts - 1) / kParts;
  for (int64_t lo = first; lo < end; lo += size) {
    const int64_t hi = std::min(lo + size, end);
    point->keep();
    try {
      steps.run(lo, hi);
      point->check();
    } catch (const Error& error) {
      if (error.is(ErrorCode::kCancelled) && is_good(*point)) return {};
      point->restore();
      return hi - lo == 1 ? lo : run_to_failure(steps, point, lo, hi);
    } catch (...) {  // of the user's own reset_metrics()
      point->restore();
      throw;
    }
  }
  return {};
}

/// After a failure in steps first … end - 1: goes back to the state after the last good one. Gives
/// the step that failed; none where the state is good as it is.
std::optional<int64_t> recover(const Steps& steps, Savepoint* point, int64_t first, int64_t end) {
  if (is_good(*point)) return {};
  point->restore();
  if (end - first == 1) return first;
  try {
    return run_to_failure(steps, point, first, end);
  } catch (...) {  // no memory to keep: the state is that of a good step all the same
    return {};
  }
}

bool keep(Savepoint* point) {
  try {
    point->keep();
  } catch (const Error& error) {
    if (!error.is(ErrorCode::kOutOfMemory)) throw;
    say_once(
        "nn.state is not kept",
        "the memory of the device does not hold a second copy of a model's state; where a step "
        "fails on its data, the state is lost");
    return false;
  }
  return true;
}

Error with_place(const Error& error, const std::string& place) {
  std::string text = error.what();
  while (!text.empty() && text.back() == '.') text.pop_back();
  return Error(error.number(), error.kind(), text + ". It came up in " + place);
}

}  // namespace

bool is_kept(const Steps& steps) {
  return any_of(steps.functions, &Function::can_fail) && !assigned(steps.functions).empty();
}

void run_steps(const Steps& steps, const std::function<void()>& read) {
  const bool kept = is_kept(steps);
  Savepoint point(kept ? assigned(steps.functions) : std::vector<Variable>{});
  const int64_t size = kept && any_of(steps.functions, &Function::has_effects) ? 1 : steps.count;
  for (int64_t lo = 0; lo < steps.count; lo += size) {
    if (!kept || !keep(&point)) {
      steps.run(lo, steps.count);
      read();
      return;
    }
    try {
      steps.run(lo, lo + size);
      if (lo + size == steps.count) read();
      point.check();
    } catch (const Error& error) {
      const std::optional<int64_t> failed = recover(steps, &point, lo, lo + size);
      if (failed) throw with_place(error, steps.place(*failed));
      throw;
    } catch (...) {  // of the user's own
      recover(steps, &point, lo, lo + size);
      throw;
    }
  }
}

}  // namespace tracefire::nn
