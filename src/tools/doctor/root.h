// SPDX-License-Identifier: Apache-2.0
//
// The file tree that is read: this machine, or any folder in the place of "/". Symbolic links are
// resolved inside it and never lead out. Reads only, with bounds, and remembers what it could not
// read.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::doctor {

enum class FileType { kNone, kRegular, kFolder, kLink, kDevice, kOther };

/// What stat tells, of the end of a chain of links.
struct FileFacts {
  FileType type = FileType::kNone;
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  off_t size = 0;
};

class Root {
 public:
  /// `dir` goes in the place of "/"; "" or "/" is this machine.
  explicit Root(std::string dir);
  ~Root();
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  bool ok() const { return fd_ >= 0; }
  /// This machine itself.
  bool live() const { return live_; }
  const std::string& dir() const { return dir_; }

  FileFacts facts(const std::string& path) const;
  bool exists(const std::string& path) const { return facts(path).type != FileType::kNone; }
  /// At most `limit` bytes of a regular file; nothing where there is none or it cannot be read.
  std::optional<std::string> read(const std::string& path, size_t limit = 1 << 20) const;
  /// The first and the last `half` bytes of a file.
  std::optional<std::string> read_ends(const std::string& path, size_t half) const;
  /// Bytes at an offset; shorter at the end of the file.
  std::string read_at(const std::string& path, off_t offset, size_t size) const;
  /// Sorted names in a folder, without "." and "..", at most `limit`.
  std::vector<std::string> list(const std::string& path, size_t limit = 4096) const;
  /// list(), of folders alone; links are left out.
  std::vector<std::string> list_folders(const std::string& path, size_t limit = 4096) const;
  /// Target of a link, "" where `path` is none.
  std::string link(const std::string& path) const;
  /// Follows links of the last component by name alone: "/usr/lib/libcuda.so.550.54.15" of
  /// ".../libcuda.so.1". At most 16 steps.
  std::string follow(std::string path) const;

  /// One sentence for each thing that is there but could not be read.
  const std::vector<std::string>& unread() const { return unread_; }
  void note_unread(const std::string& path, std::string_view why) const;

 private:
  int open(const std::string& path, int flags) const;
  int walk(const std::string& path, int flags) const;
  std::vector<std::string> entries(const std::string& path, size_t limit, bool folders_only) const;

  std::string dir_;
  bool live_ = false;
  int fd_ = -1;
  mutable bool has_openat2_ = true;
  mutable std::vector<std::string> unread_;
};

}  // namespace tracefire::doctor
