// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/text/layout.h"

namespace tracefire::inject {

/// What `tracefire prove` is asked for.
struct ProveRequest {
  std::vector<std::string> command;  ///< the program and its arguments
  std::string from;                  ///< analyse this folder instead of running a program
  int64_t attach = 0;                ///< watch this process from outside instead
  double seconds = 0;                ///< how long it is watched; 0: until it ends
  bool print_env = false;  ///< print the variables and lines that trace a program elsewhere
  std::string out;         ///< folder that keeps records and reports; "" for none
  std::string require;     ///< "on-gpu" or "partly-on-gpu"; "" for nothing
  bool json = false;       ///< the report goes to stdout as JSON
  bool own_stdout = true;  ///< false: what the program writes to stdout goes to stderr
  bool quiet = false;      ///< no report on stderr
  int64_t window_limit = -1;
  bool graphs_by_node = true;
  int beat_ms = 0;
  text::Look out_look, err_look;  ///< of the report as text on stdout and stderr
  std::string version;            ///< of Tracefire, for the records
  std::string commit;             ///< that it was built from, for the manifest; may be empty
};

/// The verdict was missed.
inline constexpr int kMissedVerdict = 3;

/// Runs the program (or reads a folder), reports, and returns the exit status: the program's own
/// (128 + signal, 126, 127); kMissedVerdict where the program succeeded and the verdict is below
/// `require`; 2 for wrong usage. The report goes to stderr, so that stdout stays the program's;
/// with `json` stdout is the document's: `own_stdout` is to be false then. Records and reports that
/// cannot be written change neither the run nor the status: they are told on stderr.
/// `document` gets what --json prints, where there is a report.
int prove(const ProveRequest& request, std::string* document = nullptr);

}  // namespace tracefire::inject
