// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/sample/process_info.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

namespace tracefire::monitor {
namespace {

constexpr size_t kMaxFile = 64 << 10;
constexpr size_t kMaxPasswd = 1 << 20;
constexpr size_t kMaxUsers = 4096;
constexpr size_t kMaxChildren = 256;  // of one process

/// Up to `most` bytes of a file; false where it cannot be read.
bool read_file(const std::string& path, std::string* text, size_t most = kMaxFile) {
  // O_NONBLOCK: a path that turns out to be a pipe must not hold us.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  text->clear();
  char buffer[4096];
  while (text->size() < most) {
    const ssize_t n = ::read(fd, buffer, std::min(sizeof buffer, most - text->size()));
    if (n <= 0) break;
    text->append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return true;
}

template <class T>
T number(std::string_view text, T other = 0) {
  T value{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() ? value : other;
}

/// The rest of the line that begins with `key` in a file of "key: value" lines, without blanks.
std::string_view field(std::string_view text, std::string_view key) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.substr(0, key.size()) == key) {
      line.remove_prefix(key.size());
      const size_t first = line.find_first_not_of(" \t");
      return first == std::string_view::npos ? std::string_view() : line.substr(first);
    }
    begin = end + 1;
  }
  return {};
}

int64_t steady_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Fields of /proc/PID/stat after the name, which stands in brackets and may hold anything.
struct Stat {
  std::string name;
  double ticks = 0;
  double faults = 0;
  int64_t started = 0;
  bool ok = false;
};
Stat parse_stat(const std::string& text) {
  Stat stat;
  const size_t open_bracket = text.find('(');
  const size_t close_bracket = text.rfind(')');
  if (open_bracket == std::string::npos || close_bracket == std::string::npos ||
      close_bracket < open_bracket) {
    return stat;
  }
  stat.name = text.substr(open_bracket + 1, close_bracket - open_bracket - 1);
  std::vector<std::string_view> fields;
  const std::string_view rest = std::string_view(text).substr(close_bracket + 1);
  for (size_t begin = 0; begin < rest.size();) {
    begin = rest.find_first_not_of(" \n", begin);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(rest.find_first_of(" \n", begin), rest.size());
    fields.push_back(rest.substr(begin, end - begin));
    begin = end;
  }
  // proc(5) counts from 1 and the name is 2: state is 3, majflt 12, utime 14, stime 15, start 22.
  if (fields.size() < 20) return stat;
  stat.faults = static_cast<double>(number<int64_t>(fields[12 - 3]));
  stat.ticks =
      static_cast<double>(number<int64_t>(fields[14 - 3]) + number<int64_t>(fields[15 - 3]));
  stat.started = number<int64_t>(fields[22 - 3]);
  stat.ok = true;
  return stat;
}

/// A variable of /proc/PID/environ, "" where it is not there or not readable.
std::string environment_of(const std::string& environ_text, std::string_view name) {
  for (size_t begin = 0; begin < environ_text.size();) {
    const size_t end = std::min(environ_text.find('\0', begin), environ_text.size());
    const std::string_view entry = std::string_view(environ_text).substr(begin, end - begin);
    if (entry.size() > name.size() && entry.substr(0, name.size()) == name &&
        entry[name.size()] == '=') {
      return std::string(entry.substr(name.size() + 1, 253));
    }
    begin = end + 1;
  }
  return "";
}

}  // namespace

std::string ProcessReader::path(unsigned pid, const char* file) const {
  return root_ + "/proc/" + std::to_string(pid) + "/" + file;
}

void ProcessReader::begin_sample() {
  for (auto& [pid, known] : known_) known.seen = false;
}

void ProcessReader::end_sample() {
  std::erase_if(known_, [](const auto& entry) { return !entry.second.seen; });
}

std::string ProcessReader::user_name(unsigned uid) {
  const auto found = users_.find(uid);
  if (found != users_.end()) return found->second;
  std::string name;
  std::string passwd;
  if (read_file(root_ + "/etc/passwd", &passwd, kMaxPasswd)) {
    for (size_t begin = 0; begin < passwd.size();) {
      const size_t end = std::min(passwd.find('\n', begin), passwd.size());
      const std::string_view line = std::string_view(passwd).substr(begin, end - begin);
      const size_t first = line.find(':');
      const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
      if (second != std::string_view::npos &&
          number<unsigned>(line.substr(second + 1), ~0u) == uid) {
        name = line.substr(0, first);
        break;
      }
      begin = end + 1;
    }
  }
  if (name.empty() && root_.empty()) {  // users of a directory service
    char buffer[4096];
    struct passwd entry;
    struct passwd* result = nullptr;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &result) == 0 && result != nullptr) {
      name = result->pw_name;
    }
  }
  if (name.empty()) name = std::to_string(uid);
  if (users_.size() >= kMaxUsers) users_.clear();
  return users_[uid] = name;
}

