// SPDX-License-Identifier: Apache-2.0
// What differs between the two programs that are made from this room: `tracefire` with the engine,
// and the tools alone (tools_main.cpp), which link without libtracefire.so.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/matmul_trial.h"

namespace tracefire::cli {

struct EngineLibrary {
  std::string name, version, path;  ///< as `tracefire version` shows them
};

struct Edition {
  bool engine;          ///< computes itself, on a GPU or the CPU
  bool cuda_backend;    ///< the engine can use a GPU
  std::string summary;  ///< of the program: one line without a full stop
  std::string text;     ///< paragraph of its help and manual page
  std::vector<Example> examples;
  std::vector<Command> (*engine_commands)();           ///< those that need the engine
  std::vector<EngineLibrary> (*libraries)();           ///< in use by the engine
  std::string (*manifest)(const std::string& commit);  ///< tracefire.manifest/1, all libraries
  /// The 5000 x 5000 product in the engine, on its default device, with a few elements checked
  /// against the host; what fails is told in it. Null without an engine.
  MatmulTrial (*try_matmul)(const std::string& version);
  std::string (*why_no_gpu)();  ///< reason and cure; empty where the engine uses a GPU, or is not
};

/// Defined by whoever links the room: in cli_engine/edition.cpp, and in tools_main.cpp.
const Edition& edition();

}  // namespace tracefire::cli
