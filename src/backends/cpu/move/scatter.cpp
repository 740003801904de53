// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/move/scatter.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/move/element.h"
#include "backends/cpu/move/numbers.h"
#include "backends/cpu/tile/isa_target.h"
#include "core/base/thread_pool.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;

/// One element and one update. Floating sums are in Sum, which is wider than T where T is narrow.
template <ScatterMode mode, class Sum, class T>
Sum combined(Sum old, T update) {
  if constexpr (mode == ScatterMode::kUpdate) {
    return static_cast<Sum>(update);
  } else if constexpr (mode == ScatterMode::kMax || mode == ScatterMode::kMin) {
    const Computed<T> x = number(old), y = number(update);
    const bool stays = mode == ScatterMode::kMax ? x > y : x < y;
    return stays || x != x ? old : static_cast<Sum>(update);
  } else if constexpr (std::is_integral_v<T>) {  // words that wrap around
    const uint64_t x = static_cast<uint64_t>(old), y = static_cast<uint64_t>(update);
    return static_cast<Sum>(mode == ScatterMode::kAdd ? x + y : x * y);
  } else {
    const Sum x = static_cast<Sum>(number(update));
    return mode == ScatterMode::kAdd ? old + x : old * x;
  }
}

/// Updates `first` … `last` - 1 of `order` (null: in their own order), `width` elements of each.
template <ScatterMode mode, class Sum, class T>
void take(Sum* target, const T* updates, const int64_t* places, const int64_t* order, int64_t first,
          int64_t last, int64_t inner, int64_t width) {
  if (inner == 1) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t at = order == nullptr ? i : order[i];
      target[places[at]] = combined<mode>(target[places[at]], updates[at]);
    }
    return;
  }
  for (int64_t i = first; i < last; ++i) {
    const int64_t at = order == nullptr ? i : order[i];
    const T* from = updates + at * inner;
    Sum* to = target + places[at] * inner;
    TF_IVDEP
    for (int64_t k = 0; k < width; ++k) to[k] = combined<mode>(to[k], from[k]);
  }
}

/// Numbers of updates, sorted by the bucket their place falls into; within a bucket in order.
class Buckets {
 public:
  Buckets(const int64_t* places, int64_t count, int64_t buckets, int bucket_bits, int64_t* order)
      : chunks_((count + kGrain - 1) / kGrain), buckets_(buckets) {
    // starts_[chunk][bucket]: first how many there are, then where the first one goes.
    starts_.assign(static_cast<size_t>((chunks_ + 1) * buckets), 0);
    parallel_for(chunks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * kGrain; i < std::min(end * kGrain, count); ++i) {
        ++start(i / kGrain, places[i] >> bucket_bits);
      }
    });
    int64_t total = 0;
    for (int64_t bucket = 0; bucket < buckets; ++bucket) {
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
        const int64_t here = start(chunk, bucket);
        start(chunk, bucket) = total;
        total += here;
      }
      start(chunks_, bucket) = total;
    }
    parallel_for(chunks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * kGrain; i < std::min(end * kGrain, count); ++i) {
        order[start(i / kGrain, places[i] >> bucket_bits)++] = i;
      }
    });
  }
  int64_t first(int64_t bucket) const { return bucket == 0 ? 0 : last(bucket - 1); }
  int64_t last(int64_t bucket) const {
    return starts_[static_cast<size_t>(chunks_ * buckets_ + bucket)];
  }

 private:
  int64_t& start(int64_t chunk, int64_t bucket) {
    return starts_[static_cast<size_t>(chunk * buckets_ + bucket)];
  }
  int64_t chunks_, buckets_;
  std::vector<int64_t> starts_;
};

}  // namespace

Scatter::Scatter(DType dtype, ScatterMode mode, Sizes sizes)
    : dtype_(dtype), mode_(mode), sizes_(sizes), chunks_(choose_chunks()), tasks_(choose_tasks()) {
  const size_t sum_size = std::max(dtype_size(dtype), sizeof(float));
  const bool sums = mode == ScatterMode::kAdd || mode == ScatterMode::kMul;
  const bool narrow = is_floating(dtype) && dtype_size(dtype) < 4 && sums;
  const size_t arrays = chunks_ > 0 ? static_cast<size_t>(chunks_) : narrow ? 1 : 0;
  sums_bytes_ = (arrays * static_cast<size_t>(elements()) * sum_size + 63) / 64 * 64;
  if (chunks_ == 0 && tasks_.buckets > 1) {
    order_bytes_ = static_cast<size_t>(sizes.count) * sizeof(int64_t);
  }
}

/// Chunks where making and joining their sums costs a quarter of the additions at most.
int64_t Scatter::choose_chunks() const {
  constexpr int64_t kLeast = 64 * 1024, kMost = 16;  // additions that are worth a chunk
  if (mode_ != ScatterMode::kAdd || elements() == 0) return 0;
  const int64_t additions = sizes_.outer * sizes_.count * sizes_.inner;
  const int64_t chunks = std::min({kMost, additions / kLeast, additions / (8 * elements())});
  return chunks > 1 ? chunks : 0;
}

