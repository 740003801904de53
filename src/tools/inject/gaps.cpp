// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/gaps.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace tracefire::inject {
namespace {

constexpr double kMicrosecond = 1000;

/// The calls of one window, by thread and by correlation.
class Calls {
 public:
  explicit Calls(const WindowRow& window) {
    for (const EventRow& e : window.events) {
      if (e.kind != Event::kCall) continue;
      by_thread_[e.place].push_back(&e);
      const auto work = static_cast<ApiClass>(e.detail);
      if (work != ApiClass::kWait && work != ApiClass::kAllocate) {
        by_correlation_.emplace(e.correlation, &e);
      }
    }
  }
  /// ns that the thread with the most calls waited between two times.
  uint64_t waited(uint64_t from, uint64_t to) const {
    const std::vector<const EventRow*>* busiest = nullptr;
    for (const auto& [thread, calls] : by_thread_) {
      if (busiest == nullptr || calls.size() > busiest->size()) busiest = &calls;
    }
    uint64_t sum = 0;
    if (busiest == nullptr) return sum;
    for (const EventRow* e : *busiest) {
      const auto work = static_cast<ApiClass>(e->detail);
      const bool waits = work == ApiClass::kWait ||
                         (work == ApiClass::kCopy && static_cast<double>(e->end - e->start) >=
                                                         table::kBlockingUs * kMicrosecond);
      if (waits && e->end > from && e->start < to) {
        sum += std::min(e->end, to) - std::max(e->start, from);
      }
    }
    return sum;
  }
  const EventRow* of(uint32_t correlation) const {
    const auto found = by_correlation_.find(correlation);
    return found == by_correlation_.end() ? nullptr : found->second;
  }
  /// What a thread did between two times: calls visit(call).
  template <class Visit>
  void between(uint16_t thread, uint64_t from, uint64_t to, Visit visit) const {
    const auto found = by_thread_.find(thread);
    if (found == by_thread_.end()) return;
    const std::vector<const EventRow*>& calls = found->second;
    auto at = std::lower_bound(calls.begin(), calls.end(), to,
                               [](const EventRow* e, uint64_t t) { return e->start < t; });
    // Calls of a thread follow one another; a few are looked at for those that hold others.
    for (int outside = 0; at != calls.begin() && outside < 4;) {
      --at;
      if ((*at)->end <= from) {
        ++outside;
      } else {
        visit(**at);
      }
    }
  }

 private:
  std::unordered_map<uint16_t, std::vector<const EventRow*>> by_thread_;
  std::unordered_map<uint32_t, const EventRow*> by_correlation_;
};

bool is_large_copy(const EventRow* e, int kind) {
  return e != nullptr && e->kind == Event::kCopy && e->detail == kind &&
         static_cast<double>(e->bytes) >= table::kFallbackBytes;
}

/// Why nothing at all ran on the device between `from` and the start of `next`.
Cause cause_of(const Calls& calls, const EventRow* before, const EventRow& next, uint64_t from) {
  const auto length = static_cast<double>(next.start - from);
  const EventRow* call = calls.of(next.correlation);
  if (call == nullptr) {
    return length <= table::kDeviceGapUs * kMicrosecond ? Cause::kDevice : Cause::kUnknown;
  }
  if (call->end <= from) return Cause::kDevice;  // queued in time
  if (call->start <= from) {
    return static_cast<ApiClass>(call->detail) == ApiClass::kCopy ? Cause::kCopy : Cause::kLaunch;
  }
  bool waited = false;  // the host waited for the device when it fell idle
  uint64_t allocating = 0;
  calls.between(call->place, from, call->start, [&](const EventRow& e) {
    const auto work = static_cast<ApiClass>(e.detail);
    const auto time = static_cast<double>(e.end - e.start);
    if (e.start < from &&
        (work == ApiClass::kWait ||
         (work == ApiClass::kCopy && time >= table::kBlockingUs * kMicrosecond))) {
      waited = true;
    }
    if (work == ApiClass::kAllocate) {
      allocating += std::min(e.end, call->start) - std::max(e.start, from);
    }
  });
  if (static_cast<double>(allocating) > length / 2) return Cause::kAllocation;
  const auto late = static_cast<double>(call->start - from);
  if (static_cast<double>(call->end - call->start) >= table::kLoadingUs * kMicrosecond &&
      static_cast<double>(call->end - call->start) > late) {
    return static_cast<ApiClass>(call->detail) == ApiClass::kCopy ? Cause::kCopy : Cause::kLoading;
  }
  if (late < table::kShortGapUs * kMicrosecond) {
    return waited ? Cause::kSynchronisation : Cause::kLaunch;
  }
  if (is_large_copy(before, 2) && is_large_copy(&next, 1)) return Cause::kCpuFallback;
  if (next.kind == Event::kCopy && next.detail == 1) return Cause::kInput;
  return Cause::kHost;
}

class Sweep {
 public:
  Sweep(const ProcessRecord& record, uint32_t device, GapFigures* figures)
      : record_(record), device_(device), figures_(*figures) {}

