// SPDX-License-Identifier: Apache-2.0
//
// The tools alone, for people who use another framework: the same commands as those of the program
// with the engine, but without libtracefire.so. `make dist` packs it as `tracefire`.
#include "build_info.h"
#include "tools/cli/edition.h"
#include "tools/cli/program.h"
#include "tools/report/manifest.h"

namespace tracefire::cli {

const Edition& edition() {
  static const Edition tools = {
      false,
      false,
      "shows whether a GPU can be used, whether it is, and what holds it up",
      "The tools of Tracefire for programs of any framework, TensorFlow, PyTorch and JAX among "
      "them. They change nothing and need neither Python nor a CUDA toolkit. Tracefire itself, "
      "with its engine, has these commands too.",
      {{"tracefire prove -- python train.py", "Runs a program and says whether it used the GPU."},
       {"tracefire monitor", "What the GPUs of this machine do."}},
      [] { return std::vector<Command>(); },
      [] { return std::vector<EngineLibrary>(); },
      [](const std::string& commit) {
        return report::manifest({commit, {}, true});
      },
      nullptr,
      [] { return std::string(); }};
  return tools;
}

}  // namespace tracefire::cli

int main(int argc, char** argv) {
  return tracefire::run_command_line(argc, argv, {tracefire::kVersion, tracefire::kCommit});
}
