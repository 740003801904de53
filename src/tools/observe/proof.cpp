// SPDX-License-Identifier: Apache-2.0
// The proof: the executor's records, added up. It listens from the moment the library is loaded.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "core/base/event.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "tools/observe/verdict.h"
#include "tracefire/device.h"
#include "tracefire/observe.h"

namespace tracefire {
namespace {

/// How many programs, and steps of them, are counted one by one before they are added up: what the
/// ledger keeps alive.
constexpr size_t kMostPrograms = 256;
constexpr size_t kMostSteps = size_t{1} << 16;
/// How many rows tell kernels and reasons apart; what comes later is added up for each operation.
constexpr size_t kMostRows = 4096;
constexpr const char* kVarious = "(various)";

/// Counts per step of a program, so that a run costs a few additions and no text.
struct ProgramCounts {
  std::shared_ptr<const ProgramRecord> program;
  std::shared_ptr<const std::vector<StepWork>> work;
  std::vector<uint64_t> runs;
};

/// A row and what the report asks of it besides.
struct Entry {
  Proof::Row row;
  Device device;
  uint8_t placement = kOnDevice;
  std::set<std::string> precisions;  ///< of products on GPUs
};

/// Rows by operation, device, kernel, placement and reason; so many that memory is bounded.
class Rows {
 public:
  void add(const ProgramCounts& counts) {
    for (size_t i = 0; i < counts.runs.size(); ++i) {
      const StepRecord& step = counts.program->steps[i];
      if (counts.runs[i] == 0 || step.kernel.empty()) continue;
      Entry& entry = find(step);
      if (entry.row.location.empty()) entry.row.location = step.location;
      const auto runs = static_cast<double>(counts.runs[i]);
      entry.row.runs += counts.runs[i];
      entry.row.flops += runs * (*counts.work)[i].flops;
      entry.row.bytes += runs * (*counts.work)[i].bytes;
      if (step.op == "matmul") entry.precisions.insert(counts.program->precision);
    }
  }
  bool dropped_detail() const { return dropped_detail_; }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  using Key = std::tuple<std::string, Device, std::string, uint8_t, std::string>;

  Entry& find(const StepRecord& step) {
    Key key{step.op, step.device, step.kernel, step.placement, step.reason};
    auto found = entries_.find(key);
    if (found != entries_.end()) return found->second;
    std::string library = step.library;
    if (entries_.size() >= kMostRows) {
      dropped_detail_ = true;
      const std::string reason = step.reason.empty() ? "" : kVarious;
      key = {step.op, step.device, kVarious, step.placement, reason};
      found = entries_.find(key);
      if (found != entries_.end()) return found->second;
      library = kVarious;
    }
    Entry& entry = entries_[key];
    entry.device = step.device;
    entry.placement = step.placement;
    entry.row.op = step.op;
    entry.row.device = step.device.str();
    entry.row.kernel = std::get<2>(key);
    entry.row.library = std::move(library);
    entry.row.placement = kPlacementNames[step.placement];
    entry.row.reason = std::get<4>(key);
    return entry;
  }

  std::map<Key, Entry> entries_;
  bool dropped_detail_ = false;
};

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void say_dropped() {
  say_once("proof rows", concat_text("the proof holds ", kMostRows,
                                     " rows; kernels and reasons that come later are added up for "
                                     "each operation and device. No work is left out; "
                                     "reset_proof() starts anew"));
}

class Ledger {
 public:
  static Ledger& instance() {
    static Ledger& ledger = *new Ledger;
    return ledger;
  }

  void add(const RunEvent& event) {
    if (!event.program || !event.work) return;  // a run of nothing
    bool dropped_detail = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto found = programs_.find(event.work.get());
      if (found == programs_.end()) {
        steps_ += event.program->steps.size();
        if (programs_.size() >= kMostPrograms || steps_ > kMostSteps) {
          dropped_detail = add_up(event.program->steps.size());
        }
        found = programs_.emplace(event.work.get(), ProgramCounts()).first;
        found->second = {event.program, event.work,
                         std::vector<uint64_t>(event.program->steps.size())};
      }
      std::vector<uint64_t>& counts = found->second.runs;
      if (event.steps.empty()) {
        for (uint64_t& runs : counts) runs += event.repeats;
      } else {
        for (int32_t step : event.steps) counts[static_cast<size_t>(step)] += event.repeats;
      }
      totals_.graph_launches += event.graph_launches;
      if (!event.captured) totals_.runs += event.repeats;
    }
    if (dropped_detail) say_dropped();
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
    steps_ = 0;
    rows_ = {};
    totals_ = {};
  }

  Proof report() {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool dropped_detail = add_up(0);
    Proof proof = totals_;
    const Rows rows = rows_;
    lock.unlock();
    if (dropped_detail) say_dropped();
    bool fell_back = false, products = false;
    std::set<std::string> precisions;
    for (const auto& [key, entry] : rows) {
      proof.rows.push_back(entry.row);
      fell_back |= entry.placement == kFellBack;
      products |= !entry.precisions.empty();
      if (entry.device.kind == Device::kGpu) {
        proof.gpu_flops += entry.row.flops;
        precisions.insert(entry.precisions.begin(), entry.precisions.end());
      } else if (entry.placement == kOnDevice || entry.placement == kFellBack) {
        proof.cpu_flops += entry.row.flops;
      } else {
        proof.cpu_by_choice_flops += entry.row.flops;
      }
    }
    // CPUs compute float32 products as IEEE says, whatever GPUs are allowed.
    proof.precision = joined(precisions);
    if (proof.precision.empty() && products) proof.precision = "highest";
    std::stable_sort(proof.rows.begin(), proof.rows.end(),
                     [](const Proof::Row& a, const Proof::Row& b) { return a.flops > b.flops; });
    proof.verdict = verdict_of(proof.gpu_flops, proof.cpu_flops, fell_back);
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

  /// Moves the counts of all programs into the rows and lets go of the programs. True where that
  /// was the first time that a row could not be kept apart.
  bool add_up(size_t steps_to_come) {
    const bool before = rows_.dropped_detail();
    for (const auto& [work, counts] : programs_) rows_.add(counts);
    programs_.clear();
    steps_ = steps_to_come;
    return !before && rows_.dropped_detail();
  }

  std::mutex mutex_;
  std::map<const void*, ProgramCounts> programs_;  ///< by the address of their work
  size_t steps_ = 0;                               ///< of programs_
  Rows rows_;
  Proof totals_;
};

const struct StartLedger {
  StartLedger() { Ledger::instance(); }
} start_ledger;

}  // namespace

Proof proof() { return Ledger::instance().report(); }
void reset_proof() { Ledger::instance().reset(); }

}  // namespace tracefire