  void window(const WindowRow& w, uint64_t first, uint64_t last) {
    std::vector<const EventRow*> work;
    for (const EventRow& e : w.events) {
      if (e.is_work() && on_device(e)) work.push_back(&e);
    }
    if (work.size() < 2) return;
    // Before the first and after the last work of a window nothing is known.
    first = std::max({first, w.first, work.front()->start});
    last = std::min({last, w.cut ? work.back()->start : w.last, work.back()->start});
    if (last <= first) return;
    const Calls calls(w);
    figures_.covered += last - first;
    figures_.waited += calls.waited(first, last);
    uint64_t any_until = first;        // everything up to here is looked at
    uint64_t kernels_until = first;    // the same for kernels alone
    const EventRow* before = nullptr;  // what ended last
    for (const EventRow* e : work) {
      if (e->start > last) break;
      if (e->start > any_until) {
        const Cause cause = cause_of(calls, before, *e, std::max(any_until, first));
        add(cause, e->start - any_until);
      }
      if (e->kind == Event::kKernel) {
        // Between the kernels there were copies where there was no gap.
        const uint64_t from = std::max(kernels_until, first);
        const uint64_t to = std::min(e->end, last);
        const uint64_t start = std::max(e->start, from);
        if (to > start) figures_.kernels += to - start;
        kernels_until = std::max(kernels_until, e->end);
      }
      if (e->end > any_until) {
        any_until = e->end;
        before = e;
      }
    }
  }

  /// What is neither kernels nor gaps were copies alone.
  void close() {
    uint64_t known = figures_.kernels;
    for (const uint64_t ns : figures_.idle) known += ns;
    if (figures_.covered > known) {
      figures_.idle[static_cast<size_t>(Cause::kCopy)] += figures_.covered - known;
    }
    settle_waits();
  }

 private:
  bool on_device(const EventRow& e) const {
    return e.place < record_.lanes.size() ? record_.lanes[e.place].device == device_ : device_ == 0;
  }
  /// After a wait the queue is empty, so that the next kernels come late too. Launching is to blame
  /// only for what would be left without waits: the host's own time beyond that of the kernels.
  void settle_waits() {
    uint64_t& launch = figures_.idle[static_cast<size_t>(Cause::kLaunch)];
    uint64_t& wait = figures_.idle[static_cast<size_t>(Cause::kSynchronisation)];
    if (wait == 0) return;
    const uint64_t others = figures_.total_idle() - launch - wait;
    const auto left = static_cast<int64_t>(figures_.covered) -
                      static_cast<int64_t>(figures_.waited + figures_.kernels + others);
    const uint64_t own = std::min(launch, static_cast<uint64_t>(std::max<int64_t>(left, 0)));
    wait += launch - own;
    launch = own;
  }
  void add(Cause cause, uint64_t ns) {
    figures_.idle[static_cast<size_t>(cause)] += ns;
    ++figures_.count[static_cast<size_t>(cause)];
  }
  const ProcessRecord& record_;
  const uint32_t device_;
  GapFigures& figures_;
};

}  // namespace

GapFigures explain_gaps(const ProcessRecord& record, uint32_t device, uint64_t first,
                        uint64_t last) {
  GapFigures figures;
  Sweep sweep(record, device, &figures);
  for (const WindowRow& w : record.windows) sweep.window(w, first, last);
  if (figures.covered == 0) {
    figures.steady = false;
    for (const WindowRow& w : record.windows) sweep.window(w, 0, ~uint64_t{0});
  }
  sweep.close();
  return figures;
}

}  // namespace tracefire::inject
