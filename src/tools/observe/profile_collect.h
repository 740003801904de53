// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/event.h"
#include "core/base/status.h"
#include "tracefire/profiler.h"

namespace tracefire::profiler {

/// Durations in buckets an eighth of an octave wide: bounded, right within 5 %.
class Histogram {
 public:
  void add(int64_t ns);
  void add(const Histogram& other);
  Durations durations() const;

 private:
  double quantile_us(double q) const;
  std::array<uint32_t, 320> buckets_{};  ///< up to 2^40 ns
  uint64_t count_ = 0;
  double sum_ns_ = 0;
};

/// Bytes in use on one device over time, and who held them at the peak.
class MemoryLine {
 public:
  void add(const MemoryEvent& event, int64_t at_ns);
  Profile::Memory result(const std::string& device, int64_t start_ns);
  bool thinned() const { return thinned_; }

 private:
  void keep_peak();
  std::unordered_map<const void*, std::string> live_;
  std::map<std::string, uint64_t> holders_;
  uint64_t peak_ = 0;
  int64_t peak_at_ns_ = 0;
  bool peak_open_ = false;  ///< who held the peak has not been noted yet
  std::vector<std::pair<std::string, uint64_t>> at_peak_;
  std::vector<std::pair<int64_t, uint64_t>> points_;
  bool thinned_ = false;
};

/// Listens to the executor's records from its construction to close(). Memory is bounded: by rows,
/// names, slices and points; what is left out is told in Profile::notes.
class Collector {
 public:
  explicit Collector(const Options& options);
  ~Collector();
  void close();
  /// After close().
  Profile result();

 private:
  enum class SliceKind : uint8_t { kProgram, kOperation, kStep, kInput, kAnnotation, kWait };
  struct Slice {
    uint32_t name;
    SliceKind kind;
    uint32_t thread;
    int64_t start_ns, span_ns;
    uint64_t executions;
  };
  struct Entry {
    Profile::Row row;
    Histogram times;
    bool measured = false, sampled = false;
  };
  struct SpanEntry {
    Histogram time, between;
    int64_t last_end_ns = 0;
  };
  /// Where a program's steps are counted, so that a run costs no look-up of texts.
  struct Rows {
    std::pair<std::shared_ptr<const ProgramRecord>, std::shared_ptr<const std::vector<StepWork>>>
        held;
    std::vector<Entry*> entries;  ///< null for steps without a kernel
    Profile::Program* program = nullptr;
  };
  /// Operation, name, device, kernel, location, and the device kernels that it launches.
  using Key = std::tuple<std::string, std::string, Device, std::string, std::string,
                         std::vector<std::string>>;

  void add(const RunEvent& event);
  void add(const WaitEvent& event);
  void add(const SpanEvent& event);
  void add(const MemoryEvent& event);
  Rows& rows_of(const RunEvent& event);
  Entry& find(const StepRecord& step);
  uint32_t number_of(const std::string& name);
  void slice(const std::string& name, SliceKind kind, int64_t start, int64_t span,
             uint64_t executions);
  void add_rows(Profile* out) const;
  void add_spans(Profile* out) const;
  void add_slices(Profile* out) const;
  void add_notes(Profile* out) const;

  const Options options_;
  const int64_t start_ns_;
  const std::time_t started_;
  int64_t end_ns_ = 0;
  int subscription_ = -1;

  std::mutex mutex_;
  std::map<Key, Entry> rows_;
  std::unordered_map<const void*, Rows> programs_;  ///< by the address of their work
  std::map<std::string, Profile::Program> program_rows_;
  std::map<std::pair<SpanKind, std::string>, SpanEntry> spans_;
  std::map<Device, MemoryLine> memory_;
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<Slice> slices_;
  uint64_t slices_left_out_ = 0;
  bool rows_full_ = false;
  int64_t first_ns_ = 0, last_ns_ = 0;  ///< of all records; 0: none
  int64_t input_ns_ = 0, between_ns_ = 0, input_since_step_ = 0;
  uint64_t waits_ = 0;
  int64_t wait_ns_ = 0;
};

}  // namespace tracefire::profiler