std::string ProcessReader::container_name(unsigned pid, const std::string& cgroup) {
  std::string container = container_of(cgroup);
  std::string text;
  if (container.rfind("docker:", 0) == 0) {
    // Docker keeps the name in a file that only root may read; the number serves everyone else.
    const size_t at = cgroup.find(container.substr(7));
    if (at != std::string::npos && at + 64 <= cgroup.size() &&
        read_file(root_ + "/var/lib/docker/containers/" + cgroup.substr(at, 64) + "/config.v2.json",
                  &text, kMaxPasswd)) {
      const auto config = nlohmann::json::parse(text, nullptr, false);
      const auto name = config.is_object() ? config.find("Name") : config.end();
      if (config.is_object() && name != config.end() && name->is_string()) {
        std::string plain = name->get<std::string>();
        if (!plain.empty() && plain[0] == '/') plain.erase(0, 1);
        if (!plain.empty()) return "docker:" + plain.substr(0, 128);
      }
    }
  } else if (container.rfind("k8s:", 0) == 0) {
    // The host name of a pod is its name, unless somebody changed it.
    if (read_file(path(pid, "environ"), &text)) {
      const std::string name = environment_of(text, "HOSTNAME");
      if (!name.empty()) return "k8s:" + name;
    }
  } else if (container.empty()) {
    // Apptainer makes no control group of its own; it leaves this folder in the image.
    if (access(path(pid, "root/.singularity.d").c_str(), F_OK) == 0) {
      std::string name;
      if (read_file(path(pid, "environ"), &text)) {
        name = environment_of(text, "APPTAINER_NAME");
        if (name.empty()) name = environment_of(text, "SINGULARITY_NAME");
      }
      return name.empty() ? "apptainer" : "apptainer:" + name;
    }
  }
  return container;
}

void ProcessReader::read_fixed(unsigned pid, HostProcess* host) {
  std::string text;
  if (read_file(path(pid, "cmdline"), &text, kCommandBytes)) {
    while (!text.empty() && text.back() == '\0') text.pop_back();
    std::replace(text.begin(), text.end(), '\0', ' ');
    host->command = text;
  }
  if (read_file(path(pid, "status"), &text)) {
    const std::string_view uid = field(text, "Uid:");
    if (!uid.empty()) host->user = user_name(number<unsigned>(uid));
  }
  if (read_file(path(pid, "cgroup"), &text)) host->container = container_name(pid, text);
}

std::map<unsigned, double> ProcessReader::read_children(unsigned pid) const {
  // Children of the first thread: that is where frameworks start their loaders.
  std::map<unsigned, double> ticks;
  std::string list;
  if (!read_file(path(pid, ("task/" + std::to_string(pid) + "/children").c_str()), &list)) {
    return ticks;
  }
  for (size_t begin = 0; begin < list.size() && ticks.size() < kMaxChildren;) {
    const size_t end = std::min(list.find(' ', begin), list.size());
    const auto child = number<unsigned>(std::string_view(list).substr(begin, end - begin));
    begin = end + 1;
    std::string text;
    if (child == 0 || !read_file(path(child, "stat"), &text)) continue;
    if (const Stat stat = parse_stat(text); stat.ok) ticks[child] = stat.ticks;
  }
  return ticks;
}

HostProcess ProcessReader::read(unsigned pid) {
  std::string text;
  HostProcess gone;
  gone.gone = true;
  for (Reading* r : {&gone.cores, &gone.children_cores, &gone.age_seconds, &gone.resident_bytes,
                     &gone.swapped_bytes, &gone.major_faults}) {
    *r = Reading::missing(Reading::kNoAccess);
  }
  if (!read_file(path(pid, "stat"), &text)) return gone;
  const Stat stat = parse_stat(text);
  if (!stat.ok) return gone;
  Known& known = known_[pid];
  if (known.started != stat.started || known.time_us == 0) {
    known = Known{};
    known.started = stat.started;
    read_fixed(pid, &known.host);
    known.host.started = stat.started;
  }
  known.seen = true;
  known.host.name = stat.name;  // a program may change it
  HostProcess host = known.host;
  const int64_t now = steady_us();
  const double seconds = static_cast<double>(now - known.time_us) * 1e-6;
  if (known.have_before && seconds > 0.01) {
    const double per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
    host.cores = Reading::of(std::max(0.0, stat.ticks - known.cpu_ticks) / per_second / seconds);
    host.major_faults = Reading::of(std::max(0.0, stat.faults - known.faults) / seconds);
    std::map<unsigned, double> children = read_children(pid);
    double spent = 0;
    for (const auto& [child, ticks] : children) {
      const auto before = known.children.find(child);
      spent += std::max(0.0, ticks - (before == known.children.end() ? 0 : before->second));
    }
    host.children_cores = Reading::of(spent / per_second / seconds);
    known.children = std::move(children);
    known.host.children_cores = host.children_cores;
    known.host.cores = host.cores;
    known.host.major_faults = host.major_faults;
  } else if (!known.have_before) {
    host.cores = host.children_cores = host.major_faults = Reading::missing(Reading::kNotReady);
    known.children = read_children(pid);
  }
  if (!known.have_before || seconds > 0.01) {
    known.cpu_ticks = stat.ticks;
    known.faults = stat.faults;
    known.time_us = now;
    known.have_before = true;
  }
  host.age_seconds = Reading::missing(Reading::kNoAccess);
  if (read_file(root_ + "/proc/uptime", &text)) {
    const auto uptime = number<double>(text);
    const double began =
        static_cast<double>(stat.started) / static_cast<double>(sysconf(_SC_CLK_TCK));
    if (uptime >= began) host.age_seconds = Reading::of(uptime - began);
  }
  host.resident_bytes = host.swapped_bytes = Reading::missing(Reading::kNoAccess);
  if (read_file(path(pid, "status"), &text)) {
    const auto kib = [&](std::string_view key) {
      const std::string_view value = field(text, key);
      return value.empty() ? Reading::missing(Reading::kNotAsked)
                           : Reading::of(static_cast<double>(number<int64_t>(value)) * 1024);
    };
    host.resident_bytes = kib("VmRSS:");
    host.swapped_bytes = kib("VmSwap:");
  }
  return host;
}

}  // namespace tracefire::monitor
