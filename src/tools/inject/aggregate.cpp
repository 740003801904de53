// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/aggregate.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "tools/inject/api_class.h"

namespace tracefire::inject {
namespace {

constexpr uint64_t kSecond = 1000000000;
constexpr uint64_t kFirstBucket = kSecond / 10;
constexpr uint8_t kAllWork = 1, kCompute = 2, kCommunication = 4, kCopies = 8;

bool is_communication(const char* name) {
  return std::strstr(name, "ncclDevKernel") != nullptr ||
         std::strstr(name, "ncclKernel") != nullptr;
}

uint32_t hash_of(const char* text, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<uint8_t>(text[i])) * 16777619u;
  return hash;
}

}  // namespace

Aggregate* Aggregate::create(uint64_t window_limit, ChunkSink sink, void* context) {
  void* memory = mmap(nullptr, sizeof(Aggregate), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* made = new (memory) Aggregate;  // the pages are zero already
  made->window_limit_ = window_limit;
  made->sink_ = sink;
  made->sink_context_ = context;
  made->bucket_ns_ = kFirstBucket;
  made->add_name("other kernels", 13);
  made->lane_count_ = 1;
  made->thread_count_ = 1;
  return made;
}

void Aggregate::destroy(Aggregate* made) { munmap(made, sizeof(Aggregate)); }

void Aggregate::start(const ProcessFacts& process, const Clocks& clocks) {
  process_ = process;
  first_ = now_ = clocks;
  last_cpu_ = clocks.cpu;
  last_cpu_at_ = clocks.cupti;
  // The first window begins with the run; what is delivered later may have begun a little earlier.
  window_open_ = window_limit_ > 0;
  window_first_ = clocks.cupti;
  window_last_ = ~uint64_t{0};
  window_budget_ = window_limit_ / 4;
  window_hard_ = window_limit_ / 4 + window_limit_ / 8;
  window_count_ = window_open_ ? 1 : 0;
  windows_[0] = {window_first_, window_last_, 0, false};
}

void Aggregate::set_trace(const TraceFacts& facts) { trace_ = facts; }

void Aggregate::count_buffers(uint64_t out, uint64_t most, uint64_t refused, uint64_t dropped) {
  out_ = out;
  most_out_ = most;
  refused_ = refused;
  dropped_ = dropped;
}

void Aggregate::begin_buffer(uint64_t now) {
  now_.cupti = std::max(now_.cupti, now);
  interval_count_ = 0;
}

void Aggregate::end_buffer() {
  merge_intervals();
  close_chunk();
}

void Aggregate::record(const void* record) {
  switch (*static_cast<const uint32_t*>(record)) {
    case kActivityKernel:
    case kActivityConcurrentKernel:
      return kernel(*static_cast<const KernelRecord*>(record));
    case kActivityMemcpy: {
      const auto& r = *static_cast<const MemcpyRecord*>(record);
      return copy(r, r.correlation, r.device);
    }
    case kActivityMemcpyPeer: {
      const auto& r = *static_cast<const MemcpyPeerRecord*>(record);
      return copy(*static_cast<const MemcpyRecord*>(record), r.correlation, r.device);
    }
    case kActivityMemset:
      return set(*static_cast<const MemsetRecord*>(record));
    case kActivityDriver:
    case kActivityRuntime:
      return call(*static_cast<const ApiRecord*>(record));
    case kActivityMemory:
      return memory(*static_cast<const MemoryRecord*>(record));
    case kActivityDevice:
      return device(*static_cast<const DeviceRecord*>(record));
    case kActivityGraphTrace:
      return graph(*static_cast<const GraphTraceRecord*>(record));
    default:
      ++unknown_;
  }
}

/// Records of work that had not ended when its buffer was taken have no times.
bool Aggregate::plausible(uint64_t start, uint64_t end) {
  if (start != 0 && end >= start && end <= now_.cupti + 60 * kSecond &&
      start + 60 * kSecond >= first_.cupti) {
    return true;
  }
  ++timeless_;
  return false;
}

void Aggregate::kernel(const KernelRecord& r) {
  ++kernels_;
  const int id = intern(r.name == nullptr ? "" : r.name);
  Name& name = names_[id];
  const bool of_graph = r.graph != 0 || r.graph_node != 0;
  ++name.count;
  name.graph_count += of_graph ? 1 : 0;
  name.devices |= 1u << std::min<uint32_t>(r.device, kMaxDevices - 1);
  uint64_t blocks = 1;
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    blocks *= static_cast<uint32_t>(std::max(r.grid[i], 1));
    threads *= static_cast<uint32_t>(std::max(r.block[i], 1));
  }
  name.blocks += std::min<uint64_t>(blocks, uint64_t{1} << 40);
  name.threads += std::min<uint64_t>(threads, 4096);
  if (!plausible(r.start, r.end)) return;
  const uint64_t time = r.end - r.start;
  name.least = name.total == 0 && name.most == 0 ? time : std::min(name.least, time);
  name.total += time;
  name.most = std::max(name.most, time);
  interval(r.device, r.start, r.end, kAllWork | (name.communication ? kCommunication : kCompute));
  if (r.device < kMaxDevices) ++devices_[r.device].buckets[bucket(r.start)].kernels;
  if (!wanted(r.start)) return;
  const int l = lane(r.device, r.context, r.stream);
  event(Event::kKernel, r.start, r.end);
  Packer out(chunk_, kMaxChunkBytes);
  out.cut_to(chunk_size_);
  out.number(static_cast<uint64_t>(id));
  out.number(static_cast<uint64_t>(l));
  chunk_size_ = out.size();
  correlate(r.correlation);
  chunk_[chunk_size_++] = of_graph ? 1 : 0;
  event_done();
}

