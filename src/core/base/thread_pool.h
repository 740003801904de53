// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tracefire {

/// A few threads that share out loops. The caller works too and takes chunks as they become free,
/// so a worker that wakes up late costs nothing: nobody waits for threads, only for chunks that
/// have begun. Thread-safe: loops of several callers run side by side.
///
/// After fork() the child makes a new process pool when it first needs one.
class ThreadPool {
 public:
  /// Chunk [begin, end) of a loop.
  using Body = void (*)(void* context, int64_t begin, int64_t end);

  /// `threads` includes the caller: 1 runs everything in the caller. Workers start when first used.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The pool of the process, as large as the setting `threads` said when it was first used.
  static ThreadPool& instance();

  int threads() const;

  /// Calls body(context, begin, end) for chunks that cover [0, n) once each; returns when all are
  /// done. A chunk has at least `grain` indices (but the last). `body` must not throw. Called from
  /// inside a chunk, it runs all of [0, n) there.
  void run(int64_t n, int64_t grain, Body body, void* context);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// ThreadPool::instance().run() with a function object: fn(begin, end).
template <class Fn>
void parallel_for(int64_t n, int64_t grain, Fn&& fn) {
  if (n <= 0) return;
  if (n <= grain) return fn(int64_t{0}, n);
  using Plain = std::remove_reference_t<Fn>;
  ThreadPool::instance().run(
      n, grain,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<Plain*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

/// True inside a chunk, where parallel_for() runs inline.
bool in_parallel_region();

/// Cores that this process may use: its affinity mask, cut to the CPU quota of its control group.
int usable_cores();

}  // namespace tracefire
