// SPDX-License-Identifier: Apache-2.0
//
// How a test says that it could not run here, and why.
#pragma once

#include <string_view>

namespace tracefire::test {

/// Marks the running test case as skipped: prints `SKIP: reason` on stdout, where
/// scripts/run_tests counts it. The caller returns right after.
///
///     if (!have_gpu()) return test::skip("needs a GPU");
void skip(std::string_view reason);

}  // namespace tracefire::test
