// SPDX-License-Identifier: Apache-2.0
// Makes records as the injected library does, from a list of work. Times are ns since kOrigin.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/inject/aggregate.h"
#include "tools/inject/records.h"

namespace tracefire::inject::test {

class RecordMaker {
 public:
  static constexpr uint64_t kOrigin = 1700000000000000000;

  RecordMaker(const RecordMaker&) = delete;
  RecordMaker& operator=(const RecordMaker&) = delete;
  ~RecordMaker() { Aggregate::destroy(totals_); }
  explicit RecordMaker(uint64_t window_limit = 1 << 20)
      : totals_(Aggregate::create(window_limit, &take_chunk, &windows_)) {
    ProcessFacts process;
    process.pid = 42;
    process.parent = 7;
    process.rank = 1;
    process.ranks = 4;
    std::snprintf(process.host, sizeof(process.host), "node1");
    std::snprintf(process.command, sizeof(process.command), "python train.py");
    totals_->start(process, clocks(0));
    TraceFacts trace;
    trace.state = TraceState::kTracing;
    totals_->set_trace(trace);
    totals_->begin_buffer(kOrigin);
  }

  void kernel(const char* name, int64_t start, int64_t end, uint32_t correlation,
              uint32_t device = 0, bool of_graph = false) {
    KernelRecord r{};
    r.kind = kActivityConcurrentKernel;
    r.start = at(start);
    r.end = at(end);
    r.device = device;
    r.context = 1;
    r.stream = 7;
    for (int i = 0; i < 3; ++i) {
      r.grid[i] = i == 0 ? 128 : 1;
      r.block[i] = i == 0 ? 256 : 1;
    }
    r.correlation = correlation;
    r.name = name;
    r.graph = of_graph ? 1 : 0;
    totals_->record(&r);
  }
  void copy(uint8_t kind, uint8_t source, uint8_t destination, uint64_t bytes, int64_t start,
            int64_t end, uint32_t correlation) {
    MemcpyRecord r{};
    r.kind = kActivityMemcpy;
    r.copy_kind = kind;
    r.source_kind = source;
    r.destination_kind = destination;
    r.bytes = bytes;
    r.start = at(start);
    r.end = at(end);
    r.context = 1;
    r.stream = 7;
    r.correlation = correlation;
    totals_->record(&r);
  }
  /// A call of the CUDA runtime: 211 launches, 41 copies, 131 waits for a stream, 20 allocates.
  void call(uint32_t number, int64_t start, int64_t end, uint32_t correlation,
            uint32_t thread = 9) {
    ApiRecord r{};
    r.kind = kActivityRuntime;
    r.number = number;
    r.start = at(start);
    r.end = at(end);
    r.thread = thread;
    r.correlation = correlation;
    totals_->record(&r);
  }
  void device(const char* name) {
    DeviceRecord r{};
    r.kind = kActivityDevice;
    r.name = name;
    r.multiprocessors = 132;
    r.memory = uint64_t{141} << 30;
    totals_->record(&r);
  }
  /// A buffer ends here and a beat comes; CPU time is given in ns since the start.
  void deliver(int64_t now, int64_t cpu = 0) {
    totals_->end_buffer();
    Clocks c = clocks(now);
    c.cpu = static_cast<uint64_t>(cpu);
    totals_->beat(c);
    totals_->begin_buffer(at(now));
  }
  void finish(int64_t now, int64_t cpu = 0) {
    totals_->end_buffer();
    Clocks c = clocks(now);
    c.cpu = static_cast<uint64_t>(cpu);
    totals_->finish(c);
  }

  std::string snapshot_bytes() const {
    std::vector<uint8_t> bytes(kMaxSnapshotBytes);
    const size_t size = totals_->snapshot(bytes.data(), bytes.size());
    return {reinterpret_cast<const char*>(bytes.data()), size};
  }
  const std::string& window_bytes() const { return windows_; }
  ProcessRecord read() const {
    Result<ProcessRecord> record = parse_snapshot(snapshot_bytes());
    ProcessRecord r = std::move(record).value();
    parse_windows(windows_, r);
    return r;
  }

 private:
  static uint64_t at(int64_t time) { return kOrigin + static_cast<uint64_t>(time); }
  static Clocks clocks(int64_t time) {
    Clocks c;
    c.cupti = c.real = at(time);
    c.monotonic = static_cast<uint64_t>(time);
    return c;
  }
  static bool take_chunk(void* context, const uint8_t* data, size_t size) {
    static_cast<std::string*>(context)->append(reinterpret_cast<const char*>(data), size);
    return true;
  }

  std::string windows_;
  Aggregate* totals_;
};

}  // namespace tracefire::inject::test
