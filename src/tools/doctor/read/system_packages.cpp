// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/read/system_packages.h"

#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

/// Without epoch and release: "550.54.15" of "3:550.54.15-1.fc40".
std::string upstream(std::string_view version) {
  if (size_t colon = version.find(':'); colon != version.npos) version.remove_prefix(colon + 1);
  return std::string(version.substr(0, version.find('-')));
}

void add(std::string_view name, std::string_view version,
         std::map<std::string, SystemPackage>* out) {
  if (!wanted_package(name) || name.size() > 200 || version.empty() || version.size() > 200) return;
  SystemPackage& package = (*out)[std::string(name)];
  package.version = upstream(version);
  package.state = "installed";
}

}  // namespace

bool wanted_package(std::string_view name) {
  for (std::string_view begin :
       {"nvidia", "libnvidia", "kmod-nvidia", "akmod-nvidia", "xorg-x11-drv-nvidia", "cuda",
        "libcud", "cudnn", "libcublas", "libnccl", "nccl", "docker", "moby-engine", "podman",
        "dkms-nvidia", "x11-video-nvidia", "linux-nvidia"})
    if (name.rfind(begin, 0) == 0) return true;
  return false;
}

void add_pacman_folder(std::string_view folder, std::map<std::string, SystemPackage>* out) {
  size_t release = folder.rfind('-');
  if (release == folder.npos || release == 0) return;
  size_t version = folder.rfind('-', release - 1);
  if (version == folder.npos || version == 0) return;
  add(folder.substr(0, version), folder.substr(version + 1, release - version - 1), out);
}

void add_apk_installed(std::string_view text, std::map<std::string, SystemPackage>* out) {
  std::string_view name;
  for (std::string_view line : lines_of(text, 2000000)) {
    if (line.empty()) name = {};
    if (line.rfind("P:", 0) == 0) name = trim(line.substr(2));
    if (line.rfind("V:", 0) == 0 && !name.empty()) add(name, trim(line.substr(2)), out);
  }
}

void add_rpm_lines(std::string_view text, std::map<std::string, SystemPackage>* out) {
  for (std::string_view line : lines_of(text, 100000)) {
    line = trim(line);
    // NAME-VERSION-RELEASE.ARCH
    size_t release = line.rfind('-');
    if (release == line.npos || release == 0) continue;
    size_t version = line.rfind('-', release - 1);
    if (version == line.npos || version == 0) continue;
    add(line.substr(0, version), line.substr(version + 1, release - version - 1), out);
  }
}

}  // namespace tracefire::doctor
