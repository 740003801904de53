// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tracefire::cli {

/// While it lives, the first Ctrl-C asks the running work to stop between steps (kCancelled, exit
/// status 130), and a second one ends the process. Where SIGINT is ignored it stays ignored.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

}  // namespace tracefire::cli
