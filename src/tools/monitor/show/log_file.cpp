// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/show/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tracefire::monitor {

LogFile::LogFile(std::string path, std::string header, uint64_t most_bytes, int keep)
    : path_(std::move(path)), header_(std::move(header)), most_bytes_(most_bytes), keep_(keep) {}

LogFile::~LogFile() { close(); }

void LogFile::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Status LogFile::failed(const char* what) const {
  return error(ErrorCode::kFileNotFound, "the log ", path_, " cannot be ", what, ": ",
               std::strerror(errno),
               ". Expected a file that this user may write.");
}

bool LogFile::moved_away() const {
  struct stat now;
  return stat(path_.c_str(), &now) != 0 || now.st_dev != device_ || now.st_ino != inode_;
}

bool LogFile::other_header() const {
  std::string begin(header_.size() + 1, '\0');
  const ssize_t n = pread(fd_, begin.data(), begin.size(), 0);
  return n != static_cast<ssize_t>(begin.size()) || begin != header_ + "\n";
}

Status LogFile::open() {
  if (fd_ >= 0 && !moved_away()) return {};
  close();
  for (int attempt = 0; attempt < 2; ++attempt) {
    // For this user alone: it tells who runs what. O_NONBLOCK: opening a pipe that nobody reads
    // fails instead of waiting.
    fd_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    struct stat now;
    if (fd_ < 0 || fstat(fd_, &now) != 0) return failed("opened");
    if (!S_ISREG(now.st_mode)) {
      close();
      errno = EINVAL;
      return failed("used, it is no plain file");
    }
    size_ = static_cast<uint64_t>(now.st_size);
    device_ = now.st_dev;
    inode_ = now.st_ino;
    if (size_ == 0 || header_.empty() || !other_header()) break;
    TF_RETURN_IF_ERROR(rotate());
  }
  return {};
}

Status LogFile::rotate() {
  close();
  if (keep_ == 0) {
    if (unlink(path_.c_str()) != 0 && errno != ENOENT) return failed("removed");
    return {};
  }
  for (int i = keep_ - 1; i >= 0; --i) {
    const std::string from = i == 0 ? path_ : path_ + "." + std::to_string(i);
    const std::string to = path_ + "." + std::to_string(i + 1);
    if (std::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) return failed("rotated");
  }
  return {};
}

Status LogFile::write(std::string_view lines) {
  if (lines.empty()) return {};
  TF_RETURN_IF_ERROR(open());
  const uint64_t begin = size_ == 0 && !header_.empty() ? header_.size() + 1 : 0;
  if (size_ > 0 && size_ + lines.size() > most_bytes_) {
    TF_RETURN_IF_ERROR(rotate());
    TF_RETURN_IF_ERROR(open());
    return write(lines);
  }
  std::string block;
  if (begin > 0) block = header_ + "\n";
  block += lines;
  const ssize_t n = ::write(fd_, block.data(), block.size());
  if (n == static_cast<ssize_t>(block.size())) {
    size_ += block.size();
    return {};
  }
  // Take back what was written of a line, so that no reader sees half of one.
  const int saved = n < 0 ? errno : ENOSPC;
  if (n > 0 && ftruncate(fd_, static_cast<off_t>(size_)) != 0) close();
  errno = saved;
  return failed("written");
}

}  // namespace tracefire::monitor
