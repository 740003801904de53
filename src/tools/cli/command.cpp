// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/report/manifest.h"

namespace tracefire::cli {
namespace {

void cannot_write(const std::string& path, int problem) {
  error(ErrorCode::kCannotWrite, "the file ", printable(path),
        " cannot be written: ", std::strerror(problem),
        ". A place that this user may write to was expected.")
      .throw_if_error();
}

}  // namespace

void Context::print(const Json& document) const {
  console.print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string utc_now() { return report::utc_now(); }

std::string read_input(const std::string& path) {
  const bool standard = path == "-";
  const int file = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  int problem = file < 0 ? errno : 0;
  char block[65536];
  while (problem == 0) {
    const ssize_t got = ::read(file, block, sizeof block);
    if (got == 0) break;
    if (got > 0) {
      text.append(block, static_cast<size_t>(got));
    } else if (errno != EINTR) {
      problem = errno;
    }
  }
  if (file >= 0 && !standard) ::close(file);
  if (problem != 0) {
    const std::string name = standard ? "standard input" : "the file " + printable(path);
    error(ErrorCode::kFileNotFound, name, " cannot be read: ", std::strerror(problem),
          ". A file that this user may read was expected, or - for standard input.")
        .throw_if_error();
  }
  return text;
}

void check_output(const std::string& option, const std::string& path) {
  if (path.empty() || path == "-") {
    wrong_usage(option, " was given '", path, "'. The name of a file was expected.");
  }
  struct stat facts {};
  const bool is_there = ::lstat(path.c_str(), &facts) == 0;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  const int problem = file < 0 ? errno : 0;
  if (file >= 0) ::close(file);
  if (file >= 0 && !is_there) ::unlink(path.c_str());
  if (problem != 0 && problem != ENXIO) cannot_write(path, problem);  // ENXIO: a pipe, nobody reads
}

void write_file(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int problem = file < 0 ? errno : 0;
  while (problem == 0 && !text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      problem = errno;
    }
  }
  if (file >= 0 && ::close(file) != 0 && problem == 0) problem = errno;
  if (problem != 0) cannot_write(path, problem);
}

}  // namespace tracefire::cli
