// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "tools/inject/op_records.h"
#include "tools/inject/record_format.h"

namespace tracefire::inject {

// What record_format.h describes, as values. Texts are as they were written: they come from
// outside and pass escape.h on their way to a person. Times are ns of CUPTI's clock.

struct NameRow {
  std::string name;  ///< mangled
  uint64_t count = 0, total = 0, least = 0, most = 0, blocks = 0, threads = 0, of_graph = 0;
  uint64_t devices = 0;  ///< bit mask
};
struct CopyRow {
  int kind = 0, source = 0, destination = 0;
  uint64_t count = 0, bytes = 0, total = 0, most = 0, async_count = 0;
};
struct ApiRow {
  ApiClass work = ApiClass::kLaunch;
  bool runtime = false;
  uint32_t number = 0;
  uint64_t count = 0, total = 0, most = 0;
};
struct MemoryRow {
  uint32_t device = 0, kind = 0;
  uint64_t now = 0, peak = 0, count = 0;
};
struct DeviceRow {
  uint32_t id = 0;
  std::string name, uuid;
  uint32_t major = 0, minor = 0, multiprocessors = 0;
  uint64_t memory = 0, bandwidth_kbs = 0, core_khz = 0;
};
struct HostPart {
  uint64_t launches = 0, launch = 0, wait = 0, copy = 0, cpu = 0;
};
struct GpuPart {
  uint64_t busy = 0, compute = 0, communication = 0, copies = 0, kernels = 0, to_device = 0,
           to_host = 0;
};
struct LaneRow {
  uint32_t device = 0, context = 0, stream = 0;
};

/// One event of a window.
struct EventRow {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t bytes = 0;        ///< of copies and sets
  uint32_t correlation = 0;  ///< joins work and the call that began it
  uint16_t place = 0;        ///< lane of work, thread of a call
  uint16_t name = 0;         ///< of a kernel
  Event kind = Event::kKernel;
  uint8_t detail = 0;  ///< copy kind, ApiClass, or 1 for a kernel of a graph
  uint8_t source = 0;  ///< memory kinds of a copy
  uint8_t destination = 0;
  bool is_work() const { return kind != Event::kCall; }
};

struct WindowRow {
  uint64_t first = 0, last = 0;
  uint64_t events_written = 0;
  bool cut = false;              ///< it ends with holes
  std::vector<EventRow> events;  ///< by start
};

struct ClockReading {
  uint64_t cupti = 0, real = 0, monotonic = 0;
};

/// All that one process left.
struct ProcessRecord {
  uint32_t pid = 0, parent = 0;
  int64_t rank = -1, ranks = -1, local_rank = -1;
  std::string host, executable, command;
  TraceState state = TraceState::kFailed;
  uint32_t cupti_version = 0, driver_version = 0;
  std::string library, detail;
  bool by_node = true;
  uint64_t window_limit = 0;
  ClockReading first, now;
  bool clean_end = false;
  uint64_t cpu = 0, resident_peak = 0;
  uint64_t kernels = 0, copies = 0, sets = 0, calls = 0, timeless = 0, dropped = 0, unknown = 0,
           buffers_out = 0, buffers_most = 0, buffers_refused = 0, events = 0, events_cut = 0,
           window_bytes = 0;  ///< of the window file; 0 where it is not told
  std::vector<DeviceRow> devices;
  std::vector<NameRow> names;
  std::vector<CopyRow> copy_rows;
  std::vector<ApiRow> api_rows;
  std::vector<MemoryRow> memory_rows;
  uint64_t part_ns = 0;  ///< length of a part of the time line
  std::vector<HostPart> host_parts;
  std::map<uint32_t, std::vector<GpuPart>> gpu_parts;  ///< by device
  std::vector<WindowRow> windows;
  std::vector<LaneRow> lanes;            ///< 0: all that had no room
  std::vector<uint32_t> thread_ids;      ///< 0: the same
  std::shared_ptr<const OpRecords> ops;  ///< of Tracefire's executor; null for other programs
  bool idle_tracefire = false;           ///< Tracefire was loaded and ran no operation
  std::string damage;                    ///< what could not be read; empty where all could
};

/// Reads a snapshot. Any bytes may come: the answer is a record within the bounds of
/// record_format.h, or kBadFile.
Result<ProcessRecord> parse_snapshot(std::string_view bytes);

/// Adds the events of a window file to `record`. Stops at the first chunk that is not whole and
/// says so in ProcessRecord::damage.
void parse_windows(std::string_view bytes, ProcessRecord& record);

/// Files of a folder that are lost, a line each.
struct Damage {
  std::vector<std::string> traces;      ///< of what the driver did: work on a GPU may be unknown
  std::vector<std::string> operations;  ///< of Tracefire's executor: work on the CPU may be unknown
  bool empty() const { return traces.empty() && operations.empty(); }
  std::string str() const;  ///< all lines, parted by semicolons
};

/// All processes of a folder, by start; those that ran Tracefire's operations without CUDA too.
/// `damage` gets a line for each file that is no record, and for each that a process began and that
/// is not there. Errors: kFileNotFound.
Result<std::vector<ProcessRecord>> read_records(const std::string& folder, Damage* damage);

}  // namespace tracefire::inject
