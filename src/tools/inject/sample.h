// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/nvidia/stack.h"

namespace tracefire::inject {

/// How the system has a process, as the letter in /proc/PID/stat: 'R', 'S', 'Z' …; 0 where it does
/// not tell.
char process_state(pid_t pid);

/// What NVML showed of one GPU at one time.
struct GpuSample {
  int busy_percent = -1;     ///< part of NVML's last period in which a kernel ran; -1: not told
  int64_t memory_used = -1;  ///< bytes, of all processes
  int64_t tree_memory = -1;  ///< bytes, of the program and its children
  int sm_mhz = -1;
  int celsius = -1;
  int milliwatts = -1;
  uint64_t throttle = 0;  ///< NVML's reasons, a bit each
};

/// One look at the program and its children.
struct Sample {
  int64_t at_ns = 0;     ///< since the program began
  int64_t cpu_ns = 0;    ///< CPU time of all processes seen so far
  int64_t resident = 0;  ///< bytes
  int processes = 0;
  std::vector<GpuSample> gpus;
};

/// A process of the tree. Texts are as the system gives them.
struct ProcessSeen {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;     ///< of its executable's file
  std::string command;  ///< at most 1024 bytes
  int64_t cpu_ns = 0;
  int64_t first_ns = 0;  ///< when it was first and last seen, since the program began
  int64_t last_ns = 0;
  int64_t resident_peak = 0;
  int64_t gpu_memory_peak = 0;  ///< by NVML
  bool driver_loaded = false;   ///< libcuda was mapped
  bool on_gpu = false;          ///< NVML named it
  bool told = true;          ///< it has the variables of the tracing and may write where they say
  int64_t faults = 0;        ///< page faults that read from disk
  int64_t swapped_peak = 0;  ///< bytes of its memory that were swapped out
};

/// Somebody else's process on a GPU.
struct OtherSeen {
  pid_t pid = 0;
  int gpu = 0;
  std::string name;  ///< empty where it is not visible (another container)
  int64_t memory_peak = -1;
};

/// What the whole machine moved between memory and swap while the program ran, bytes.
struct Paging {
  int64_t swapped_in = 0, swapped_out = 0;
};

struct GpuSeen {
  std::string name;
  std::string uuid;
  int64_t memory = 0;  ///< bytes
  int max_sm_mhz = 0;
};

/// Looks at a process tree through /proc, and a few times a second at the GPUs through NVML, which
/// makes a sample. Keeps at most `kMost` samples: beyond that, neighbours become one and every
/// second one is left out, and so on.
class Sampler {
 public:
  static constexpr size_t kMost = 512;
  static constexpr size_t kMostProcesses = 512;
  static constexpr size_t kMostOthers = 64;

  /// Times count from here.
  explicit Sampler(nvidia::Stack& stack);
  void look(pid_t root);

  const std::vector<Sample>& samples() const { return samples_; }
  const std::map<pid_t, ProcessSeen>& processes() const { return processes_; }
  const std::vector<GpuSeen>& gpus() const { return gpus_; }
  /// Why there is nothing about GPUs; empty where there is.
  const std::string& nvml_problem() const { return nvml_problem_; }
  const std::string& driver_version() const { return driver_version_; }
  int64_t processes_left_out() const { return left_out_; }
  const std::vector<OtherSeen>& others() const { return others_; }
  /// Since the sampler was made.
  Paging paging() const;

 private:
  void open_nvml();
  void look_at_process(pid_t pid, pid_t parent, int64_t now, Sample& sample, int depth);
  void look_at_gpus(Sample& sample);
  void look_at_others(unsigned gpu, pid_t pid, int64_t memory);
  void thin();

  nvidia::Stack& stack_;
  const nvidia::NvmlApi* nvml_ = nullptr;
  bool nvml_tried_ = false;
  std::string nvml_problem_;
  std::string driver_version_;
  std::vector<nvidia::NvmlDevice> handles_;
  std::vector<GpuSeen> gpus_;
  std::vector<Sample> samples_;
  std::map<pid_t, ProcessSeen> processes_;
  std::vector<OtherSeen> others_;
  Paging paging_at_start_;
  int64_t left_out_ = 0;
  int64_t begun_ns_ = 0;
  int64_t due_ns_ = 0;  ///< the next look makes a sample from then on
  int64_t gap_ns_ =
      25'000'000;  ///< to the sample after that; programs that end soon have some, too
  int every_ = 1;  ///< one sample in so many is kept
  int taken_ = 0;
  int looks_ = 0;
};

}  // namespace tracefire::inject
