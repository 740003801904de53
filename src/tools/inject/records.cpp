// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/records.h"

#include <algorithm>
#include <cstring>

namespace tracefire::inject {
namespace {

constexpr uint64_t kLatest = uint64_t{1} << 62;  // of any time; sums of two stay in range
constexpr size_t kMaxEvents = size_t{8} << 20;

/// Takes numbers and texts off a piece of memory; after the first that is not there, all are zero
/// and `good` is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  int64_t signed_number() {
    const uint64_t value = number();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  /// A number that must not be above `most`.
  uint64_t number(uint64_t most) {
    const uint64_t value = number();
    return value <= most ? value : fail();
  }
  std::string text(size_t most) {
    const uint64_t length = number();
    if (length > most || length > rest_.size()) {
      fail();
      return "";
    }
    std::string value(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return value;
  }
  std::string_view bytes(uint64_t length) {
    if (length > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }
  bool empty() const { return rest_.empty(); }
  bool good() const { return good_; }

 private:
  uint64_t fail() {
    good_ = false;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool good_ = true;
};

uint32_t fixed32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

void add_damage(std::string& damage, const std::string& text) {
  if (damage.size() < 4000) damage += (damage.empty() ? "" : "; ") + text;
}

template <class... Numbers>
void read_numbers(Reader& in, Numbers&... numbers) {
  ((numbers = static_cast<std::remove_reference_t<Numbers>>(in.number())), ...);
}

void read_process(Reader& in, ProcessRecord& r) {
  read_numbers(in, r.pid, r.parent);
  r.host = in.text(256);
  r.executable = in.text(4096);
  r.command = in.text(4096);
  r.rank = static_cast<int64_t>(in.number(1 << 24)) - 1;
  r.ranks = static_cast<int64_t>(in.number(1 << 24)) - 1;
  r.local_rank = static_cast<int64_t>(in.number(1 << 24)) - 1;
}

void read_trace(Reader& in, ProcessRecord& r) {
  const uint64_t state = in.number(static_cast<uint64_t>(TraceState::kFailed));
  r.state = state == 0 ? TraceState::kFailed : static_cast<TraceState>(state);
  read_numbers(in, r.cupti_version, r.driver_version);
  r.library = in.text(4096);
  r.detail = in.text(4096);
  r.by_node = in.number(1) == 1;
  r.window_limit = in.number();
}

void read_clock(Reader& in, ProcessRecord& r) {
  for (ClockReading* c : {&r.first, &r.now}) {
    c->cupti = in.number(kLatest);
    c->real = in.number(kLatest);
    c->monotonic = in.number(kLatest);
  }
  r.clean_end = in.number(1) == 1;
  r.cpu = in.number(kLatest);
  r.resident_peak = in.number(kLatest);
}

void read_device(Reader& in, ProcessRecord& r) {
  DeviceRow d;
  d.id = static_cast<uint32_t>(in.number(kMaxDevices - 1));
  d.name = in.text(256);
  d.uuid = in.text(64);
  read_numbers(in, d.major, d.minor, d.multiprocessors, d.memory, d.bandwidth_kbs, d.core_khz);
  if (in.good() && r.devices.size() < kMaxDevices) r.devices.push_back(std::move(d));
}

void read_names(Reader& in, ProcessRecord& r) {
  const uint64_t count = in.number(kMaxNames);
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    NameRow n;
    in.number(i);  // rows come in order
    n.name = in.text(kMaxNameBytes);
    read_numbers(in, n.count, n.total, n.least, n.most, n.blocks, n.threads, n.of_graph, n.devices);
    n.total = std::min(n.total, kLatest);
    r.names.push_back(std::move(n));
  }
}

void read_copies(Reader& in, ProcessRecord& r) {
  const uint64_t count = in.number(kMaxCopyKinds);
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    CopyRow c;
    c.kind = static_cast<int>(in.number(255));
    c.source = static_cast<int>(in.number(255));
    c.destination = static_cast<int>(in.number(255));
    read_numbers(in, c.count, c.bytes, c.total, c.most, c.async_count);
    c.total = std::min(c.total, kLatest);
    r.copy_rows.push_back(c);
  }
}

void read_apis(Reader& in, ProcessRecord& r) {
  const uint64_t count = in.number(kMaxApis);
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    ApiRow a;
    a.work = static_cast<ApiClass>(in.number(kApiClasses - 1));
    a.runtime = in.number(1) == 1;
    a.number = static_cast<uint32_t>(in.number(UINT16_MAX));
    read_numbers(in, a.count, a.total, a.most);
    a.total = std::min(a.total, kLatest);
    r.api_rows.push_back(a);
  }
}

void read_memory(Reader& in, ProcessRecord& r) {
  const uint64_t count = in.number(kMaxDevices * 8);
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    MemoryRow m;
    read_numbers(in, m.device, m.kind, m.now, m.peak, m.count);
    r.memory_rows.push_back(m);
  }
}

