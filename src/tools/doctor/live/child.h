// SPDX-License-Identifier: Apache-2.0
//
// A piece of work in a process of its own, with limits: whatever a driver does there, the doctor
// lives.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tracefire::doctor {

struct ChildResult {
  std::string output;  ///< what it wrote, at most a megabyte
  bool timed_out = false;
  int signal = 0;   ///< that ended it
  int status = -1;  ///< its exit status
  bool ok() const { return !timed_out && signal == 0 && status == 0; }
  /// "it did not end within 10 s", "it was ended by signal 11"; "" where it ended by itself.
  std::string trouble(int seconds) const;
};

/// Runs `work` in a forked child and returns what it returns as text.
ChildResult run_child(const std::function<std::string()>& work, int seconds);
/// Runs a program with these arguments and variables; stdout and stderr are the output.
ChildResult run_program(const std::vector<std::string>& command,
                        const std::vector<std::string>& environment, int seconds);
/// True where no other user but root could have put or changed the file: owners and modes of it and
/// of every folder above, links followed. Where this process is not root's, own files are trusted
/// too.
bool trusted_file(const std::string& path);

}  // namespace tracefire::doctor
