// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/event.h"
#include "core/base/thread_pool.h"
#include "event_schema.h"

namespace tracefire {
namespace {

template <class Fn>
void run_on(ThreadPool& pool, int64_t n, int64_t grain, Fn fn) {
  pool.run(
      n, grain, [](void* f, int64_t begin, int64_t end) { (*static_cast<Fn*>(f))(begin, end); },
      &fn);
}

TEST_CASE("a loop covers every index once [threads]") {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t n : {1, 2, 7, 64, 1000}) {
      for (int64_t grain : {1, 3, 1000}) {
        CAPTURE(threads);
        CAPTURE(n);
        CAPTURE(grain);
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        std::atomic<bool> small{false};
        run_on(pool, n, grain, [&](int64_t begin, int64_t end) {
          if (end - begin < grain && end != n) small = true;
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        int64_t wrong = 0;
        for (std::atomic<int>& count : seen) wrong += count != 1;
        CHECK(wrong == 0);
        CHECK_FALSE(small);
      }
    }
    run_on(pool, 0, 1, [](int64_t, int64_t) { FAIL("nothing to do"); });
  }
}

TEST_CASE("other threads take chunks while the caller is busy [threads]") {
  ThreadPool pool(2);
  std::atomic<bool> helped{false};
  std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 3; ++round) {  // the first round starts the worker
    helped = false;
    run_on(pool, 2, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != caller) {
        helped = true;
        return;
      }
      auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      while (!helped && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
  }
  CHECK(helped);
}

TEST_CASE("a loop inside a loop runs where it is [threads]") {
  ThreadPool pool(4);
  std::atomic<int64_t> total{0};
  std::atomic<bool> moved{false};
  CHECK_FALSE(in_parallel_region());
  run_on(pool, 64, 1, [&](int64_t begin, int64_t end) {
    if (!in_parallel_region()) moved = true;
    std::thread::id here = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      run_on(pool, 100, 1, [&](int64_t b, int64_t e) {
        if (std::this_thread::get_id() != here || e - b != 100) moved = true;
        total += e - b;
      });
    }
  });
  CHECK(total == 6400);
  CHECK_FALSE(moved);
  CHECK_FALSE(in_parallel_region());
}

TEST_CASE("loops of many callers run side by side [threads]") {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        int64_t sum = 0;
        std::atomic<int64_t> mine{0};
        run_on(pool, 50, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) mine += i;
        });
        sum = mine;
        total += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(total == 6 * 200 * (49 * 50 / 2));
}

TEST_CASE("the child of a fork has a pool of its own") {
  std::atomic<int64_t> before{0};
  parallel_for(100, 1, [&](int64_t begin, int64_t end) { before += end - begin; });
  CHECK(before == 100);
  pid_t child = fork();
  if (child == 0) {
    std::atomic<int64_t> sum{0};
    parallel_for(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    _exit(sum == 1000 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(usable_cores() >= 1);
}

TEST_CASE("events reach those who subscribe, until they unsubscribe") {
  Events& events = Events::instance();
  bool active_before = events.active();
  std::vector<uint64_t> repeats;
  std::vector<uint64_t> bytes;
  std::vector<std::string> devices;
  Events::Subscriber subscriber;
  subscriber.run = [&](const RunEvent& e) { repeats.push_back(e.repeats); };
  subscriber.copy = [&](const CopyEvent& e) { bytes.push_back(e.bytes); };
  subscriber.synchronize = [&](Device d) { devices.push_back(d.str()); };
  int id = events.subscribe(subscriber);
  CHECK(events.active());
  RunEvent run;
  run.repeats = 64;
  events.publish(run);
  events.publish(CopyEvent{CopyKind::kHostToDevice, 12, "test"});
  events.publish_synchronize(Device{Device::kGpu, 0}, 0);
  events.unsubscribe(id);
  events.publish(run);
  CHECK(events.active() == active_before);
  CHECK(repeats == std::vector<uint64_t>{64});
  CHECK(bytes == std::vector<uint64_t>{12});
  CHECK(devices == std::vector<std::string>{"/GPU:0"});
  events.unsubscribe(id);  // once more: nothing happens
}

TEST_CASE("a subscriber may unsubscribe itself") {
  Events& events = Events::instance();
  int calls = 0, id = 0;
  Events::Subscriber subscriber;
  subscriber.synchronize = [&](Device) {
    ++calls;
    events.unsubscribe(id);
  };
  id = events.subscribe(subscriber);
  events.publish_synchronize({}, 0);
  events.publish_synchronize({}, 0);
  CHECK(calls == 1);
}

TEST_CASE("after unsubscribing, no thread is inside the callback [threads]") {
  Events& events = Events::instance();
  const bool active_before = events.active();  // the proof listens all the time
  std::atomic<bool> stop{false};
  std::vector<std::thread> publishers;
  for (int i = 0; i < 3; ++i) {
    publishers.emplace_back([&] {
      while (!stop) events.publish_synchronize({}, 0);
    });
  }
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_unique<std::atomic<int64_t>>(0);
    Events::Subscriber subscriber;
    subscriber.synchronize = [counter = alive.get()](Device) { ++*counter; };
    int id = events.subscribe(subscriber);
    while (*alive == 0) std::this_thread::yield();
    events.unsubscribe(id);
    alive.reset();  // a late callback would touch freed memory
  }
  stop = true;
  for (std::thread& publisher : publishers) publisher.join();
  CHECK(events.active() == active_before);
}

TEST_CASE("triggers have the names of the schema") {
  CHECK(std::string(trigger_name(Trigger::kObserved)) == "observed");
  CHECK(std::string(trigger_name(Trigger::kNodeLimit)) == "node_limit");
  CHECK(std::string(trigger_name(Trigger::kByteLimit)) == "byte_limit");
  CHECK(std::string(trigger_name(Trigger::kCall)) == "call");
  CHECK(std::string(trigger_name(Trigger::kScopeEnd)) == "scope_end");
  CHECK(std::string(trigger_name(Trigger::kExit)) == "exit");
  CHECK(std::string(trigger_name(Trigger::kPlacementLog)) == "placement_log");
  CHECK(std::string(trigger_name(Trigger::kCpuClock)) == "cpu_clock");
  CHECK(std::string(kCopyKindNames[static_cast<int>(CopyKind::kSlotRelocation)]) ==
        "slot_relocation");
}

}  // namespace
}  // namespace tracefire