void Aggregate::copy(const MemcpyRecord& r, uint32_t correlation, uint32_t on) {
  ++copies_;
  Copy* row = nullptr;
  for (int i = 0; i < copy_count_ && row == nullptr; ++i) {
    Copy& c = copies_table_[i];
    if (c.kind == r.copy_kind && c.source == r.source_kind && c.destination == r.destination_kind) {
      row = &c;
    }
  }
  if (row == nullptr) {
    row = &copies_table_[copy_count_ < kMaxCopyKinds ? copy_count_++ : kMaxCopyKinds - 1];
    row->kind = r.copy_kind;
    row->source = r.source_kind;
    row->destination = r.destination_kind;
  }
  ++row->count;
  row->bytes += r.bytes;
  row->async_count += r.flags & 1;
  if (!plausible(r.start, r.end)) return;
  row->total += r.end - r.start;
  row->most = std::max(row->most, r.end - r.start);
  interval(on, r.start, r.end, kAllWork | kCopies);
  if (on < kMaxDevices) {
    GpuBucket& b = devices_[on].buckets[bucket(r.start)];
    if (r.copy_kind == 1 || r.copy_kind == 3) b.to_device += r.bytes;
    if (r.copy_kind == 2 || r.copy_kind == 4) b.to_host += r.bytes;
  }
  if (!wanted(r.start)) return;
  const int l = lane(on, r.context, r.stream);
  event(Event::kCopy, r.start, r.end);
  Packer out(chunk_, kMaxChunkBytes);
  out.cut_to(chunk_size_);
  out.number(static_cast<uint64_t>(l));
  chunk_size_ = out.size();
  correlate(correlation);
  out.cut_to(chunk_size_);
  out.number(r.copy_kind);
  out.number(r.source_kind);
  out.number(r.destination_kind);
  out.number(r.bytes);
  out.number(r.flags & 1);
  chunk_size_ = out.size();
  event_done();
}

void Aggregate::set(const MemsetRecord& r) {
  ++sets_;
  if (!plausible(r.start, r.end)) return;
  interval(r.device, r.start, r.end, kAllWork | kCopies);
  if (!wanted(r.start)) return;
  const int l = lane(r.device, r.context, r.stream);
  event(Event::kSet, r.start, r.end);
  Packer out(chunk_, kMaxChunkBytes);
  out.cut_to(chunk_size_);
  out.number(static_cast<uint64_t>(l));
  chunk_size_ = out.size();
  correlate(r.correlation);
  out.cut_to(chunk_size_);
  out.number(r.bytes);
  chunk_size_ = out.size();
  event_done();
}

void Aggregate::call(const ApiRecord& r) {
  const bool runtime = r.kind == kActivityRuntime;
  const int work = api_class(runtime, r.number);
  if (work == 0) return;
  ++calls_;
  Api* row = nullptr;
  for (int i = 0; i < api_count_ && row == nullptr; ++i) {
    if (apis_[i].number == r.number && apis_[i].runtime == runtime) row = &apis_[i];
  }
  if (row == nullptr) {
    row = &apis_[api_count_ < kMaxApis ? api_count_++ : kMaxApis - 1];
    row->number = static_cast<uint16_t>(r.number);
    row->runtime = runtime;
    row->work = static_cast<uint8_t>(work);
  }
  ++row->count;
  if (!plausible(r.start, r.end)) return;
  row->total += r.end - r.start;
  row->most = std::max(row->most, r.end - r.start);
  switch (static_cast<ApiClass>(work)) {
    case ApiClass::kLaunch:
    case ApiClass::kGraphLaunch:
      ++host_[bucket(r.start)].launches;
      spread_host(r.start, r.end, &HostBucket::launch);
      break;
    case ApiClass::kWait:
      spread_host(r.start, r.end, &HostBucket::wait);
      break;
    case ApiClass::kCopy:
      spread_host(r.start, r.end, &HostBucket::copy);
      break;
    default:
      break;
  }
  if (!wanted(r.start)) return;
  const int t = thread(r.thread);
  event(Event::kCall, r.start, r.end);
  Packer out(chunk_, kMaxChunkBytes);
  out.cut_to(chunk_size_);
  out.number(static_cast<uint64_t>(t));
  chunk_size_ = out.size();
  correlate(r.correlation);
  chunk_[chunk_size_++] = static_cast<uint8_t>(work);
  event_done();
}

