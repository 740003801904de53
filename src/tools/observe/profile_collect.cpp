// SPDX-License-Identifier: Apache-2.0
#include "tools/observe/profile_collect.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace tracefire::profiler {
namespace {

constexpr size_t kMostPrograms = 256;
constexpr size_t kMostRows = 4096;
constexpr size_t kMostSpans = 256;
constexpr size_t kMostPoints = 4096;
constexpr size_t kMostHolders = 512;
constexpr size_t kShownHolders = 16;
constexpr const char* kVarious = "(various)";

double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }

uint32_t thread_number() {
  thread_local const auto number = static_cast<uint32_t>(gettid());
  return number;
}

}  // namespace

void Histogram::add(int64_t ns) {
  ns = std::max<int64_t>(ns, 1);
  // Eight buckets an octave.
  const auto bucket = static_cast<size_t>(8 * std::log2(static_cast<double>(ns)));
  ++buckets_[std::min(bucket, buckets_.size() - 1)];
  ++count_;
  sum_ns_ += static_cast<double>(ns);
}

void Histogram::add(const Histogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
}

double Histogram::quantile_us(double q) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(q * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted && seen > 0) return std::exp2((static_cast<double>(i) + 0.5) / 8) / 1e3;
  }
  return 0;
}

Durations Histogram::durations() const {
  Durations out;
  if (count_ == 0) return out;
  out.count = count_;
  out.total_us = sum_ns_ / 1e3;
  out.mean_us = out.total_us / static_cast<double>(count_);
  out.p50_us = quantile_us(0.5);
  out.p99_us = quantile_us(0.99);
  return out;
}

void MemoryLine::add(const MemoryEvent& event, int64_t at_ns) {
  if (!event.taken) {
    keep_peak();
    const auto found = live_.find(event.block);
    if (found != live_.end()) {
      const auto holder = holders_.find(found->second);
      holder->second -= std::min(holder->second, event.bytes);
      live_.erase(found);
    }
  } else {
    if (event.in_use > peak_) {
      peak_ = event.in_use;
      peak_at_ns_ = at_ns;
      peak_open_ = true;
    }
    std::string what(event.what.empty() ? std::string_view("(unnamed)") : event.what);
    if (holders_.size() >= kMostHolders && holders_.count(what) == 0) what = kVarious;
    holders_[what] += event.bytes;
    live_[event.block] = std::move(what);
  }
  points_.emplace_back(at_ns, event.in_use);
  if (points_.size() < 2 * kMostPoints) return;
  // The higher of two neighbours stays, so that no peak is lost.
  for (size_t i = 0; i < kMostPoints; ++i) {
    points_[i] =
        points_[2 * i].second > points_[2 * i + 1].second ? points_[2 * i] : points_[2 * i + 1];
  }
  points_.resize(kMostPoints);
  thinned_ = true;
}

