// SPDX-License-Identifier: Apache-2.0
// Writes the loops that are compiled while building: `ready_loops FOLDER` makes loops_unary.cu, …
#include <cstdio>
#include <fstream>
#include <string>

#include "backends/cuda/emit/device_library.h"
#include "backends/cuda/emit/ready_loops.h"

int main(int argc, char** argv) {
  using namespace tracefire::cuda;
  if (argc != 2) {
    std::fprintf(stderr, "usage: ready_loops FOLDER\n");
    return 2;
  }
  for (const std::string& family : ready_loop_families()) {
    std::string text(device_library());
    for (const ReadyLoop& loop : ready_loops(family)) {
      for (const LoopVariant& variant : loop.variants) {
        text += loop_source(loop.program, variant).text;
      }
    }
    std::ofstream file(std::string(argv[1]) + "/loops_" + family + ".cu");
    file << text;
    if (!file.flush().good()) {
      std::fprintf(stderr, "ready_loops: %s cannot be written\n", argv[1]);
      return 1;
    }
  }
  return 0;
}