void read_host_time(Reader& in, ProcessRecord& r) {
  r.part_ns = in.number(kLatest / kBuckets);
  const uint64_t count = in.number(kBuckets);
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    HostPart p;
    for (uint64_t* field : {&p.launches, &p.launch, &p.wait, &p.copy, &p.cpu}) {
      *field = in.number(kLatest);
    }
    r.host_parts.push_back(p);
  }
}

void read_gpu_time(Reader& in, ProcessRecord& r) {
  const auto device = static_cast<uint32_t>(in.number(kMaxDevices - 1));
  const uint64_t part = in.number(kLatest / kBuckets);
  if (r.part_ns == 0) r.part_ns = part;
  const uint64_t count = in.number(kBuckets);
  std::vector<GpuPart> parts;
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    GpuPart p;
    for (uint64_t* field :
         {&p.busy, &p.compute, &p.communication, &p.copies, &p.kernels, &p.to_device, &p.to_host}) {
      *field = in.number(kLatest);
    }
    parts.push_back(p);
  }
  if (in.good()) r.gpu_parts[device] = std::move(parts);
}

void read_windows(Reader& in, ProcessRecord& r) {
  const uint64_t count = in.number(kMaxWindows);
  r.windows.clear();
  for (uint64_t i = 0; i < count && in.good(); ++i) {
    WindowRow w;
    in.number();
    w.first = in.number(kLatest);
    w.last = in.number(kLatest);
    w.events_written = in.number();
    w.cut = in.number(1) == 1;
    r.windows.push_back(w);
  }
}

bool read_section(Section tag, Reader& in, ProcessRecord& r) {
  switch (tag) {
    case Section::kProcess:
      read_process(in, r);
      break;
    case Section::kTrace:
      read_trace(in, r);
      break;
    case Section::kClock:
      read_clock(in, r);
      break;
    case Section::kCounts:
      read_numbers(in, r.kernels, r.copies, r.sets, r.calls, r.timeless, r.dropped, r.unknown,
                   r.buffers_out, r.buffers_most, r.buffers_refused, r.events, r.events_cut);
      if (!in.empty()) r.window_bytes = in.number();
      break;
    case Section::kDevice:
      read_device(in, r);
      break;
    case Section::kNames:
      r.names.clear();
      read_names(in, r);
      break;
    case Section::kCopies:
      r.copy_rows.clear();
      read_copies(in, r);
      break;
    case Section::kApis:
      r.api_rows.clear();
      read_apis(in, r);
      break;
    case Section::kMemory:
      r.memory_rows.clear();
      read_memory(in, r);
      break;
    case Section::kHostTime:
      r.host_parts.clear();
      read_host_time(in, r);
      break;
    case Section::kGpuTime:
      read_gpu_time(in, r);
      break;
    case Section::kWindows:
      read_windows(in, r);
      break;
    default:
      return true;  // of a later version
  }
  return in.good();
}

/// Reads the events of one chunk, whose sum was right. False where they make no sense.
bool read_chunk(std::string_view payload, uint64_t base, WindowRow& window, ProcessRecord& r,
                size_t* room) {
  Reader in(payload);
  uint64_t start = base;
  uint32_t correlation = 0;
  while (!in.empty() && *room > 0) {
    const auto kind = static_cast<Event>(in.number(static_cast<uint64_t>(Event::kThread)));
    if (kind == Event::kLane) {
      const uint64_t lane = in.number(kMaxLanes - 1);
      LaneRow row;
      read_numbers(in, row.device, row.context, row.stream);
      if (!in.good() || lane == 0) return false;
      if (r.lanes.size() <= lane) r.lanes.resize(lane + 1);
      r.lanes[lane] = row;
      continue;
    }
    if (kind == Event::kThread) {
      const uint64_t thread = in.number(kMaxThreads - 1);
      const auto id = static_cast<uint32_t>(in.number(UINT32_MAX));
      if (!in.good() || thread == 0) return false;
      if (r.thread_ids.size() <= thread) r.thread_ids.resize(thread + 1);
      r.thread_ids[thread] = id;
      continue;
    }
    EventRow e;
    e.kind = kind;
    start += static_cast<uint64_t>(in.signed_number());
    e.start = start;
    e.end = start + in.number(kLatest);
    if (start > kLatest || kind < Event::kKernel) return false;
    if (kind == Event::kKernel) e.name = static_cast<uint16_t>(in.number(kMaxNames - 1));
    e.place = static_cast<uint16_t>(in.number(kMaxLanes - 1));
    correlation += static_cast<uint32_t>(in.signed_number());
    e.correlation = correlation;
    if (kind == Event::kKernel) {
      e.detail = static_cast<uint8_t>(in.number(1));
    } else if (kind == Event::kCopy) {
      e.detail = static_cast<uint8_t>(in.number(255));
      e.source = static_cast<uint8_t>(in.number(255));
      e.destination = static_cast<uint8_t>(in.number(255));
      e.bytes = in.number();
      in.number(1);
    } else if (kind == Event::kSet) {
      e.bytes = in.number();
    } else {
      e.detail = static_cast<uint8_t>(in.number(kApiClasses - 1));
    }
    if (!in.good()) return false;
    window.events.push_back(e);
    --*room;
  }
  return in.good();
}

}  // namespace

