// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tracefire/function.h"

namespace tracefire::nn {

/// Steps in a row, of which each may fail on its data.
struct Steps {
  std::vector<Function> functions;  ///< what the steps run
  int64_t count;
  /// Runs steps lo … hi - 1. Called again for steps that were run, where a later one failed.
  std::function<void(int64_t lo, int64_t hi)> run;
  /// Says where the data of a step that failed are, for the end of its message.
  std::function<std::string(int64_t step)> place;
};

/// Whether variables are kept while the steps run: one of them may fail.
bool is_kept(const Steps& steps);

/// Runs all steps, then `read`, which reads results. Where a step fails on its data, the variables
/// that the steps assign have the values of the step before it again, and the error is thrown with
/// the step's place.
///
/// Where no step can fail, nothing is kept and nothing is waited for; else the variables are copied
/// before the first step and the device is waited for behind `read`, once for both. After a failure
/// the good steps are run again, which gives the same values. What is seen outside must not happen
/// twice: steps with effects are run and waited for one by one.
void run_steps(const Steps& steps, const std::function<void()>& read);

}  // namespace tracefire::nn
