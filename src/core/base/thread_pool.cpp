// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/settings.h"

namespace tracefire {
namespace {

thread_local bool in_chunk = false;

/// A loop that is running; lives on its caller's stack. `helpers` keeps it alive: the caller takes
/// the loop off the list and then waits until no worker is inside.
struct Loop {
  ThreadPool::Body body;
  void* context;
  int64_t n;
  int64_t chunk;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers{0};  // workers inside; goes up only under the pool's mutex

  bool has_work() const { return next.load(std::memory_order_relaxed) < n; }

  void take_chunks() {
    in_chunk = true;
    while (true) {
      int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= n) break;
      body(context, begin, std::min(begin + chunk, n));
    }
    in_chunk = false;
  }
};

/// Waits for a moment (some 20 us) until `done`, before a thread goes to sleep: waking a thread
/// takes longer than many loops.
template <class Done>
bool spin_until(Done done) {
  for (int i = 0; i < 500; ++i) {
    if (done()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return done();
}

int quota_cores(int cores) {
  double quota = 0, period = 0;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (!(v2 >> quota >> period)) {  // "max 100000" fails too: there is no quota
    std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    std::ifstream p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (!(q >> quota) || !(p >> period)) return cores;
  }
  if (quota <= 0 || period <= 0) return cores;
  return std::clamp(static_cast<int>(quota / period + 0.5), 1, cores);
}

}  // namespace

bool in_parallel_region() { return in_chunk; }

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0
                  ? CPU_COUNT(&set)
                  : static_cast<int>(std::thread::hardware_concurrency());
  return quota_cores(std::max(1, cores));
}

struct ThreadPool::State {
  explicit State(int count) : threads(count) {}

  const int threads;
  Mutex mutex;
  CondVar wake;  // workers: a loop was added, or stop
  CondVar left;  // callers: a worker has left a loop
  std::list<Loop*> loops TF_GUARDED_BY(mutex);
  std::vector<std::thread> workers TF_GUARDED_BY(mutex);
  int sleeping TF_GUARDED_BY(mutex) = 0;
  std::atomic<uint64_t> posted{0};  // loops added so far; goes up only under the mutex
  bool stop TF_GUARDED_BY(mutex) = false;

  Loop* find_work() TF_REQUIRES(mutex) {
    for (Loop* loop : loops) {
      if (loop->has_work()) return loop;
    }
    return nullptr;
  }

  void work() {
    mutex.lock();
    while (!stop) {
      Loop* loop = find_work();
      if (!loop) {
        uint64_t seen = posted.load(std::memory_order_relaxed);
        mutex.unlock();
        bool more = spin_until([&] { return posted.load(std::memory_order_relaxed) != seen; });
        mutex.lock();
        if (more || stop || posted.load(std::memory_order_relaxed) != seen) continue;
        ++sleeping;
        wake.wait(mutex);
        --sleeping;
        continue;
      }
      loop->helpers.fetch_add(1, std::memory_order_relaxed);
      mutex.unlock();
      loop->take_chunks();
      mutex.lock();
      if (loop->helpers.fetch_sub(1, std::memory_order_release) == 1) left.notify_all();
    }
    mutex.unlock();
  }

  void start_workers() TF_REQUIRES(mutex) {
    try {
      while (static_cast<int>(workers.size()) < threads - 1) {
        workers.emplace_back([this] { work(); });
      }
    } catch (const std::system_error&) {
      // The system gives no more threads; the loop is done by those that there are.
    }
  }
};

namespace {

std::atomic<ThreadPool*>& process_pool() {
  static std::atomic<ThreadPool*> pool{nullptr};
  return pool;
}

/// The child of a fork has the parent's pool but none of its threads, and its mutex in an unknown
/// state: it forgets the pool, on purpose without freeing it, and makes a new one when needed.
void forget_pool_in_child() {
  process_pool().store(nullptr);
  in_chunk = false;
}

}  // namespace

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(std::max(1, threads))) {}

ThreadPool::~ThreadPool() {
  std::vector<std::thread> workers;
  {
    MutexLock lock(state_->mutex);
    state_->stop = true;
    workers.swap(state_->workers);
  }
  state_->wake.notify_all();
  for (std::thread& worker : workers) worker.join();
}

ThreadPool& ThreadPool::instance() {
  std::atomic<ThreadPool*>& pool = process_pool();
  if (ThreadPool* existing = pool.load(std::memory_order_acquire)) return *existing;
  static const int registered = pthread_atfork(nullptr, nullptr, forget_pool_in_child);
  (void)registered;
  int64_t wanted = settings::threads();
  auto* made = new ThreadPool(wanted > 0 ? static_cast<int>(wanted) : usable_cores());
  ThreadPool* expected = nullptr;
  if (pool.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) return *made;
  delete made;  // another thread was faster; this one has not started workers yet
  return *expected;
}

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::run(int64_t n, int64_t grain, Body body, void* context) {
  if (n <= 0) return;
  State& s = *state_;
  // Four chunks a thread: a thread that is held up keeps the others waiting for a quarter at most.
  int64_t chunk = std::max<int64_t>({1, grain, n / (int64_t{4} * s.threads)});
  if (s.threads == 1 || in_chunk || chunk >= n) return body(context, 0, n);

  Loop loop{body, context, n, chunk};
  std::list<Loop*> entry = {&loop};
  int64_t helpers = std::min<int64_t>(s.threads - 1, (n + chunk - 1) / chunk - 1);
  {
    MutexLock lock(s.mutex);
    if (static_cast<int>(s.workers.size()) < s.threads - 1) s.start_workers();
    s.loops.splice(s.loops.end(), entry);
    s.posted.fetch_add(1, std::memory_order_relaxed);
    helpers = std::min<int64_t>(helpers, s.sleeping);
  }
  for (int64_t i = 0; i < helpers; ++i) s.wake.notify_one();
  loop.take_chunks();
  {
    MutexLock lock(s.mutex);
    s.loops.remove(&loop);
  }
  auto alone = [&loop] { return loop.helpers.load(std::memory_order_acquire) == 0; };
  if (spin_until(alone)) return;
  MutexLock lock(s.mutex);
  while (!alone()) s.left.wait(s.mutex);
}

}  // namespace tracefire