void Aggregate::memory(const MemoryRecord& r) {
  if (r.device >= kMaxDevices) return;
  Memory* row = nullptr;
  for (Memory& m : devices_[r.device].kinds) {
    if (m.count == 0 || m.kind == r.memory_kind) {
      row = &m;
      break;
    }
  }
  if (row == nullptr) return;
  devices_[r.device].seen = true;
  row->kind = r.memory_kind;
  if (r.operation == 1) {
    ++row->count;
    row->now += r.bytes;
    row->peak = std::max(row->peak, row->now);
  } else if (r.operation == 2) {
    row->now -= std::min(row->now, r.bytes);
  }
}

void Aggregate::device(const DeviceRecord& r) {
  if (r.id >= kMaxDevices) return;
  Device& d = devices_[r.id];
  d.seen = d.described = true;
  if (r.name != nullptr) std::strncpy(d.name, r.name, sizeof(d.name) - 1);
  std::memcpy(d.uuid, r.uuid, sizeof(d.uuid));
  d.major = r.capability_major;
  d.minor = r.capability_minor;
  d.multiprocessors = r.multiprocessors;
  d.khz = r.core_khz;
  d.memory = r.memory;
  d.bandwidth = r.bandwidth;
}

/// A whole graph, where graphs are not traced by node: one piece of work without a name.
void Aggregate::graph(const GraphTraceRecord& r) {
  KernelRecord as_kernel{};
  as_kernel.kind = kActivityConcurrentKernel;
  as_kernel.start = r.start;
  as_kernel.end = r.end;
  as_kernel.device = r.device;
  as_kernel.context = r.context;
  as_kernel.stream = r.stream;
  as_kernel.correlation = r.correlation;
  as_kernel.graph = r.graph == 0 ? 1 : r.graph;
  as_kernel.name = "CUDA graph";
  kernel(as_kernel);
}

void Aggregate::interval(uint32_t on, uint64_t start, uint64_t end, uint8_t mask) {
  if (on >= kMaxDevices) return;
  devices_[on].seen = true;
  newest_gpu_start_ = std::max(newest_gpu_start_, start);
  if (interval_count_ == kMaxIntervals) merge_intervals();
  intervals_[interval_count_++] = {start, end, static_cast<uint8_t>(on), mask};
}

void Aggregate::add_busy(Device& d, int which, uint64_t start, uint64_t end) {
  bucket(end);  // widens first, so that the loop below sees one width
  while (start < end) {
    const int b = bucket(start);
    const uint64_t edge = first_.cupti + (static_cast<uint64_t>(b) + 1) * bucket_ns_;
    const uint64_t stop = std::min(end, edge);
    d.buckets[b].busy[which] += stop - start;
    start = stop;
  }
}

