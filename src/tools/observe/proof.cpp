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
#include "tools/observe/step_counts.h"
#include "tools/observe/verdict.h"
#include "tracefire/device.h"
#include "tracefire/observe.h"

namespace tracefire {
namespace {

/// How many rows tell kernels and reasons apart; what comes later is added up for each operation.
constexpr size_t kMostRows = 4096;
constexpr const char* kVarious = "(various)";

/// A row and what the report asks of it besides.
struct Entry {
  Proof::Row row;
  Device device;
  std::set<std::string> precisions;  ///< of products on GPUs
};

/// Rows by operation, device, kernel, placement and reason; so many that memory is bounded.
class Rows {
 public:
  void add(const ProgramRecord& program, const StepRecord& step, const StepWork& work,
           uint64_t runs) {
    Entry& entry = find(step);
    if (entry.row.location.empty()) entry.row.location = step.location;
    entry.row.runs += runs;
    entry.row.flops += static_cast<double>(runs) * work.flops;
    entry.row.bytes += static_cast<double>(runs) * work.bytes;
    if (step.op == "matmul") entry.precisions.insert(program.precision);
  }
  bool dropped_detail() const { return dropped_detail_; }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  using Key = std::tuple<std::string, Device, std::string, Placement, std::string>;

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
    entry.row.op = step.op;
    entry.row.device = step.device.str();
    entry.row.kernel = std::get<2>(key);
    entry.row.library = std::move(library);
    entry.row.placement = step.placement;
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
      dropped_detail = adding([&](auto each) { counts_.add(event, each); });
      totals_.graph_launches += event.graph_launches;
      if (!event.captured) totals_.runs += event.repeats;
    }
    if (dropped_detail) say_dropped();
  }

  void add(const CopyEvent& event) {
    std::lock_guard<std::mutex> lock(mutex_);
    switch (event.kind) {
      case CopyKind::kHostToDevice:
        totals_.copies_in += event.bytes;
        break;
      case CopyKind::kDeviceToHost:
        totals_.copies_out += event.bytes;
        break;
      case CopyKind::kSlotRelocation:
        ++totals_.counted_copies;
        break;
      case CopyKind::kDeviceToDevice:
        break;
    }
  }

  void synchronized() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++totals_.synchronizations;
  }

  void reset() {
    std::lock_guard<std::mutex> lock(mutex_);
    counts_.clear();
    rows_ = {};
    totals_ = {};
  }

  Proof report() {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool dropped_detail = adding([&](auto each) { counts_.drain(each); });
    Proof proof = totals_;
    const Rows rows = rows_;
    lock.unlock();
    if (dropped_detail) say_dropped();
    bool products = false;
    std::set<std::string> precisions;
    WorkByPlace work;
    for (const auto& [key, entry] : rows) {
      proof.rows.push_back(entry.row);
      work.add(entry.device, entry.row.placement, entry.row.flops);
      products |= !entry.precisions.empty();
      if (entry.device.kind != Device::kGpu) continue;
      precisions.insert(entry.precisions.begin(), entry.precisions.end());
    }
    proof.gpu_flops = work.gpu_flops;
    proof.cpu_flops = work.cpu_flops;
    proof.cpu_by_choice_flops = work.cpu_by_choice_flops;
    // CPUs compute float32 products as IEEE says, whatever GPUs are allowed.
    proof.precision = joined(precisions);
    if (proof.precision.empty() && products) proof.precision = "highest";
    std::stable_sort(proof.rows.begin(), proof.rows.end(),
                     [](const Proof::Row& a, const Proof::Row& b) { return a.flops > b.flops; });
    proof.verdict = work.verdict();
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

  /// Runs `work` with what moves counts into rows. True where that was the first time that a row
  /// could not be kept apart.
  template <class Work>
  bool adding(Work work) {
    const bool before = rows_.dropped_detail();
    work([this](const ProgramRecord& program, const StepRecord& step, const StepWork& step_work,
                uint64_t runs) { rows_.add(program, step, step_work, runs); });
    return !before && rows_.dropped_detail();
  }

  std::mutex mutex_;
  StepCounts counts_;
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
