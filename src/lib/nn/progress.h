// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tracefire::nn {

/// Progress of training on stderr: on a terminal a bar that moves, else ten lines in all.
class Progress {
 public:
  Progress(int64_t epochs, bool shown);
  /// Ends the bar's line where training ended early.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// `epoch` counts from 0; `figures` as Report::str() gives them; `last`: training ends with it.
  void finished(int64_t epoch, const std::string& figures, bool last);

 private:
  std::string fitted(const std::string& text, int64_t done) const;

  int64_t epochs_;
  bool shown_, moves_, line_open_ = false;
};

}  // namespace tracefire::nn
