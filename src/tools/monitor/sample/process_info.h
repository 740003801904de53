// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

/// The container that a control-group path belongs to: "docker:1a2b3c4d5e6f", "podman:…",
/// "k8s:<pod uid>", "slurm:job_12", "lxc:name", "container:…" for an unknown runtime; "" for none.
/// `cgroup` is the text of /proc/PID/cgroup.
std::string container_of(std::string_view cgroup);

/// Reads what /proc tells about processes. Every file is read up to a bound. Used by one thread.
class ProcessReader {
 public:
  /// `root` goes before every path ("" for this machine).
  explicit ProcessReader(std::string root) : root_(std::move(root)) {}

  void begin_sample();
  HostProcess read(unsigned pid);
  /// Forgets processes that were not read in this sample.
  void end_sample();

 private:
  struct Known {
    int64_t started = 0;
    HostProcess host;  ///< what does not change
    double cpu_ticks = 0;
    double faults = 0;
    std::map<unsigned, double> children;  ///< processor time by process, in ticks
    int64_t time_us = 0;
    bool have_before = false;
    bool seen = false;
  };
  std::string path(unsigned pid, const char* file) const;
  std::string user_name(unsigned uid);
  std::string container_name(unsigned pid, const std::string& cgroup);
  void read_fixed(unsigned pid, HostProcess* host);
  std::map<unsigned, double> read_children(unsigned pid) const;

  const std::string root_;
  std::map<unsigned, Known> known_;
  std::map<unsigned, std::string> users_;
};

}  // namespace tracefire::monitor