Result<ProcessRecord> parse_snapshot(std::string_view bytes) {
  const auto damaged = [](const auto&... why) {
    return error(ErrorCode::kBadFile, "not a whole snapshot: ", why...);
  };
  if (bytes.size() < kSnapshotHeaderBytes || bytes.size() > kMaxSnapshotBytes) {
    return damaged(bytes.size(), " bytes; expected ", kSnapshotHeaderBytes, " to ",
                   kMaxSnapshotBytes);
  }
  if (std::memcmp(bytes.data(), kSnapshotMagic, sizeof(kSnapshotMagic)) != 0) {
    return damaged("it does not begin with ", std::string_view(kSnapshotMagic, 8));
  }
  if (fixed32(bytes, 8) != kFormatVersion) {
    return damaged("version ", fixed32(bytes, 8), "; expected ", kFormatVersion);
  }
  const std::string_view body = bytes.substr(kSnapshotHeaderBytes);
  if (fixed32(bytes, 12) != body.size()) {
    return damaged("its length is ", body.size(), "; its header says ", fixed32(bytes, 12));
  }
  if (fixed32(bytes, 16) != crc32(body.data(), body.size())) return damaged("wrong check sum");
  ProcessRecord record;
  Reader in(body);
  while (!in.empty()) {
    const uint64_t tag = in.number();
    Reader section(in.bytes(in.number()));
    if (!in.good()) return damaged("a section is longer than the file");
    if (tag > 255) continue;
    if (!read_section(static_cast<Section>(tag), section, record)) {
      return damaged("section ", tag, " is beyond its bounds");
    }
  }
  record.now.cupti = std::max(record.now.cupti, record.first.cupti);
  return record;
}

void parse_windows(std::string_view bytes, ProcessRecord& record) {
  size_t room = kMaxEvents;
  while (!bytes.empty()) {
    if (bytes.size() < kChunkHeaderBytes ||
        (fixed32(bytes, 0) != kChunkMagic && fixed32(bytes, 0) != kOldChunkMagic) ||
        fixed32(bytes, 4) > kMaxChunkBytes ||
        fixed32(bytes, 4) > bytes.size() - kChunkHeaderBytes) {
      add_damage(record.damage, "the window file ends in a torn chunk");
      break;
    }
    const std::string_view payload = bytes.substr(kChunkHeaderBytes, fixed32(bytes, 4));
    const uint32_t index = fixed32(bytes, 12);
    uint64_t base = 0;
    std::memcpy(&base, bytes.data() + 16, sizeof(base));
    const size_t summed = fixed32(bytes, 0) == kChunkMagic ? kChunkSummed : kChunkHeaderBytes;
    const size_t length = kChunkHeaderBytes + payload.size() - summed;
    if (fixed32(bytes, 8) != crc32(bytes.data() + summed, length) || index >= kMaxWindows ||
        base > kLatest) {
      add_damage(record.damage, "a chunk of the window file has a wrong check sum");
      break;
    }
    // A killed process may have begun a window that its last snapshot does not know yet.
    while (record.windows.size() <= index) {
      WindowRow fresh;
      fresh.first = base;
      fresh.last = record.now.cupti;
      record.windows.push_back(fresh);
    }
    if (!read_chunk(payload, base, record.windows[index], record, &room)) {
      add_damage(record.damage, "a chunk of the window file makes no sense");
      break;
    }
    bytes.remove_prefix(kChunkHeaderBytes + payload.size());
  }
  if (room == 0) add_damage(record.damage, "only the first 8 million events were read");
  for (WindowRow& w : record.windows) {
    std::stable_sort(w.events.begin(), w.events.end(),
                     [](const EventRow& a, const EventRow& b) { return a.start < b.start; });
  }
}

}  // namespace tracefire::inject