/// Columns first, as long as a task has a kilobyte of them; then rows, for which the updates are
/// sorted. That is worth it for wide rows, or many threads.
Scatter::Tasks Scatter::choose_tasks() const {
  constexpr int64_t kLeast = 128 * 1024;  // elements that are worth more than one task
  const int64_t outer = sizes_.outer, rows = sizes_.rows, inner = sizes_.inner;
  const int64_t size = std::max<int64_t>(1, static_cast<int64_t>(dtype_size(dtype_)));
  Tasks tasks;
  tasks.column_block = inner;
  const int64_t threads = ThreadPool::instance().threads();
  if (threads == 1 || outer * sizes_.count * inner < kLeast || outer >= 2 * threads) return tasks;
  tasks.columns = std::clamp<int64_t>(inner * size / 1024, 1, (2 * threads + outer - 1) / outer);
  tasks.column_block = ((inner + tasks.columns - 1) / tasks.columns * size + 63) / 64 * 64 / size;
  tasks.columns = (inner + tasks.column_block - 1) / tasks.column_block;
  const int64_t wanted = 4 * threads / (outer * tasks.columns);
  const bool enough = outer * tasks.columns >= 2 * threads;
  if (enough || rows < 2 || (inner * size < 256 && threads < 4)) return tasks;
  while (rows >> tasks.bucket_bits >= 2 * wanted) ++tasks.bucket_bits;
  tasks.buckets = ((rows - 1) >> tasks.bucket_bits) + 1;
  return tasks;
}

template <ScatterMode mode, class Sum, class T>
void Scatter::run_tasks(Sum* sums, const T* start, const T* updates, const int64_t* places,
                        int64_t* order) const {
  const int64_t rows = sizes_.rows, inner = sizes_.inner, count = sizes_.count;
  parallel_for(elements(), kGrain, [&](int64_t begin, int64_t end) {
    if (start == nullptr) {
      std::fill(sums + begin, sums + end, Sum());
    } else if (static_cast<const void*>(sums) != static_cast<const void*>(start)) {
      for (int64_t i = begin; i < end; ++i) sums[i] = static_cast<Sum>(start[i]);
    }
  });
  const bool sorted = tasks_.buckets > 1;
  const Buckets buckets(places, sorted ? count : 0, tasks_.buckets, tasks_.bucket_bits, order);
  const int64_t per_outer = tasks_.columns * tasks_.buckets;
  parallel_for(sizes_.outer * per_outer, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t at = task / per_outer, bucket = task % per_outer / tasks_.columns;
      const int64_t column = task % tasks_.columns * tasks_.column_block;
      take<mode>(sums + at * rows * inner + column, updates + at * count * inner + column, places,
                 sorted ? order : nullptr, sorted ? buckets.first(bucket) : 0,
                 sorted ? buckets.last(bucket) : count, inner,
                 std::min(tasks_.column_block, inner - column));
    }
  });
}

template <class Sum, class T>
void Scatter::run_chunks(Sum* sums, const T* updates, const int64_t* places) const {
  const int64_t inner = sizes_.inner, count = sizes_.count, own = sizes_.rows * inner;
  parallel_for(sizes_.outer * chunks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t at = task / chunks_, chunk = task % chunks_;
      Sum* mine = sums + chunk * elements() + at * own;
      std::fill_n(mine, own, Sum());
      take<ScatterMode::kAdd>(mine, updates + at * count * inner, places, nullptr,
                              count * chunk / chunks_, count * (chunk + 1) / chunks_, inner, inner);
    }
  });
}

/// target = start + all arrays of sums, in order.
template <class Sum, class T>
void Scatter::join(T* target, const T* start, const Sum* sums) const {
  const int64_t arrays = std::max<int64_t>(1, chunks_), n = elements();
  const bool add_start = chunks_ > 0 && start != nullptr;
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Sum sum =
          add_start ? combined<ScatterMode::kAdd>(static_cast<Sum>(start[i]), sums[i]) : sums[i];
      for (int64_t k = 1; k < arrays; ++k) {
        sum = combined<ScatterMode::kAdd>(sum, sums[k * n + i]);
      }
      target[i] = static_cast<T>(sum);
    }
  });
}

template <class T>
void Scatter::run_mode(void* target_data, const void* start_data, const void* update_data,
                       const int64_t* places, void* workspace) const {
  T* target = static_cast<T*>(target_data);
  const T *start = static_cast<const T*>(start_data), *updates = static_cast<const T*>(update_data);
  int64_t* order = reinterpret_cast<int64_t*>(static_cast<char*>(workspace) + sums_bytes_);
  if (mode_ == ScatterMode::kMax) {
    run_tasks<ScatterMode::kMax>(target, start, updates, places, order);
  } else if (mode_ == ScatterMode::kMin) {
    run_tasks<ScatterMode::kMin>(target, start, updates, places, order);
  } else {
    using Sum = Computed<T>;
    Sum* sums = static_cast<Sum*>(workspace);
    const bool product = mode_ == ScatterMode::kMul;
    if (chunks_ > 0) {
      run_chunks(sums, updates, places);
      join(target, start, sums);
    } else if constexpr (std::is_same_v<T, Sum>) {
      if (product) return run_tasks<ScatterMode::kMul>(target, start, updates, places, order);
      run_tasks<ScatterMode::kAdd>(target, start, updates, places, order);
    } else {
      if (product) run_tasks<ScatterMode::kMul>(sums, start, updates, places, order);
      if (!product) run_tasks<ScatterMode::kAdd>(sums, start, updates, places, order);
      join(target, start, sums);
    }
  }
}

void Scatter::run(void* target, const void* start, const void* updates, const int64_t* places,
                  void* workspace) const {
  if (elements() == 0) return;
  if (mode_ == ScatterMode::kUpdate) {
    with_element(dtype_, [&](auto element) {  // moves bits
      using T = decltype(element);
      run_tasks<ScatterMode::kUpdate>(
          static_cast<T*>(target), static_cast<const T*>(start), static_cast<const T*>(updates),
          places, reinterpret_cast<int64_t*>(static_cast<char*>(workspace) + sums_bytes_));
    });
  } else {
    with_real(dtype_, [&](auto element) {
      run_mode<decltype(element)>(target, start, updates, places, workspace);
    });
  }
}

}  // namespace tracefire::cpu
