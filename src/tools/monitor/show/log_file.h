// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tracefire::monitor {

/// A file that lines are appended to and that is rotated by size: FILE becomes FILE.1, FILE.1
/// becomes FILE.2 and so on; the oldest goes. Lines are written whole, and never to more than
/// `most_bytes` a file (but for one line longer than that). Where somebody else moves the file away
/// (logrotate), a new one is begun.
class LogFile {
 public:
  /// `header` begins every file; "" for none. An existing file that begins with another header is
  /// rotated away first.
  LogFile(std::string path, std::string header, uint64_t most_bytes, int keep);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Appends whole lines. Errors: kFileNotFound with the system's words (folder missing, no
  /// permission, disk full); the next call tries again.
  Status write(std::string_view lines);
  /// Where writing begins: opens the file, so that a wrong path is told at once.
  Status open();

 private:
  Status rotate();
  Status failed(const char* what) const;
  void close();
  bool moved_away() const;
  bool other_header() const;

  const std::string path_;
  const std::string header_;
  const uint64_t most_bytes_;
  const int keep_;
  int fd_ = -1;
  uint64_t size_ = 0;
  uint64_t device_ = 0, inode_ = 0;
};

}  // namespace tracefire::monitor
