// SPDX-License-Identifier: Apache-2.0
// The snapshot: all totals as bytes.
#include <algorithm>

#include "tools/inject/aggregate.h"

namespace tracefire::inject {
namespace {

/// Writes a section whose length is known only afterwards: the length has a varint of five bytes.
template <class Fill>
void section(Packer& out, Section tag, Fill fill) {
  out.number(static_cast<uint64_t>(tag));
  const size_t at = out.size();
  if (out.room() < 5) {
    out.number(0);
    out.number(0);
    return;
  }
  out.cut_to(at + 5);
  fill(out);
  const size_t length = out.size() - at - 5;
  for (int i = 0; i < 5; ++i) {
    out.data()[at + static_cast<size_t>(i)] =
        static_cast<uint8_t>((length >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
  }
}

}  // namespace

void Aggregate::pack_process(Packer& out) const {
  section(out, Section::kProcess, [&](Packer& o) {
    o.number(process_.pid);
    o.number(process_.parent);
    o.text(process_.host);
    o.text(process_.executable);
    o.text(process_.command);
    o.number(static_cast<uint64_t>(process_.rank + 1));
    o.number(static_cast<uint64_t>(process_.ranks + 1));
    o.number(static_cast<uint64_t>(process_.local_rank + 1));
  });
  section(out, Section::kTrace, [&](Packer& o) {
    o.number(static_cast<uint64_t>(trace_.state));
    o.number(trace_.cupti_version);
    o.number(trace_.driver_version);
    o.text(trace_.library);
    o.text(trace_.detail);
    o.number(trace_.by_node ? 1 : 0);
    o.number(window_limit_);
  });
}

void Aggregate::pack_counts(Packer& out) const {
  section(out, Section::kClock, [&](Packer& o) {
    for (const Clocks* c : {&first_, &now_}) {
      o.number(c->cupti);
      o.number(c->real);
      o.number(c->monotonic);
    }
    o.number(clean_end_ ? 1 : 0);
    o.number(now_.cpu);
    o.number(now_.resident_peak);
  });
  section(out, Section::kCounts, [&](Packer& o) {
    for (const uint64_t n : {kernels_, copies_, sets_, calls_, timeless_, dropped_, unknown_, out_,
                             most_out_, refused_, events_, events_cut_, written_}) {
      o.number(n);
    }
  });
}

void Aggregate::pack_devices(Packer& out) const {
  for (int id = 0; id < kMaxDevices; ++id) {
    const Device& d = devices_[id];
    if (!d.described) continue;
    section(out, Section::kDevice, [&](Packer& o) {
      o.number(static_cast<uint64_t>(id));
      o.text(d.name);
      o.text(reinterpret_cast<const char*>(d.uuid), sizeof(d.uuid));
      o.number(d.major);
      o.number(d.minor);
      o.number(d.multiprocessors);
      o.number(d.memory);
      o.number(d.bandwidth);
      o.number(d.khz);
    });
  }
}

void Aggregate::pack_tables(Packer& out) const {
  section(out, Section::kNames, [&](Packer& o) {
    o.number(static_cast<uint64_t>(name_count_));
    for (int i = 0; i < name_count_; ++i) {
      const Name& n = names_[i];
      o.number(static_cast<uint64_t>(i));
      o.text(arena_ + n.offset, n.length);
      for (const uint64_t v : {n.count, n.total, n.least, n.most, n.blocks, n.threads,
                               n.graph_count, static_cast<uint64_t>(n.devices)}) {
        o.number(v);
      }
    }
  });
  section(out, Section::kCopies, [&](Packer& o) {
    o.number(static_cast<uint64_t>(copy_count_));
    for (int i = 0; i < copy_count_; ++i) {
      const Copy& c = copies_table_[i];
      for (const uint64_t v : {uint64_t{c.kind}, uint64_t{c.source}, uint64_t{c.destination},
                               c.count, c.bytes, c.total, c.most, c.async_count}) {
        o.number(v);
      }
    }
  });
  section(out, Section::kApis, [&](Packer& o) {
    o.number(static_cast<uint64_t>(api_count_));
    for (int i = 0; i < api_count_; ++i) {
      const Api& a = apis_[i];
      for (const uint64_t v :
           {uint64_t{a.work}, uint64_t{a.runtime}, uint64_t{a.number}, a.count, a.total, a.most}) {
        o.number(v);
      }
    }
  });
}

void Aggregate::pack_memory(Packer& out) const {
  section(out, Section::kMemory, [&](Packer& o) {
    uint64_t rows = 0;
    for (const Device& d : devices_) {
      for (const Memory& m : d.kinds) rows += m.count != 0 ? 1 : 0;
    }
    o.number(rows);
    for (int id = 0; id < kMaxDevices; ++id) {
      for (const Memory& m : devices_[id].kinds) {
        if (m.count == 0) continue;
        for (const uint64_t v :
             {static_cast<uint64_t>(id), uint64_t{m.kind}, m.now, m.peak, m.count}) {
          o.number(v);
        }
      }
    }
  });
}

void Aggregate::pack_time(Packer& out) const {
  const uint64_t elapsed = now_.cupti > first_.cupti ? now_.cupti - first_.cupti : 0;
  const uint64_t used = std::min<uint64_t>(elapsed / bucket_ns_ + 1, kBuckets);
  section(out, Section::kHostTime, [&](Packer& o) {
    o.number(bucket_ns_);
    o.number(used);
    for (uint64_t b = 0; b < used; ++b) {
      const HostBucket& h = host_[b];
      for (const uint64_t v : {h.launches, h.launch, h.wait, h.copy, h.cpu}) o.number(v);
    }
  });
  for (int id = 0; id < kMaxDevices; ++id) {
    const Device& d = devices_[id];
    if (!d.seen) continue;
    section(out, Section::kGpuTime, [&](Packer& o) {
      o.number(static_cast<uint64_t>(id));
      o.number(bucket_ns_);
      o.number(used);
      for (uint64_t b = 0; b < used; ++b) {
        const GpuBucket& g = d.buckets[b];
        for (const uint64_t v : g.busy) o.number(v);
        for (const uint64_t v : {g.kernels, g.to_device, g.to_host}) o.number(v);
      }
    });
  }
  section(out, Section::kWindows, [&](Packer& o) {
    o.number(static_cast<uint64_t>(window_count_));
    for (int i = 0; i < window_count_; ++i) {
      const Window& w = windows_[i];
      o.number(static_cast<uint64_t>(i));
      o.number(w.first);
      o.number(std::min(w.last, now_.cupti));
      o.number(w.events);
      o.number(w.cut ? 1 : 0);
    }
  });
}

size_t Aggregate::snapshot(uint8_t* data, size_t capacity) const {
  Packer out(data, capacity);
  if (capacity < kSnapshotHeaderBytes) return 0;
  out.cut_to(kSnapshotHeaderBytes);
  pack_process(out);
  pack_counts(out);
  pack_devices(out);
  pack_tables(out);
  pack_memory(out);
  pack_time(out);
  if (out.full()) return 0;
  const size_t size = out.size();
  const auto length = static_cast<uint32_t>(size - kSnapshotHeaderBytes);
  const uint32_t sum = crc32(data + kSnapshotHeaderBytes, length);
  std::memcpy(data, kSnapshotMagic, sizeof(kSnapshotMagic));
  std::memcpy(data + 8, &kFormatVersion, 4);
  std::memcpy(data + 12, &length, 4);
  std::memcpy(data + 16, &sum, 4);
  return size;
}

}  // namespace tracefire::inject
