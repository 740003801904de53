// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tracefire/dtype.h"

namespace tracefire::cpu {

/// What becomes of an element and an update that falls on it; max and min give NaN beside NaN.
enum class ScatterMode : uint8_t { kAdd, kMul, kUpdate, kMax, kMin };

/// Brings rows of updates to numbered rows of a target, both seen as [outer, rows, inner]. Updates
/// of one row are taken in their order; where there are many times more of them than rows, sums
/// are made over chunks of them, cut by sizes alone, and joined in order. So the result has the
/// same bits whatever runs in parallel. Integers wrap around; sums of narrow floating types are
/// kept in f32 and rounded once.
class Scatter {
 public:
  struct Sizes {
    int64_t outer, rows, inner;
    int64_t count;  ///< updates of each outer index
  };
  Scatter(DType dtype, ScatterMode mode, Sizes sizes);

  size_t workspace_bytes() const { return sums_bytes_ + order_bytes_; }  ///< 64-byte aligned
  /// `places` [count] are numbers of rows, all within the target. `start` holds the target's
  /// elements before, in its type; null: zeros. It may be `target` itself.
  void run(void* target, const void* start, const void* updates, const int64_t* places,
           void* workspace) const;

 private:
  /// Outside of chunks a task owns columns of the inner axis and a bucket of rows.
  struct Tasks {
    int64_t columns = 1, column_block = 0;
    int64_t buckets = 1;
    int bucket_bits = 0;  ///< a bucket has 2^bits rows
  };
  int64_t choose_chunks() const;
  Tasks choose_tasks() const;
  int64_t elements() const { return sizes_.outer * sizes_.rows * sizes_.inner; }
  template <class T>
  void run_mode(void* target, const void* start, const void* updates, const int64_t* places,
                void* workspace) const;
  template <ScatterMode mode, class Sum, class T>
  void run_tasks(Sum* sums, const T* start, const T* updates, const int64_t* places,
                 int64_t* order) const;
  template <class Sum, class T>
  void run_chunks(Sum* sums, const T* updates, const int64_t* places) const;
  template <class Sum, class T>
  void join(T* target, const T* start, const Sum* sums) const;

  DType dtype_;
  ScatterMode mode_;
  Sizes sizes_;
  int64_t chunks_ = 0;  ///< 0: no chunks
  Tasks tasks_;
  size_t sums_bytes_ = 0, order_bytes_ = 0;
};

}  // namespace tracefire::cpu
