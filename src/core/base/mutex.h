// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>

// Annotations of Clang's thread-safety analysis; nothing for other compilers.
#if defined(__clang__)
#define TF_ANNOTATE(x) __attribute__((x))
#else
#define TF_ANNOTATE(x)
#endif
/// The member may be touched only while the mutex is held.
#define TF_GUARDED_BY(mutex) TF_ANNOTATE(guarded_by(mutex))
/// What the pointer points to may be touched only while the mutex is held.
#define TF_POINTEE_GUARDED_BY(mutex) TF_ANNOTATE(pt_guarded_by(mutex))
/// The caller of the function holds the mutex.
#define TF_REQUIRES(...) TF_ANNOTATE(requires_capability(__VA_ARGS__))
/// The caller of the function does not hold the mutex.
#define TF_EXCLUDES(...) TF_ANNOTATE(locks_excluded(__VA_ARGS__))
#define TF_ACQUIRE(...) TF_ANNOTATE(acquire_capability(__VA_ARGS__))
#define TF_RELEASE(...) TF_ANNOTATE(release_capability(__VA_ARGS__))
#define TF_NO_THREAD_SAFETY_ANALYSIS TF_ANNOTATE(no_thread_safety_analysis)

namespace tracefire {

/// std::mutex that the thread-safety analysis knows.
class TF_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() TF_ACQUIRE() { mutex_.lock(); }
  void unlock() TF_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a Mutex for the length of a block.
class TF_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TF_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() TF_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Condition variable for a Mutex. Waits may end without cause: call them in a loop that checks.
class CondVar {
 public:
  void wait(Mutex& mutex) TF_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cond_.wait(lock);
    lock.release();
  }
  template <class Duration>
  void wait_for(Mutex& mutex, Duration longest) TF_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cond_.wait_for(lock, longest);
    lock.release();
  }
  void notify_one() { cond_.notify_one(); }
  void notify_all() { cond_.notify_all(); }

 private:
  std::condition_variable cond_;
};

}  // namespace tracefire
