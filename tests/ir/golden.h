// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "core/base/status.h"

namespace tracefire::test {

/// A golden file: what a pass gets and what it must give, as text.
///
///     # what the case shows
///     # pass: simplify, fuse        names, or one of: plan, loop, compile
///     # device: /NULL:0             default device; /NULL:0 where it is not given
///     # mask: NULL softmax log      ops that no kernel of this kind accepts
///     # policy: strict              soft where it is not given
///     # optimize: false             true where it is not given
///     graph … { … }
///     === graph, program, loop or error
///     …
struct Golden {
  std::string comment;  ///< the lines that start with '#', as they are
  std::map<std::string, std::string> settings;
  std::string before;
  std::string kind;  ///< of the expected text
  std::string after;

  static Golden parse(const std::string& text);
  std::string str() const;
};

/// Runs the case; fills `kind` and `after` with what came out.
Golden run_golden(const Golden& golden);

}  // namespace tracefire::test
