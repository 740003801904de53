// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tools/inject/cupti_api.h"
#include "tools/inject/pack.h"
#include "tools/inject/record_format.h"

namespace tracefire::inject {

/// Who is being traced; texts are copied and cut to the size of their field.
struct ProcessFacts {
  uint32_t pid = 0;
  uint32_t parent = 0;
  int64_t rank = -1;  ///< -1: unknown
  int64_t ranks = -1;
  int64_t local_rank = -1;
  char host[128] = "";
  char executable[512] = "";
  char command[1024] = "";
};

struct TraceFacts {
  TraceState state = TraceState::kFailed;
  uint32_t cupti_version = 0;
  uint32_t driver_version = 0;
  bool by_node = true;  ///< CUDA graphs show each of their nodes
  char library[512] = "";
  char detail[256] = "";
};

/// One reading of the clocks.
struct Clocks {
  uint64_t cupti = 0;
  uint64_t real = 0;
  uint64_t monotonic = 0;
  uint64_t cpu = 0;            ///< CPU time of the process, all threads
  uint64_t resident_peak = 0;  ///< bytes
};

/// Takes chunks of the window file; false once it takes no more.
using ChunkSink = bool (*)(void* context, const uint8_t* data, size_t size);

/// Turns CUPTI's records into totals and windows. Memory is one fixed block that the system fills
/// page by page as it is used; nothing is allocated later and nothing throws, because this runs
/// inside other people's programs. Not thread-safe: the caller holds a lock.
///
/// Windows: single events are kept from the start until a quarter of `window_limit` bytes is full,
/// then in windows at ever longer distances (half of the work so far), each of a twelfth of what is
/// left, so that a run of any length leaves a bounded file that shows beginning, middle and
/// end. An event belongs to a
/// window by its start, whenever it is delivered.
class Aggregate {
 public:
  /// Null where the system gives no memory.
  static Aggregate* create(uint64_t window_limit, ChunkSink sink, void* context);
  static void destroy(Aggregate* made);

  void start(const ProcessFacts& process, const Clocks& clocks);
  void set_trace(const TraceFacts& facts);

  /// Between these two come the records of one buffer.
  void begin_buffer(uint64_t now);
  void end_buffer();
  /// Any record that CUPTI delivers.
  void record(const void* record);

  void count_buffers(uint64_t out, uint64_t most, uint64_t refused, uint64_t dropped);
  /// About four times a second: opens and closes windows.
  void beat(const Clocks& clocks);
  void finish(const Clocks& clocks);

  /// Writes the whole snapshot, header included; its size, 0 where it does not fit.
  size_t snapshot(uint8_t* data, size_t capacity) const;

 private:
  static constexpr int kUnions = 4;  // all work, compute, communication, copies
  static constexpr int kNameSlots = 2 * kMaxNames;
  static constexpr size_t kArena = size_t{4} << 20;
  static constexpr int kMaxIntervals = 8192;
  static constexpr int kMaxSpans = 8192;

  struct Name {
    uint32_t offset, length, hash;
    uint64_t count, total, least, most, blocks, threads, graph_count;
    uint32_t devices;  // bit mask
    bool communication;
  };
  struct NameSlot {
    const char* pointer;
    uint16_t name;
  };
  struct Copy {
    uint8_t kind, source, destination;
    uint64_t count, bytes, total, most, async_count;
  };
  struct Api {
    uint16_t number;
    uint8_t work;
    bool runtime;
    uint64_t count, total, most;
  };
  struct Memory {
    uint32_t kind;
    uint64_t now, peak, count;
  };
  struct HostBucket {
    uint64_t launches, launch, wait, copy, cpu;
  };
  struct GpuBucket {
    uint64_t busy[kUnions];
    uint64_t kernels, to_device, to_host;
  };
  struct Span {
    uint64_t start, end;
  };
  struct Device {
    bool seen, described;
    char name[128];
    uint8_t uuid[16];
    uint32_t major, minor, multiprocessors, khz;
    uint64_t memory, bandwidth;
    int span_count[kUnions];
    uint64_t floor[kUnions];  // what lies before is counted and forgotten
    Memory kinds[8];
    GpuBucket buckets[kBuckets];
    Span spans[kUnions][kMaxSpans];  // counted already: sorted, apart from one another
  };
  struct Lane {
    uint32_t device, context, stream;
  };
  struct Interval {
    uint64_t start, end;
    uint8_t device, mask;  // mask: which unions
  };
  struct Window {
    uint64_t first, last, events;
    bool cut;
  };

  Aggregate() = default;
  void kernel(const KernelRecord& r);
  void copy(const MemcpyRecord& r, uint32_t correlation, uint32_t device);
  void set(const MemsetRecord& r);
  void call(const ApiRecord& r);
  void memory(const MemoryRecord& r);
  void device(const DeviceRecord& r);
  void graph(const GraphTraceRecord& r);
  bool plausible(uint64_t start, uint64_t end);
  void interval(uint32_t device, uint64_t start, uint64_t end, uint8_t mask);
  void merge_intervals();
  void count_spans(Device& d, int which, int fresh);
  void add_busy(Device& d, int which, uint64_t start, uint64_t end);
  int intern(const char* name);
  int add_name(const char* name, size_t length);
  int lane(uint32_t device, uint32_t context, uint32_t stream);
  int thread(uint32_t id);
  int bucket(uint64_t time);
  void spread_host(uint64_t start, uint64_t end, uint64_t HostBucket::*field);
  void widen();
  bool wanted(uint64_t start) const;
  void open_chunk(uint64_t base);
  void close_chunk();
  void event(Event kind, uint64_t start, uint64_t end);
  void correlate(uint32_t correlation);
  void event_done();
  void step_windows(uint64_t now);
  void pack_process(Packer& out) const;
  void pack_counts(Packer& out) const;
  void pack_devices(Packer& out) const;
  void pack_tables(Packer& out) const;
  void pack_memory(Packer& out) const;
  void pack_time(Packer& out) const;

  ProcessFacts process_;
  TraceFacts trace_;
  Clocks first_, now_;
  bool clean_end_;
  uint64_t window_limit_;
  ChunkSink sink_;
  void* sink_context_;

  uint64_t kernels_, copies_, sets_, calls_, timeless_, dropped_, unknown_;
  uint64_t out_, most_out_, refused_, events_, events_cut_;

  int name_count_;
  size_t arena_used_;
  int copy_count_, api_count_, lane_count_, thread_count_, interval_count_;
  uint64_t bucket_ns_, last_cpu_, last_cpu_at_;
  int last_bucket_;

  // The window that is open, if one is.
  bool window_open_;
  int window_count_;
  uint64_t window_first_, window_last_, window_budget_, window_hard_, window_bytes_, window_ended_,
      work_at_end_;
  uint64_t written_, newest_gpu_start_;
  bool sink_failed_, chunk_open_;
  uint64_t previous_start_;
  uint32_t previous_correlation_;
  size_t event_begin_;
  size_t chunk_size_;

  Window windows_[kMaxWindows];
  Name names_[kMaxNames];
  NameSlot slots_[kNameSlots];
  Copy copies_table_[kMaxCopyKinds];
  Api apis_[kMaxApis];
  Lane lanes_[kMaxLanes];
  uint32_t threads_[kMaxThreads];
  HostBucket host_[kBuckets];
  Interval intervals_[kMaxIntervals];
  Span fresh_[kMaxIntervals];
  Span merged_[kMaxSpans + kMaxIntervals];
  Device devices_[kMaxDevices];
  uint8_t chunk_[kMaxChunkBytes];
  char arena_[kArena];
};

}  // namespace tracefire::inject
