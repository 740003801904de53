// SPDX-License-Identifier: Apache-2.0
// The proof: the executor's records, added up. It listens from the moment the library is loaded.
#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "core/base/event.h"
#include "tracefire/device.h"
#include "tracefire/observe.h"

namespace tracefire {
namespace {

// Placement numbers of StepRecord::placement.
constexpr const char* kPlacementNames[] = {"on device", "host by design", "by user",
                                           "fallen back"};
constexpr uint8_t kOnDevice = 0;
constexpr uint8_t kFellBack = 3;
constexpr double kOnGpuShare = 0.99;

/// Counts per step of a program, so that a run costs a few additions and no text.
struct ProgramCounts {
  std::shared_ptr<const ProgramRecord> program;
  std::shared_ptr<const std::vector<StepWork>> work;
  std::vector<uint64_t> runs;
};

class Ledger {
 public:
  static Ledger& instance() {
    static Ledger& ledger = *new Ledger;
    return ledger;
  }

  void add(const RunEvent& event) {
    if (!event.program || !event.work) return;  // a run of nothing
    std::lock_guard<std::mutex> lock(mutex_);
    ProgramCounts& counts = programs_[event.work.get()];
    if (!counts.program) {
      counts.program = event.program;
      counts.work = event.work;
      counts.runs.resize(event.program->steps.size());
    }
    if (event.steps.empty()) {
      for (uint64_t& runs : counts.runs) runs += event.repeats;
    } else {
      for (int32_t step : event.steps) counts.runs[static_cast<size_t>(step)] += event.repeats;
    }
    totals_.graph_launches += event.graph_launches;
    if (!event.captured) totals_.runs += event.repeats;
  }

  void add(const CopyEvent& event) {
    std::lock_guard<std::mutex> lock(mutex_);
    switch (event.kind) {
      case CopyKind::kHostToDevice: totals_.copies_in += event.bytes; break;
      case CopyKind::kDeviceToHost: totals_.copies_out += event.bytes; break;
      case CopyKind::kSlotRelocation: ++totals_.counted_copies; break;
      case CopyKind::kDeviceToDevice: break;
    }
  }

  void synchronized() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++totals_.synchronizations;
  }

  void reset() {
    std::lock_guard<std::mutex> lock(mutex_);
    programs_.clear();
    totals_ = {};
  }

  Proof report() {
    std::lock_guard<std::mutex> lock(mutex_);
    Proof proof = totals_;
    using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
    std::map<Key, Proof::Row> rows;
    bool fell_back = false;
    for (const auto& [work, counts] : programs_) {
      for (size_t i = 0; i < counts.runs.size(); ++i) {
        const StepRecord& step = counts.program->steps[i];
        if (counts.runs[i] == 0 || step.kernel.empty()) continue;
        const char* placement = kPlacementNames[step.placement];
        Proof::Row& row = rows[{step.op, step.device.str(), step.kernel, placement, step.reason}];
        row.op = step.op;
        row.device = step.device.str();
        row.kernel = step.kernel;
        row.library = step.library;
        row.placement = placement;
        row.reason = step.reason;
        if (row.location.empty()) row.location = step.location;
        const auto runs = static_cast<double>(counts.runs[i]);
        row.runs += counts.runs[i];
        row.flops += runs * (*counts.work)[i].flops;
        row.bytes += runs * (*counts.work)[i].bytes;
        const double flops = runs * (*counts.work)[i].flops;
        if (step.device.kind == Device::kGpu) {
          proof.gpu_flops += flops;
        } else if (step.placement == kOnDevice || step.placement == kFellBack) {
          proof.cpu_flops += flops;
        } else {
          proof.cpu_by_choice_flops += flops;
        }
        fell_back |= step.placement == kFellBack;
        // CPUs compute float32 products as IEEE says, whatever GPUs are allowed.
        if (step.op == "matmul" && (step.device.kind == Device::kGpu || proof.precision.empty())) {
          proof.precision =
              step.device.kind == Device::kGpu ? counts.program->precision : "highest";
        }
      }
    }
    for (auto& [key, row] : rows) proof.rows.push_back(std::move(row));
    std::stable_sort(proof.rows.begin(), proof.rows.end(),
                     [](const Proof::Row& a, const Proof::Row& b) { return a.flops > b.flops; });
    const double total = proof.gpu_flops + proof.cpu_flops;
    if (proof.gpu_flops == 0) {
      proof.verdict = "on-cpu";
    } else if (!fell_back && proof.gpu_flops >= kOnGpuShare * total) {
      proof.verdict = "on-gpu";
    } else {
      proof.verdict = "partly-on-gpu";
    }
    return proof;
  }

 private:
  Ledger() {
    Events::Subscriber subscriber;
    subscriber.run = [this](const RunEvent& event) { add(event); };
    subscriber.copy = [this](const CopyEvent& event) { add(event); };
    subscriber.synchronize = [this](Device) { synchronized(); };
    Events::instance().subscribe(std::move(subscriber));
  }

  std::mutex mutex_;
  std::map<const void*, ProgramCounts> programs_;
  Proof totals_;
};

const struct StartLedger {
  StartLedger() { Ledger::instance(); }
} start_ledger;

}  // namespace

Proof proof() { return Ledger::instance().report(); }
void reset_proof() { Ledger::instance().reset(); }

}  // namespace tracefire
