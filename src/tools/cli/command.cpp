// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/report/manifest.h"

namespace tracefire::cli {
namespace {

std::string not_written(const std::string& path, int problem) {
  return concat_text("the file ", printable(path), " cannot be written: ", std::strerror(problem),
                     ". A place that this user may write to was expected.");
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

void check_output(const std::string& option, const std::string& path, Readers readers) {
  if (path.empty() || path == "-") {
    wrong_usage(option, " was given '", path, "'. The name of a file was expected.");
  }
  struct stat facts {};
  const bool is_there = ::stat(path.c_str(), &facts) == 0;  // no link to a file that is missing
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
  int problem = file < 0 ? errno : 0;
  if (problem == ENXIO) problem = 0;  // a pipe that nobody reads yet
  if (file >= 0 && !is_there) {
    std::error_code gone;  // where the name is a link, what it led to was made
    const std::filesystem::path made = std::filesystem::canonical(path, gone);
    ::unlink(gone ? path.c_str() : made.c_str());
  }
  if (file >= 0) ::close(file);
  if (problem == 0 && is_there && readers == Readers::kOwner && S_ISREG(facts.st_mode) &&
      facts.st_uid != ::geteuid()) {
    problem = EPERM;  // its readers are for its owner to choose
  }
  if (problem != 0) wrong_usage(option, ": ", not_written(path, problem));
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code unknown;
  if (std::filesystem::equivalent(a, b, unknown)) return true;
  const auto whole = [&unknown](std::filesystem::path name) {
    // A link to what is not there yet leads there all the same.
    const std::filesystem::path to = std::filesystem::read_symlink(name, unknown);
    if (!unknown) name = name.parent_path() / to;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(name, unknown), unknown);
  };
  const std::filesystem::path whole_a = whole(a);
  return !whole_a.empty() && whole_a == whole(b);
}

namespace {

/// Writes all of it into an open file; errno, or 0.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

/// Makes or truncates a file and writes it; errno, or 0.
int write_into(const std::string& path, std::string_view text, Readers readers) {
  const bool closed = readers == Readers::kOwner;
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC, closed ? 0600 : 0666);
  if (file < 0) return errno;
  struct stat facts {};
  int problem =
      ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && closed && ::fchmod(file, 0600) != 0
          ? errno
          : 0;
  if (problem == 0) problem = write_all(file, text);
  if (::close(file) != 0 && problem == 0) problem = errno;
  return problem;
}

}  // namespace

void write_file(const std::string& path, std::string_view text, Readers readers) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::path end = fs::weakly_canonical(path, unknown);  // where links lead
  const fs::file_type type = unknown ? fs::file_type::unknown : fs::status(end, unknown).type();
  const std::string fresh = end.string() + ".new";
  int problem = 0;
  if ((type == fs::file_type::regular || type == fs::file_type::not_found) &&
      ::access(end.parent_path().c_str(), W_OK) == 0) {
    // Whole or not at all: what was there before stays where there is no room for this.
    struct stat before {};
    const bool replaces = ::stat(end.c_str(), &before) == 0;
    problem = write_into(fresh, text, readers);
    if (problem == 0 && replaces && readers == Readers::kAll) {
      ::chmod(fresh.c_str(), before.st_mode & 07777);
    }
    if (problem == 0 && ::rename(fresh.c_str(), end.c_str()) != 0) problem = errno;
    if (problem != 0) ::unlink(fresh.c_str());
  } else {
    problem = write_into(path, text, readers);
  }
  if (problem != 0) error(ErrorCode::kCannotWrite, not_written(path, problem)).throw_if_error();
}

}  // namespace tracefire::cli
