// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/nvidia/nvml_monitor_api.h"
#include "tools/monitor/sample/process_info.h"
#include "tools/monitor/sample/source.h"

namespace tracefire::monitor {

/// Two samples of a GPU's performance counters (Hopper and newer), of which rates are made.
class GpmPair {
 public:
  GpmPair(const nvidia::NvmlMonitorApi* api, nvidia::NvmlDevice device, int gpu_instance);
  ~GpmPair();
  GpmPair(const GpmPair&) = delete;
  GpmPair& operator=(const GpmPair&) = delete;

  /// Takes a sample and fills the activities and link rates since the one before.
  void read(Readings* readings);

 private:
  int sample(nvidia::NvmlGpmSample into) const;

  const nvidia::NvmlMonitorApi* api_;
  const nvidia::NvmlDevice device_;
  const int gpu_instance_;
  nvidia::NvmlGpmSample older_ = nullptr;
  nvidia::NvmlGpmSample newer_ = nullptr;
  bool have_older_ = false;
  int code_ = Reading::kNotReady;
};

/// Reads NVML. Opens it on the first read, and again later where it was not there or was shut down
/// (the driver was updated, the module unloaded).
class NvmlSource : public Source {
 public:
  /// What is read: everything, or what no field of nvidia-smi's --query-gpu needs left out
  /// (activity counters, rates of PCIe and NVLink, Xid events, MIG instances, processes). Much of
  /// the latter costs the driver tens of milliseconds.
  enum class Scope { kAll, kQuery };

  /// `questions` are fields for ask_nvml(); `root` goes before /proc and /etc, for tests.
  explicit NvmlSource(std::vector<std::string> questions = {}, std::string root = "",
                      Scope scope = Scope::kAll);
  ~NvmlSource() override;

  void read(Snapshot* snapshot) override;

 private:
  struct Device {
    nvidia::NvmlDevice handle = nullptr;
    Gpu fixed;  ///< what does not change: name, UUID, limits
    std::unique_ptr<GpmPair> gpm;
    std::vector<std::pair<int, std::unique_ptr<GpmPair>>> instance_gpm;  ///< by GPU instance
    unsigned long long processes_since = 0;
    Readings slow;  ///< limits, and counters of errors of the links: asked for every few seconds
    int64_t slow_next = 0;  ///< steady, microseconds
    Reading nvlink_tx_before, nvlink_rx_before;
    int64_t nvlink_time = 0;  ///< steady, microseconds
    uint64_t xid_errors = 0;
    unsigned xid_last = 0;
    int xid_code = Reading::kNotAsked;
    unsigned handle_code = 0;  ///< why there is no handle
  };

  std::string open();  ///< "" or what is wrong
  void close();
  void find_devices(unsigned count);
  void describe(Device* device, unsigned index);
  void collect_events();
  void read_device(Device* device, Gpu* gpu);
  void read_basics(Device* device, Gpu* gpu);
  void read_clocks(Device* device, Gpu* gpu);
  void read_fields(Device* device, Gpu* gpu);
  void read_slow(Device* device, Gpu* gpu);
  void ask_slow(const Device& device, Readings* slow);
  void ask_nvlinks(const Device& device, Readings* slow);
  void read_activity(Device* device, Gpu* gpu);
  void read_links(Device* device, Gpu* gpu);
  void read_nvlink_rates(Device* device, Gpu* gpu);
  void read_errors(Device* device, Gpu* gpu);
  void read_instances(Device* device, Gpu* gpu);
  void read_processes(Device* device, Gpu* gpu);
  void read_process_shares(Device* device, Gpu* gpu);

  const std::vector<std::string> questions_;
  const Scope scope_;
  std::optional<nvidia::OpenLibrary> library_;
  std::optional<nvidia::NvmlApi> api_;
  nvidia::NvmlMonitorApi more_;
  nvidia::NvmlEventSet events_ = nullptr;
  std::string driver_, nvml_;
  int cuda_ = 0;
  std::vector<Device> devices_;
  std::string problem_;
  int64_t next_try_ = 0;  ///< steady, microseconds
  ProcessReader host_;
};

}  // namespace tracefire::monitor
