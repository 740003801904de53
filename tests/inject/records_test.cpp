// SPDX-License-Identifier: Apache-2.0
// What the recorder writes is what the reader reads, to the last number; and any bytes at all give
// a record within its bounds or an error.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "inject/record_maker.h"

namespace tracefire::inject {

using test::RecordMaker;

TEST_CASE("inject: totals and windows survive writing and reading") {
  RecordMaker maker;
  maker.device("Emulated GPU");
  maker.call(211, 100, 110, 1);
  maker.kernel("gemm_a", 200, 500, 1);
  maker.call(41, 520, 530, 2);
  maker.copy(1, 1, 3, 4096, 540, 640, 2);
  maker.kernel("gemm_a", 700, 750, 3);
  maker.kernel("add_b", 800, 1000, 4);
  maker.finish(2000);
  const ProcessRecord r = maker.read();
  CHECK(r.pid == 42);
  CHECK(r.rank == 1);
  CHECK(r.ranks == 4);
  CHECK(r.local_rank == -1);
  CHECK(r.command == "python train.py");
  CHECK(r.clean_end);
  CHECK(r.kernels == 3);
  CHECK(r.copies == 1);
  CHECK(r.calls == 2);
  REQUIRE(r.names.size() == 3);
  CHECK(r.names[1].name == "gemm_a");
  CHECK(r.names[1].count == 2);
  CHECK(r.names[1].total == 350);
  CHECK(r.names[1].least == 50);
  CHECK(r.names[1].most == 300);
  CHECK(r.names[1].blocks == 2 * 128);
  CHECK(r.names[2].name == "add_b");
  REQUIRE(r.copy_rows.size() == 1);
  CHECK(r.copy_rows[0].bytes == 4096);
  CHECK(r.copy_rows[0].total == 100);
  REQUIRE(r.api_rows.size() == 2);
  REQUIRE(r.devices.size() == 1);
  CHECK(r.devices[0].multiprocessors == 132);
  REQUIRE(r.windows.size() == 1);
  const std::vector<EventRow>& events = r.windows[0].events;
  REQUIRE(events.size() == 6);
  CHECK(events[0].kind == Event::kCall);
  CHECK(events[1].start == RecordMaker::kOrigin + 200);
  CHECK(events[1].end == RecordMaker::kOrigin + 500);
  CHECK(events[1].correlation == 1);
  CHECK(r.names[events[1].name].name == "gemm_a");
  CHECK(events[3].bytes == 4096);
  CHECK(events[3].detail == 1);
  CHECK(r.damage.empty());
}

TEST_CASE(
    "inject: busy time is the union of overlapping work, as a slow count of every ns has it") {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    RecordMaker maker;
    std::vector<bool> any(20000), compute(20000), copies(20000);
    std::vector<std::pair<int, int>> work;
    for (int i = 0; i < 60; ++i) {
      const int start = static_cast<int>(random() % 15000);
      work.emplace_back(start, start + static_cast<int>(random() % 1500));
    }
    for (size_t i = 0; i < work.size(); ++i) {
      const auto [start, end] = work[i];
      const bool is_copy = i % 3 == 0;
      for (int t = start; t < end; ++t) {
        any[static_cast<size_t>(t)] = true;
        (is_copy ? copies : compute)[static_cast<size_t>(t)] = true;
      }
      if (is_copy) {
        maker.copy(2, 3, 2, 1, start, end, 0);
      } else {
        maker.kernel("k", start, end, 0);
      }
      if (random() % 5 == 0) maker.deliver(20000);  // the buffers are in no order
    }
    maker.finish(30000);
    const ProcessRecord r = maker.read();
    GpuPart sum;
    for (const GpuPart& p : r.gpu_parts.at(0)) {
      sum.busy += p.busy;
      sum.compute += p.compute;
      sum.copies += p.copies;
    }
    const auto count = [](const std::vector<bool>& v) {
      return static_cast<uint64_t>(std::count(v.begin(), v.end(), true));
    };
    CHECK(sum.busy == count(any));
    CHECK(sum.compute == count(compute));
    CHECK(sum.copies == count(copies));
  }
}