/// Adds the time in which at least one interval lies. Buffers come in any order (several threads
/// deliver them), so what is counted already is kept as a list of spans; only work that lies before
/// the oldest of thousands of them counts no more.
void Aggregate::merge_intervals() {
  std::sort(intervals_, intervals_ + interval_count_,
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  uint32_t devices = 0;
  for (int i = 0; i < interval_count_; ++i) devices |= 1u << intervals_[i].device;
  for (int id = 0; id < kMaxDevices; ++id) {
    if ((devices >> id & 1) == 0) continue;
    Device& d = devices_[id];
    for (int u = 0; u < kUnions; ++u) {
      int fresh = 0;
      for (int i = 0; i < interval_count_; ++i) {
        const Interval& one = intervals_[i];
        if (one.device != id || (one.mask & (1 << u)) == 0) continue;
        const uint64_t start = std::max({one.start, d.floor[u], first_.cupti});
        if (one.end <= start) continue;
        if (fresh > 0 && start <= fresh_[fresh - 1].end) {
          fresh_[fresh - 1].end = std::max(fresh_[fresh - 1].end, one.end);
        } else {
          fresh_[fresh++] = {start, one.end};
        }
      }
      if (fresh > 0) count_spans(d, u, fresh);
    }
  }
  interval_count_ = 0;
}

/// Counts what of the first `fresh` spans of fresh_ is new, and joins both lists.
void Aggregate::count_spans(Device& d, int which, int fresh) {
  Span* known = d.spans[which];
  const int count = d.span_count[which];
  int j = 0;
  for (int i = 0; i < fresh; ++i) {
    uint64_t start = fresh_[i].start;
    const uint64_t end = fresh_[i].end;
    while (start < end) {
      while (j < count && known[j].end <= start) ++j;
      if (j == count || known[j].start >= end) {
        add_busy(d, which, start, end);
        break;
      }
      if (known[j].start > start) add_busy(d, which, start, known[j].start);
      start = known[j].end;
    }
  }
  int merged = 0;
  for (int i = 0, k = 0; i < fresh || k < count;) {
    const bool take_fresh = k == count || (i < fresh && fresh_[i].start < known[k].start);
    const Span next = take_fresh ? fresh_[i++] : known[k++];
    if (merged > 0 && next.start <= merged_[merged - 1].end) {
      merged_[merged - 1].end = std::max(merged_[merged - 1].end, next.end);
    } else {
      merged_[merged++] = next;
    }
  }
  int dropped = 0;
  if (merged > kMaxSpans) {
    dropped = merged - kMaxSpans / 2;
    d.floor[which] = merged_[dropped - 1].end;
  }
  d.span_count[which] = merged - dropped;
  std::memcpy(known, merged_ + dropped, sizeof(Span) * static_cast<size_t>(merged - dropped));
}

int Aggregate::intern(const char* name) {
  const auto address = reinterpret_cast<uintptr_t>(name);
  size_t at = (address >> 3) * 0x9e3779b97f4a7c15ull >> 32 & (kNameSlots - 1);
  NameSlot* slot = &slots_[at];
  for (int tries = 0; tries < 32; ++tries) {
    slot = &slots_[(at + static_cast<size_t>(tries)) & (kNameSlots - 1)];
    if (slot->pointer == nullptr || slot->pointer == name) break;
  }
  const size_t length = strnlen(name, kMaxNameBytes);
  if (slot->pointer == name) {
    // The address may have been given to another name since.
    const Name& known = names_[slot->name];
    if (slot->name == 0) return 0;  // one of those for which there was no room
    if (known.length == length && std::memcmp(arena_ + known.offset, name, length) == 0) {
      return slot->name;
    }
  }
  const uint32_t hash = hash_of(name, length);
  int found = 0;
  for (int i = 1; i < name_count_ && found == 0; ++i) {
    if (names_[i].hash == hash && names_[i].length == length &&
        std::memcmp(arena_ + names_[i].offset, name, length) == 0) {
      found = i;
    }
  }
  if (found == 0) found = add_name(name, length);
  slot->pointer = name;
  slot->name = static_cast<uint16_t>(found);
  return found;
}

/// 0, the name of all others, once the table is full.
int Aggregate::add_name(const char* name, size_t length) {
  if (name_count_ == kMaxNames || kArena - arena_used_ < length + 1) return 0;
  Name& made = names_[name_count_];
  made.offset = static_cast<uint32_t>(arena_used_);
  made.length = static_cast<uint32_t>(length);
  made.hash = hash_of(name, length);
  std::memcpy(arena_ + arena_used_, name, length);
  arena_[arena_used_ + length] = '\0';
  made.communication = is_communication(arena_ + arena_used_);
  arena_used_ += length + 1;
  return name_count_++;
}

int Aggregate::bucket(uint64_t time) {
  const uint64_t since = time > first_.cupti ? time - first_.cupti : 0;
  while (since / bucket_ns_ >= kBuckets) widen();
  return static_cast<int>(since / bucket_ns_);
}

template <class Bucket>
static void halve(Bucket* buckets) {
  // A bucket is a row of uint64_t.
  constexpr size_t kFields = sizeof(Bucket) / sizeof(uint64_t);
  auto* numbers = reinterpret_cast<uint64_t*>(buckets);
  for (size_t b = 0; b < kBuckets / 2; ++b) {
    for (size_t f = 0; f < kFields; ++f) {
      numbers[b * kFields + f] = numbers[2 * b * kFields + f] + numbers[(2 * b + 1) * kFields + f];
    }
  }
  std::memset(static_cast<void*>(buckets + kBuckets / 2), 0, sizeof(Bucket) * kBuckets / 2);
}

void Aggregate::widen() {
  halve(host_);
  for (Device& d : devices_) {
    if (d.seen) halve(d.buckets);
  }
  bucket_ns_ *= 2;
}

void Aggregate::spread_host(uint64_t start, uint64_t end, uint64_t HostBucket::*field) {
  start = std::max(start, first_.cupti);
  bucket(end);
  while (start < end) {
    const int b = bucket(start);
    const uint64_t edge = first_.cupti + (static_cast<uint64_t>(b) + 1) * bucket_ns_;
    const uint64_t stop = std::min(end, edge);
    host_[b].*field += stop - start;
    start = stop;
  }
}

}  // namespace tracefire::inject
