// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tracefire/export.h"

namespace tracefire {

/// What the program's own build knows (build_info.h); the library is the same for every commit
/// that does not touch it.
struct BuildInfo {
  const char* version;  ///< "0.1.0"
  const char* commit;   ///< "1f2e3d4c5b6a", with "+changes" where files differ; "" where unknown
};

/// The program `tracefire`: parses, runs, prints, and returns the exit status. Never throws.
TRACEFIRE_API int run_command_line(int argc, char** argv, const BuildInfo& build);

}  // namespace tracefire
