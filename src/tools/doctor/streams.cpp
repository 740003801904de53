// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

extern char** environ;

namespace tracefire::doctor {

namespace {

constexpr size_t kHalfLog = 4 << 20;
constexpr size_t kMaxStream = 64 << 20;
constexpr int kStreamWait = 2000;  // milliseconds without a byte

}  // namespace

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    size_t equal = text.find('=');
    if (equal != text.npos)
      out[std::string(text.substr(0, equal))] = std::string(text.substr(equal + 1));
  }
  return out;
}

std::string read_text(const std::string& path, std::string* text) {
  int fd = path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat st {};
  if (fd < 0 || ::fstat(fd, &st) != 0) return std::strerror(errno);
  std::string problem;
  auto read_up_to = [&](size_t limit) {
    char buffer[65536];
    size_t total = 0;
    while (total < limit) {
      pollfd waiting{fd, POLLIN, 0};
      if (!S_ISREG(st.st_mode) && ::poll(&waiting, 1, kStreamWait) <= 0) break;
      ssize_t got = ::read(fd, buffer, std::min(sizeof buffer, limit - total));
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) problem = std::strerror(errno);
      if (got <= 0) break;
      text->append(buffer, static_cast<size_t>(got));
      total += static_cast<size_t>(got);
      if (text->size() > 4 * kHalfLog) text->erase(kHalfLog, text->size() - 3 * kHalfLog);
    }
  };
  if (S_ISDIR(st.st_mode))
    problem = "it is a folder";
  else if (S_ISREG(st.st_mode) && st.st_size > static_cast<off_t>(2 * kHalfLog)) {
    read_up_to(kHalfLog);
    text->push_back('\n');
    if (::lseek(fd, st.st_size - static_cast<off_t>(kHalfLog), SEEK_SET) >= 0) read_up_to(kHalfLog);
  } else {
    read_up_to(kMaxStream);
  }
  if (fd != 0) ::close(fd);
  return problem;
}

namespace {

/// Opens a plain file of this user, as it is; the problem, or "".
std::string open_private(const std::string& path, int* fd) {
  *fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (*fd < 0) return std::strerror(errno);
  struct stat st {};
  if (::fstat(*fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == ::geteuid()) return "";
  ::close(*fd);
  return "it is no plain file of this user";
}

}  // namespace

std::string check_private(const std::string& path) {
  struct stat st {};
  const bool is_there = ::lstat(path.c_str(), &st) == 0;
  int fd = -1;
  std::string problem = open_private(path, &fd);
  if (!problem.empty()) return problem;
  if (!is_there) ::unlink(path.c_str());
  ::close(fd);
  return "";
}

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat st_a {
  }, st_b{};
  return ::stat(a.c_str(), &st_a) == 0 && ::stat(b.c_str(), &st_b) == 0 &&
         st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

std::string write_private(const std::string& path, const std::string& text) {
  int fd = -1;
  std::string problem = open_private(path, &fd);
  if (!problem.empty()) return problem;
  if (::fchmod(fd, 0600) != 0 || ::ftruncate(fd, 0) != 0) problem = std::strerror(errno);
  for (size_t done = 0; problem.empty() && done < text.size();) {
    ssize_t put = ::write(fd, text.data() + done, text.size() - done);
    if (put < 0 && errno != EINTR) problem = std::strerror(errno);
    if (put > 0) done += static_cast<size_t>(put);
  }
  ::close(fd);
  return problem;
}

}  // namespace tracefire::doctor
