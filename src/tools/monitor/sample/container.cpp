// SPDX-License-Identifier: Apache-2.0
// Which container a control-group path belongs to.
#include <algorithm>
#include <cctype>
#include <vector>

#include "tools/monitor/sample/process_info.h"

namespace tracefire::monitor {
namespace {

constexpr size_t kIdLength = 64;     // of docker, podman, containerd, cri-o
constexpr size_t kShownLength = 12;  // as docker ps prints it

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0 &&
         std::isupper(static_cast<unsigned char>(c)) == 0;
}

/// The first run of exactly 64 hexadecimal digits.
std::string_view container_id(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && is_hex(text[end])) ++end;
    if (end - begin == kIdLength) return text.substr(begin, kIdLength);
    begin = std::max(end, begin + 1);
  }
  return {};
}

/// "<uid>" out of ".../pod<uid>/..." or "kubepods-burstable-pod<uid with _>.slice".
std::string pod_of(std::string_view text) {
  for (size_t at = text.find("pod"); at != std::string_view::npos; at = text.find("pod", at + 3)) {
    std::string uid;
    for (size_t i = at + 3; i < text.size() && uid.size() < 36; ++i) {
      const char c = text[i] == '_' ? '-' : text[i];
      if (!is_hex(c) && c != '-') break;
      uid += c;
    }
    if (uid.size() == 36) return uid;
  }
  return "";
}

/// The path component that begins after `prefix`, "" where there is none.
std::string component_after(std::string_view text, std::string_view prefix) {
  const size_t at = text.find(prefix);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + prefix.size());
  return std::string(rest.substr(0, std::min<size_t>(rest.find_first_of("/\n."), 128)));
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::string container_of(std::string_view cgroup) {
  if (has(cgroup, "kubepods")) {
    const std::string pod = pod_of(cgroup);
    if (!pod.empty()) return "k8s:" + pod;
  }
  const std::string_view id = container_id(cgroup);
  if (!id.empty()) {
    const char* runtime = has(cgroup, "libpod")       ? "podman:"
                          : has(cgroup, "docker")     ? "docker:"
                          : has(cgroup, "crio")       ? "cri-o:"
                          : has(cgroup, "containerd") ? "containerd:"
                                                      : "container:";
    return runtime + std::string(id.substr(0, kShownLength));
  }
  if (has(cgroup, "/slurm")) {
    const std::string job = component_after(cgroup, "/job_");
    if (!job.empty()) return "slurm:job_" + job;
  }
  for (const char* prefix : {"/lxc.payload.", "/lxc/"}) {
    const std::string name = component_after(cgroup, prefix);
    if (!name.empty()) return "lxc:" + name;
  }
  for (const char* prefix : {"apptainer-", "singularity-"}) {
    const std::string name = component_after(cgroup, prefix);
    if (!name.empty()) return "apptainer:" + name;
  }
  return "";
}

}  // namespace tracefire::monitor
