// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

/// Where snapshots come from. Used by one thread.
class Source {
 public:
  virtual ~Source() = default;
  /// Fills everything of `snapshot` but its sequence and its times. Never throws: what fails is
  /// said in the readings, or in `problem` where nothing at all could be read.
  virtual void read(Snapshot* snapshot) = 0;
};

}  // namespace tracefire::monitor