TEST_CASE("inject: buffers may come in any order") {
  std::mt19937 random(11);
  for (int round = 0; round < 10; ++round) {
    std::vector<int> order;
    for (int i = 0; i < 200; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    RecordMaker maker;
    for (const int i : order) {  // 50 kernels back to back in each buffer
      for (int k = 0; k < 50; ++k) {
        maker.kernel("k", i * 50000 + k * 1000, i * 50000 + k * 1000 + 900, 0);
      }
      maker.deliver(10000000);
    }
    maker.finish(10000000);
    const ProcessRecord r = maker.read();
    uint64_t busy = 0;
    for (const GpuPart& p : r.gpu_parts.at(0)) busy += p.compute;
    // Of 10,000 spans some are forgotten on the way; in order, none would be.
    CHECK(busy <= 200u * 50 * 900);
    CHECK(busy > 200u * 50 * 900 * 8 / 10);
  }
}

TEST_CASE("inject: a run that outgrows its time line keeps its sums") {
  RecordMaker maker;
  constexpr int64_t kSecond = 1000000000;
  for (int i = 0; i < 600; ++i) {  // ten minutes, one kernel of 0.3 s a second
    maker.kernel("k", i * kSecond, i * kSecond + 300000000, 0);
    maker.call(211, i * kSecond, i * kSecond + 1000, 0);
    maker.deliver((i + 1) * kSecond);
  }
  maker.finish(600 * kSecond);
  const ProcessRecord r = maker.read();
  uint64_t busy = 0;
  uint64_t kernels = 0;
  uint64_t launches = 0;
  for (const GpuPart& p : r.gpu_parts.at(0)) {
    busy += p.busy;
    kernels += p.kernels;
  }
  for (const HostPart& p : r.host_parts) launches += p.launches;
  CHECK(busy == 600ull * 300000000);
  CHECK(kernels == 600);
  CHECK(launches == 600);
  CHECK(r.host_parts.size() <= static_cast<size_t>(kBuckets));
  CHECK(r.part_ns == 800000000);  // 0.1 s, doubled three times
}

TEST_CASE("inject: windows stay within their limit and cover the run") {
  RecordMaker maker(100000);
  constexpr int64_t kBeat = 250000000;
  int64_t now = 0;
  for (int beat = 0; beat < 4000; ++beat) {  // 1000 s, 400 kernels a second
    for (int i = 0; i < 100; ++i) {
      maker.kernel("k", now + i * 2000000, now + i * 2000000 + 1000000, 0);
    }
    now += kBeat;
    maker.deliver(now);
  }
  maker.finish(now);
  CHECK(maker.window_bytes().size() < 150000);
  const ProcessRecord r = maker.read();
  CHECK(r.kernels == 400000);
  CHECK(r.windows.size() > 3);
  CHECK(r.windows.back().first > RecordMaker::kOrigin + static_cast<uint64_t>(now) / 4);
  for (const WindowRow& w : r.windows) {
    for (const EventRow& e : w.events) {
      REQUIRE(e.start >= w.first);
      REQUIRE(e.start <= w.last);
    }
  }
}

TEST_CASE("inject: more kernel names than there is room for share one row") {
  RecordMaker maker(0);
  std::vector<std::string> names;
  for (int i = 0; i < kMaxNames + 500; ++i) names.push_back("kernel_" + std::to_string(i));
  for (size_t i = 0; i < names.size(); ++i) {
    maker.kernel(names[i].c_str(), static_cast<int64_t>(i) * 10, static_cast<int64_t>(i) * 10 + 5,
                 0);
  }
  maker.finish(1000000);
  const ProcessRecord r = maker.read();
  CHECK(r.names.size() == kMaxNames);
  CHECK(r.names[0].count == 501);
  uint64_t all = 0;
  for (const NameRow& n : r.names) all += n.count;
  CHECK(all == names.size());
}

TEST_CASE("inject: work without times is counted, not timed") {
  RecordMaker maker;
  maker.kernel("k", 1000, 500, 0);  // its end was not known when the buffer was taken
  maker.kernel("k", 1000, 2000, 0);
  maker.finish(3000);
  const ProcessRecord r = maker.read();
  CHECK(r.kernels == 2);
  CHECK(r.timeless == 1);
  CHECK(r.names[1].total == 1000);
}

TEST_CASE("inject: damaged files are refused or read as far as they are whole") {
  RecordMaker maker;
  for (int i = 0; i < 50; ++i) {
    maker.call(211, i * 100, i * 100 + 10, static_cast<uint32_t>(i));
    maker.kernel(i % 2 == 0 ? "a" : "b", i * 100 + 20, i * 100 + 80, static_cast<uint32_t>(i));
    if (i % 10 == 9) maker.deliver(i * 100 + 100);
  }
  maker.finish(10000);
  const std::string snapshot = maker.snapshot_bytes();
  const std::string windows = maker.window_bytes();
  for (size_t length = 0; length < snapshot.size(); ++length) {
    CHECK(!parse_snapshot(snapshot.substr(0, length)).ok());
  }
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = snapshot;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (bytes == snapshot) continue;
    const bool read = parse_snapshot(bytes).ok();
    // The check sum finds it, so give the reader itself something to do.
    const uint32_t sum =
        crc32(bytes.data() + kSnapshotHeaderBytes, bytes.size() - kSnapshotHeaderBytes);
    std::memcpy(bytes.data() + 16, &sum, sizeof(sum));
    const Result<ProcessRecord> lax = parse_snapshot(bytes);
    CHECK_FALSE(read);
    if (!lax.ok()) CHECK(lax.status().code() == ErrorCode::kBadFile);
  }
  const ProcessRecord whole = maker.read();
  size_t events = 0;
  for (const WindowRow& w : whole.windows) events += w.events.size();
  CHECK(events == 100);
  for (size_t length = 0; length < windows.size(); length += 7) {
    ProcessRecord r = *parse_snapshot(snapshot);
    parse_windows(windows.substr(0, length), r);
    size_t some = 0;
    for (const WindowRow& w : r.windows) some += w.events.size();
    CHECK(some <= events);
    CHECK((some % 20 == 0));  // whole chunks only
  }
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = windows;
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + 4, 4);
    if (length <= bytes.size() - kChunkHeaderBytes) {
      const uint32_t sum =
          crc32(bytes.data() + kChunkSummed, kChunkHeaderBytes - kChunkSummed + length);
      std::memcpy(bytes.data() + 8, &sum, sizeof(sum));
    }
    ProcessRecord r = *parse_snapshot(snapshot);
    parse_windows(bytes, r);
    CHECK(r.windows.size() <= static_cast<size_t>(kMaxWindows));
  }
}

}  // namespace tracefire::inject
