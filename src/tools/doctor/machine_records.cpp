// SPDX-License-Identifier: Apache-2.0
//
// What the system has written down about itself: its packages and its kernel's log.
#include "tools/doctor/machine.h"
#include "tools/doctor/read/system_packages.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr off_t kLogTail = 4 << 20;

/// rpm's databases, in the order of their age.
void read_rpm(const Root& root, Machine* m) {
  for (std::string path :
       {"/usr/lib/sysimage/rpm/rpmdb.sqlite", "/var/lib/rpm/rpmdb.sqlite",
        "/usr/lib/sysimage/rpm/Packages.db", "/var/lib/rpm/Packages.db", "/var/lib/rpm/Packages"}) {
    if (root.facts(path).type != FileType::kRegular) continue;
    std::string problem = add_rpm_database(
        [&](uint64_t at, size_t size) { return root.read_at(path, static_cast<off_t>(at), size); },
        &m->packages);
    m->package_manager = "rpm";
    if (!problem.empty()) root.note_unread(path, problem);
    return;
  }
}

/// The lines since the last start of the system; nothing where the text does not tell when it was.
std::string since_last_start(const std::string& text) {
  size_t at = text.rfind("Linux version ");
  if (at == text.npos) return "";
  size_t line = text.rfind('\n', at);
  return text.substr(line == text.npos ? 0 : line + 1);
}

}  // namespace

void read_packages(const Root& root, Machine* m) {
  if (std::optional<std::string> status = root.read("/var/lib/dpkg/status", 32 << 20)) {
    m->packages = parse_dpkg_status(*status, {"nvidia", "libnvidia", "libcudnn", "cuda", "docker",
                                              "libcublas", "xserver-xorg-video-nouveau"});
    m->package_manager = "dpkg";
  }
  for (const std::string& folder : root.list("/var/lib/pacman/local", 20000)) {
    add_pacman_folder(folder, &m->packages);
    m->package_manager = "pacman";
  }
  if (std::optional<std::string> installed = root.read("/lib/apk/db/installed", 16 << 20)) {
    add_apk_installed(*installed, &m->packages);
    m->package_manager = "apk";
  }
  read_rpm(root, m);
  if (root.live()) return;
  if (std::optional<std::string> lines = root.read("/captured/rpm-qa.txt", 4 << 20)) {
    add_rpm_lines(*lines, &m->packages);
    m->package_manager = "rpm";
  }
  if (std::optional<std::string> lines = root.read("/captured/pacman-Q.txt", 4 << 20)) {
    for (std::string_view line : lines_of(*lines, 100000))
      add_pacman_folder(replace_all(std::string(trim(line)), " ", "-"), &m->packages);
    m->package_manager = "pacman";
  }
}

std::string kernel_log(const Root& root) {
  if (!root.live()) {
    std::vector<std::string> texts;
    for (std::string path : {"/captured/dmesg.txt", "/captured/journal.txt"})
      if (std::string text = root.read_ends(path, kLogTail).value_or(""); !text.empty())
        texts.push_back(std::move(text));
    if (!texts.empty()) return join(texts, "\n");
  }
  if (std::string text = root.read_ends("/var/log/dmesg", kLogTail / 2).value_or(""); !text.empty())
    return text;
  // These hold many starts: an error of last week is none of today.
  for (std::string path : {"/var/log/kern.log", "/var/log/messages", "/var/log/syslog"}) {
    FileFacts file = root.facts(path);
    if (file.type != FileType::kRegular) continue;
    off_t begin = std::max<off_t>(0, file.size - kLogTail);
    if (std::string text =
            since_last_start(root.read_at(path, begin, static_cast<size_t>(file.size - begin)));
        !text.empty())
      return text;
  }
  return "";
}

}  // namespace tracefire::doctor
