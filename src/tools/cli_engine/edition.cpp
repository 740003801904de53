// SPDX-License-Identifier: Apache-2.0
// What the program with the engine has beside the tools.
#include "tools/cli/edition.h"

#include "tracefire/config.h"
#include "tracefire/observe.h"

namespace tracefire::cli {

Command demo_command();
Command devices_command();
Command profile_command();
MatmulTrial try_matmul(const std::string& version);

namespace {

std::vector<Command> engine_commands() {
  return {demo_command(), devices_command(), profile_command()};
}

std::vector<EngineLibrary> libraries() {
  std::vector<EngineLibrary> out;
  for (LibraryDescription& library : list_libraries()) {
    out.push_back({std::move(library.name), std::move(library.version), std::move(library.path)});
  }
  return out;
}

}  // namespace

const Edition& edition() {
  static const Edition with_engine = {
      true,
      TRACEFIRE_HAS_CUDA != 0,
      "deep learning that can prove where it ran",
      "Tracefire traces every computation into a graph, compiles it, places it on a GPU or the CPU "
      "and runs it; what ran where is recorded and can be proven.",
      {{"tracefire demo", "Trains a small network here and says where it ran."},
       {"tracefire devices",
        "What work can run on here, and if that is no GPU, why and what helps."},
       {"tracefire explain TF-E0101", "What an error means and what to do about it."}},
      &engine_commands,
      &libraries,
      [](const std::string& commit) {
        return manifest({commit, {}, true});
      },
      &try_matmul,
      &why_no_gpu};
  return with_engine;
}

}  // namespace tracefire::cli
