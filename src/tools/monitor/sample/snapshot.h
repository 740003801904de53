// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/monitor/sample/metrics.h"

namespace tracefire::monitor {

/// A number, or why it is missing. Never a guess: what could not be read is not zero.
struct Reading {
  static constexpr int kOk = 0;
  static constexpr int kNotAsked = -1;    ///< does not apply here, or nobody asked yet
  static constexpr int kNoFunction = -2;  ///< the installed NVML lacks the function
  static constexpr int kNotReady = -3;    ///< a rate that needs a second sample
  static constexpr int kNoAccess = -4;    ///< the operating system does not show it to this user

  double value = 0;
  int code = kNotAsked;  ///< kOk, one of the above, or the code that NVML returned

  bool ok() const { return code == kOk; }
  double or_else(double other) const { return ok() ? value : other; }
  /// Why there is no value: "not supported by this GPU", "no permission", …; "" where there is one.
  const char* why() const;
  static Reading of(double value) { return {value, kOk}; }
  static Reading missing(int code) { return {0, code}; }
};

/// What NVML says to a question of --query-gpu: words, or a number in NVML's own unit.
struct Answer {
  int code = Reading::kNoFunction;
  std::string text;  ///< "" where it is a number
  double value = 0;
};

/// Every metric of a GPU or of a MIG instance, in base units (see metrics.h).
using Readings = std::array<Reading, kMetricCount>;

/// What the operating system tells about a process on a GPU.
struct HostProcess {
  std::string name;        ///< "python3"; "" where it could not be read
  std::string command;     ///< command line, at most kCommandBytes
  std::string user;        ///< name, or the number where it has none
  std::string container;   ///< "docker:1a2b3c4d5e6f", "k8s:pod/…"; "" for none
  Reading cores;           ///< processor cores kept busy since the last sample
  Reading children_cores;  ///< the same of its children: data loaders, as a rule
  Reading resident_bytes;
  Reading swapped_bytes;
  Reading major_faults;  ///< page faults that read from disk, per second
  Reading age_seconds;   ///< how long it has been running
  int64_t started = 0;   ///< clock ticks after boot; tells a reused number from the same process
  bool gone = false;     ///< it ended between the driver's answer and ours
};

enum class ProcessKind : uint8_t { kCompute, kGraphics, kMps };
const char* process_kind_name(ProcessKind kind);

struct GpuProcess {
  unsigned pid = 0;
  ProcessKind kind = ProcessKind::kCompute;
  int gpu_instance = -1;  ///< of MIG, else -1
  int compute_instance = -1;
  Reading memory_bytes;
  Reading sm_share;      ///< 0 to 1
  Reading memory_share;  ///< 0 to 1
  HostProcess host;
};

/// One MIG instance.
struct Instance {
  int gpu_instance = 0;
  int compute_instance = 0;
  std::string uuid;
  std::string name;  ///< "NVIDIA H200 MIG 1g.18gb"
  Readings readings;
  const Reading& operator[](Metric m) const { return readings[static_cast<int>(m)]; }
  Reading& operator[](Metric m) { return readings[static_cast<int>(m)]; }
};

struct Gpu {
  int index = 0;
  std::string name;
  std::string uuid;
  std::string pci;  ///< "00000000:01:00.0", as nvidia-smi writes it
  std::string serial;
  std::string vbios;
  int capability = 0;  ///< 90 for 9.0; 0 where unknown
  bool lost = false;   ///< it answered once and answers no longer
  int lost_code = 0;   ///< NVML's code, where lost
  Readings readings;
  uint64_t throttle = 0;  ///< bits of throttle_reasons(), valid where throttle_code is kOk
  int throttle_code = Reading::kNotAsked;
  int process_code = Reading::kNotAsked;  ///< kOk where `processes` is complete
  std::vector<Instance> instances;
  std::vector<GpuProcess> processes;
  bool more_processes = false;            ///< the list was cut at kMaxProcesses
  std::map<std::string, Answer> answers;  ///< to the fields that --query-gpu asked for

  const Reading& operator[](Metric m) const { return readings[static_cast<int>(m)]; }
  Reading& operator[](Metric m) { return readings[static_cast<int>(m)]; }
  bool mig() const { return (*this)[Metric::kMigMode].or_else(0) == 1; }
};

/// One look at all GPUs. Plain data; copied to every reader.
struct Snapshot {
  uint64_t sequence = 0;
  int64_t unix_us = 0;    ///< UTC
  int64_t steady_us = 0;  ///< of the monotonic clock
  double took_seconds = 0;
  std::string host;
  std::string driver;
  std::string nvml;
  int cuda = 0;         ///< newest CUDA that the driver supports: 13000; 0 where unknown
  std::string problem;  ///< why there are no GPUs here, or why they are from an older answer
  std::vector<Gpu> gpus;
};

inline constexpr size_t kMaxProcesses = 512;   ///< of one GPU
inline constexpr size_t kCommandBytes = 2048;  ///< of a command line
inline constexpr size_t kMaxGpus = 256;

}  // namespace tracefire::monitor
