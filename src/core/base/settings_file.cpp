// SPDX-License-Identifier: Apache-2.0
#include "core/base/settings_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

namespace tracefire {
namespace {

constexpr size_t kLargestFile = size_t{1} << 20;  // bytes; a settings file has a few hundred

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// The whole file; a text of the operating system's where it cannot be read.
std::string read_all(const std::string& path, std::string* text) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // no wait for a pipe
  if (file < 0) return std::strerror(errno);
  std::string problem;
  struct stat facts {};
  if (::fstat(file, &facts) == 0 && !S_ISREG(facts.st_mode)) problem = "it is not a regular file";
  char block[4096];
  while (problem.empty()) {
    const ssize_t got = ::read(file, block, sizeof block);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      problem = std::strerror(errno);
    } else if (text->append(block, static_cast<size_t>(got)); text->size() > kLargestFile) {
      problem = "it is larger than 1 MiB";
    }
  }
  ::close(file);
  return problem;
}

}  // namespace

std::vector<SettingsFile> settings_files() {
  std::vector<SettingsFile> files = {{"/etc/tracefire/config", SettingSource::kSystemFile}};
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (folder != nullptr && folder[0] == '/') {  // the specification ignores relative paths
    files.push_back({std::string(folder) + "/tracefire/config", SettingSource::kUserFile});
  } else if (home != nullptr && home[0] == '/') {
    files.push_back({std::string(home) + "/.config/tracefire/config", SettingSource::kUserFile});
  }
  return files;
}

Result<std::vector<SettingLine>> parse_settings_text(std::string_view text,
                                                     const std::string& path) {
  std::vector<SettingLine> entries;
  std::map<std::string, int> seen;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find('\0') != std::string_view::npos) {
      return error(ErrorCode::kBadSetting, path, ":", number,
                   ": there is a zero byte, so this is no "
                   "text. Lines of `name = value` were expected.");
    }
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    SettingLine entry;
    if (equals != std::string_view::npos) {
      entry = {std::string(trimmed(line.substr(0, equals))),
               std::string(trimmed(line.substr(equals + 1))), number};
    }
    if (entry.name.empty()) {
      return error(
          ErrorCode::kBadSetting, path, ":", number, ": '", line.substr(0, 100),
          "' is no setting. `name = value` was expected, or a comment that begins with #.");
    }
    const auto [first, added] = seen.emplace(entry.name, number);
    if (!added) {
      return error(ErrorCode::kBadSetting, path, ":", number, ": the setting ",
                   entry.name.substr(0, 100), " stands in line ", first->second,
                   " already. Remove one of the two.");
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<SettingLine>> read_settings_file(const std::string& path, std::string* warning) {
  std::string text;
  if (::access(path.c_str(), F_OK) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::vector<SettingLine>{};
    // HOME of another user, as `su` and `sudo` leave it: nobody knows whether there is a file.
    *warning =
        concat_text("the settings file ", path, " cannot be looked for: ", std::strerror(errno));
    return std::vector<SettingLine>{};
  }
  const std::string problem = read_all(path, &text);
  if (!problem.empty()) {
    return error(ErrorCode::kFileNotFound, "the settings file ", path,
                 " is there and cannot be read: ", problem,
                 ". A text file of `name = value` lines was expected. Correct its permissions, or "
                 "move it away.");
  }
  return parse_settings_text(text, path);
}

}  // namespace tracefire
