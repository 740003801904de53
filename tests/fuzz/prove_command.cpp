// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/report tools/inject
//
// libFuzzer entry: any words, one a line, as the command that prove runs. The program in it is one
// of its words, what is composed for containers keeps every word in its order, and the lines for
// other launchers are made.
#include <cstdlib>

#include "tools/inject/prefix.h"
#include "tools/inject/wrap.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::inject;
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> command;
  for (size_t begin = 0; begin <= text.size() && command.size() < 200;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    command.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (program_of(command) > command.size()) std::abort();
  for (size_t at = 0; at < command.size(); ++at) {
    const Prefix prefix = read_prefix(command, at);
    if (!prefix.name.empty() && (prefix.options_end < at || prefix.program < at)) std::abort();
    if (prefix.program > command.size() || prefix.options_end > command.size()) std::abort();
  }
  TracePlan plan;
  plan.library = "/usr/lib/libtracefire_inject.so";
  plan.folder = "/tmp/proof";
  const WrappedCommand wrapped = wrap_command(command, plan);
  size_t next = 0;
  for (const std::string& word : wrapped.command)
    if (next < command.size() && word == command[next]) ++next;
  if (!wrapped.lost && next != command.size()) std::abort();
  print_env(plan, command);
  shell_word(text);
  return 0;
}