void MemoryLine::keep_peak() {
  if (!peak_open_) return;
  peak_open_ = false;
  at_peak_.clear();
  uint64_t known = 0;
  for (const auto& [what, bytes] : holders_) {
    if (bytes > 0) at_peak_.emplace_back(what, bytes);
    known += bytes;
  }
  if (peak_ > known) at_peak_.emplace_back("(before the profile)", peak_ - known);
  std::stable_sort(at_peak_.begin(), at_peak_.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (at_peak_.size() <= kShownHolders) return;
  uint64_t rest = 0;
  for (size_t i = kShownHolders; i < at_peak_.size(); ++i) rest += at_peak_[i].second;
  at_peak_.resize(kShownHolders);
  at_peak_.emplace_back("(others)", rest);
}

Profile::Memory MemoryLine::result(const std::string& device, int64_t start_ns) {
  keep_peak();
  Profile::Memory out;
  out.device = device;
  out.peak = peak_;
  out.peak_at_us = us(peak_at_ns_ - start_ns);
  out.holders = at_peak_;
  for (const auto& [at, bytes] : points_) out.points.push_back({us(at - start_ns), bytes});
  return out;
}

Collector::Collector(const Options& options)
    : options_(options), start_ns_(Events::now_ns()), started_(std::time(nullptr)) {
  Events::Subscriber subscriber;
  subscriber.run = [this](const RunEvent& event) { add(event); };
  subscriber.wait = [this](const WaitEvent& event) { add(event); };
  subscriber.span = [this](const SpanEvent& event) { add(event); };
  if (options.memory) subscriber.memory = [this](const MemoryEvent& event) { add(event); };
  subscriber.step_times = options.step_times;
  subscription_ = Events::instance().subscribe(std::move(subscriber));
}

Collector::~Collector() { close(); }

void Collector::close() {
  if (subscription_ < 0) return;
  Events::instance().unsubscribe(subscription_);
  subscription_ = -1;
  end_ns_ = Events::now_ns();
}

uint32_t Collector::number_of(const std::string& name) {
  return names_.emplace(name, static_cast<uint32_t>(names_.size())).first->second;
}

void Collector::slice(const std::string& name, SliceKind kind, int64_t start, int64_t span,
                      uint64_t executions) {
  first_ns_ = first_ns_ == 0 ? start : std::min(first_ns_, start);
  last_ns_ = std::max(last_ns_, start + span);
  // Operations leave room for what they lie in.
  const size_t most =
      kind == SliceKind::kOperation ? options_.max_events / 4 * 3 : options_.max_events;
  if (slices_.size() >= most) {
    ++slices_left_out_;
    return;
  }
  slices_.push_back({number_of(name), kind, thread_number(), start - start_ns_, span, executions});
}

Collector::Entry& Collector::find(const StepRecord& step) {
  Key key{step.op, step.name, step.device, step.kernel, step.location, step.kernel_symbols};
  auto found = rows_.find(key);
  if (found != rows_.end()) return found->second;
  const bool full = rows_.size() >= kMostRows;
  if (full) {
    rows_full_ = true;
    key = {step.op, kVarious, step.device, kVarious, "", {}};
    found = rows_.find(key);
    if (found != rows_.end()) return found->second;
  }
  Entry& entry = rows_[key];
  entry.row.op = step.op;
  entry.row.name = std::get<1>(key);
  entry.row.device = step.device.str();
  entry.row.kernel = std::get<3>(key);
  entry.row.library = full ? kVarious : step.library;
  entry.row.location = std::get<4>(key);
  if (!full) entry.row.symbols = step.kernel_symbols;
  return entry;
}

Collector::Rows& Collector::rows_of(const RunEvent& event) {
  auto found = programs_.find(event.work.get());
  if (found != programs_.end()) return found->second;
  if (programs_.size() >= kMostPrograms) programs_.clear();  // their rows stay
  Rows& rows = programs_[event.work.get()];
  rows.held = {event.program, event.work};
  for (const StepRecord& step : event.program->steps) {
    rows.entries.push_back(step.kernel.empty() ? nullptr : &find(step));
  }
  const bool known = program_rows_.count(event.program->name) != 0;
  const bool full = program_rows_.size() >= kMostPrograms && !known;
  rows.program = &program_rows_[full ? kVarious : event.program->name];
  return rows;
}

void Collector::add(const RunEvent& event) {
  if (!event.program || !event.work) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Rows& rows = rows_of(event);
  const size_t steps = rows.entries.size();
  ++rows.program->records;
  rows.program->executions += event.repeats;
  rows.program->graph_launches += event.graph_launches;
  rows.program->host_us += us(event.host_ns);
  const auto count_run = [&](size_t i) {
    Entry* entry = rows.entries[i];
    if (entry == nullptr) return;
    const auto runs = static_cast<double>(event.repeats);
    entry->row.runs += event.repeats;
    entry->row.flops += runs * (*event.work)[i].flops;
    entry->row.bytes += runs * (*event.work)[i].bytes;
  };
  if (event.steps.empty()) {
    for (size_t i = 0; i < steps; ++i) count_run(i);
  } else {
    for (int32_t i : event.steps) count_run(static_cast<size_t>(i));
  }
  slice(event.program->name.empty() ? "program" : event.program->name, SliceKind::kProgram,
        event.start_ns, event.host_ns, event.repeats);
  if (steps == 0 || event.step_ns.empty()) return;
  // Measured executions lie one behind the other at the end of the record.
  int64_t sum = 0;
  for (int64_t ns : event.step_ns) sum += ns;
  int64_t at = event.start_ns + std::max<int64_t>(event.host_ns - sum, 0);
  for (size_t k = 0; k < event.step_ns.size(); ++k) {
    Entry* entry = rows.entries[k % steps];
    if (entry != nullptr) {
      entry->times.add(event.step_ns[k]);
      (event.sampled ? entry->sampled : entry->measured) = true;
      slice(entry->row.op, SliceKind::kOperation, at, event.step_ns[k], 1);
    }
    at += event.step_ns[k];
  }
}

void Collector::add(const WaitEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++waits_;
  wait_ns_ += event.wait_ns;
  slice("wait for " + event.device.str(), SliceKind::kWait, event.start_ns, event.wait_ns, 1);
}

void Collector::add(const SpanEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto key = std::make_pair(event.kind, event.name);
  if (spans_.size() >= kMostSpans && spans_.count(key) == 0) key.second = kVarious;
  SpanEntry& entry = spans_[key];
  entry.time.add(event.span_ns);
  if (event.kind == SpanKind::kInput) {
    input_ns_ += event.span_ns;
    input_since_step_ += event.span_ns;
  }
  if (event.kind == SpanKind::kStep) {
    if (entry.last_end_ns != 0 && event.start_ns >= entry.last_end_ns) {
      const int64_t gap = event.start_ns - entry.last_end_ns;
      entry.between.add(gap);
      between_ns_ += std::max<int64_t>(gap - input_since_step_, 0);
    }
    entry.last_end_ns = event.start_ns + event.span_ns;
    input_since_step_ = 0;
  }
  slice(event.step < 0 ? event.name : concat_text(event.name, ' ', event.step),
        event.kind == SpanKind::kStep    ? SliceKind::kStep
        : event.kind == SpanKind::kInput ? SliceKind::kInput
                                         : SliceKind::kAnnotation,
        event.start_ns, event.span_ns, 1);
}

void Collector::add(const MemoryEvent& event) {
  const int64_t now = Events::now_ns();
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_[event.device].add(event, now);
}

}  // namespace tracefire::profiler
