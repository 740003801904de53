// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/move/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "backends/cpu/move/element.h"
#include "backends/cpu/move/transpose.h"
#include "core/base/thread_pool.h"

namespace tracefire::cpu {
namespace {

/// Elements that are worth a hand-over to another thread.
constexpr int64_t kGrain = 32 * 1024;
/// Rows of the target that one task transposes: many where memory is slow, else enough tasks.
constexpr int64_t kTaskRows = 64, kTaskRowsOfLarge = 256, kTaskColumns = 1024;
/// Results larger than this are written past the caches: they would push out what is needed next,
/// and reading their lines before writing them takes a third of the time.
constexpr int64_t kStreamBytes = 8 << 20;

/// Walks the outer axes of a copy, one step after the other without dividing.
class Walk {
 public:
  Walk(int64_t first, size_t axes, const std::vector<int64_t>& sizes,
       const std::vector<int64_t>& target, const std::vector<int64_t>& source)
      : sizes_(sizes), to_(target), from_(source), index_(axes) {
    for (size_t axis = axes; axis-- > 0;) {
      index_[axis] = first % sizes[axis];
      first /= sizes[axis];
      target_ += index_[axis] * target[axis];
      source_ += index_[axis] * source[axis];
    }
  }
  void next() {
    for (size_t axis = index_.size(); axis-- > 0;) {
      target_ += to_[axis];
      source_ += from_[axis];
      if (++index_[axis] < sizes_[axis]) return;
      target_ -= sizes_[axis] * to_[axis];
      source_ -= sizes_[axis] * from_[axis];
      index_[axis] = 0;
    }
  }
  int64_t target() const { return target_; }
  int64_t source() const { return source_; }

 private:
  const std::vector<int64_t>&sizes_, &to_, &from_;
  std::vector<int64_t> index_;
  int64_t target_ = 0, source_ = 0;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

StridedCopy::StridedCopy(DType dtype, const std::vector<int64_t>& sizes,
                         const std::vector<int64_t>& target_strides,
                         const std::vector<int64_t>& source_strides)
    : dtype_(dtype), elements_(1) {
  for (int64_t size : sizes) elements_ *= size;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const int64_t size = sizes[axis], to = target_strides[axis], from = source_strides[axis];
    if (size == 1) continue;
    const bool merges = !sizes_.empty() && target_strides_.back() == to * size &&
                        source_strides_.back() == from * size;
    if (merges) {
      sizes_.back() *= size;
      target_strides_.back() = to;
      source_strides_.back() = from;
    } else {
      sizes_.push_back(size);
      target_strides_.push_back(to);
      source_strides_.push_back(from);
    }
  }
  if (sizes_.empty()) {
    sizes_ = {1};
    target_strides_ = source_strides_ = {1};
  }
  const size_t last = sizes_.size() - 1;
  if (target_strides_[last] != 1) {
    inner_ = Inner::kStrided;
  } else if (source_strides_[last] == 1) {
    inner_ = Inner::kRun;
  } else if (source_strides_[last] == 0) {
    inner_ = Inner::kFill;
  } else {
    inner_ = Inner::kStrided;
    for (size_t axis = 0; axis < last; ++axis) {
      if (source_strides_[axis] != 1) continue;
      // The source's fast axis comes next to the target's; the order of outer axes is free.
      for (auto* values : {&sizes_, &target_strides_, &source_strides_}) {
        std::rotate(values->begin() + static_cast<std::ptrdiff_t>(axis),
                    values->begin() + static_cast<std::ptrdiff_t>(axis) + 1, values->end() - 1);
      }
      inner_ = Inner::kTranspose;
      break;
    }
  }
}

template <class T>
void StridedCopy::copy_rows(T* target, const T* source, int64_t begin, int64_t end) const {
  const size_t last = sizes_.size() - 1;
  const int64_t n = sizes_[last], to = target_strides_[last], from = source_strides_[last];
  Walk walk(begin, last, sizes_, target_strides_, source_strides_);
  for (int64_t row = begin; row < end; ++row, walk.next()) {
    T* out = target + walk.target();
    const T* in = source + walk.source();
    if (inner_ == Inner::kRun) {
      if constexpr (std::is_trivially_copyable_v<T>) {
        std::memcpy(static_cast<void*>(out), in, static_cast<size_t>(n) * sizeof(T));
      } else {
        std::copy(in, in + n, out);
      }
    } else if (inner_ == Inner::kFill) {
      std::fill_n(out, n, *in);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i * to] = in[i * from];
    }
  }
}

template <class T>
void StridedCopy::copy_matrices(T* target, const T* source) const {
  const size_t last = sizes_.size() - 1, fast = last - 1;
  const int64_t rows = sizes_[fast], columns = sizes_[last];
  const bool past_caches = elements_ * static_cast<int64_t>(sizeof(T)) >= kStreamBytes;
  const int64_t task_rows = past_caches ? kTaskRowsOfLarge : kTaskRows;
  const int64_t row_blocks = ceil_div(rows, task_rows);
  const int64_t column_blocks = ceil_div(columns, kTaskColumns);
  const int64_t per_matrix = row_blocks * column_blocks, matrices = elements_ / (rows * columns);
  const int64_t work = std::min(rows, task_rows) * std::min(columns, kTaskColumns);
  const int64_t grain = std::max<int64_t>(1, kGrain / work);
  parallel_for(matrices * per_matrix, grain, [&](int64_t begin, int64_t end) {
    Walk walk(begin / per_matrix, fast, sizes_, target_strides_, source_strides_);
    int64_t block = begin % per_matrix;
    for (int64_t task = begin; task < end; ++task) {
      const Transpose<T> matrix{target + walk.target(), source + walk.source(),
                                target_strides_[fast], source_strides_[last]};
      const int64_t r = block % row_blocks * task_rows, c = block / row_blocks * kTaskColumns;
      transpose(matrix.at(r, c), std::min(task_rows, rows - r), std::min(kTaskColumns, columns - c),
                past_caches);
      if (++block < per_matrix) continue;
      block = 0;
      walk.next();
    }
    if (past_caches) finish_streams();
  });
}

template <class T>
void StridedCopy::run_as(T* target, const T* source) const {
  const size_t last = sizes_.size() - 1;
  if (inner_ == Inner::kRun && last == 0) {  // one run: share it out by elements
    parallel_for(sizes_[0], kGrain, [&](int64_t begin, int64_t end) {
      std::copy(source + begin, source + end, target + begin);
    });
    return;
  }
  if (inner_ == Inner::kTranspose) return copy_matrices(target, source);
  const int64_t grain = std::max<int64_t>(1, kGrain / sizes_[last]);
  parallel_for(elements_ / sizes_[last], grain,
               [&](int64_t begin, int64_t end) { copy_rows(target, source, begin, end); });
}

void StridedCopy::run(void* target, int64_t target_start, const void* source,
                      int64_t source_start) const {
  if (elements_ == 0) return;
  with_element(dtype_, [&](auto element) {
    using T = decltype(element);
    run_as<T>(static_cast<T*>(target) + target_start, static_cast<const T*>(source) + source_start);
  });
}

}  // namespace tracefire::cpu
