// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/move/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "backends/cpu/move/element.h"
#include "core/base/thread_pool.h"

namespace tracefire::cpu {
namespace {

/// Elements that are worth a hand-over to another thread.
constexpr int64_t kGrain = 32 * 1024;
/// Rows and columns of a block that is transposed at once: both sides stay in the L1 cache.
constexpr int64_t kBlock = 32;

/// Start of outer index `index` in both arrays; the axes `sizes` count from the innermost.
struct Place {
  int64_t target = 0, source = 0;
};
Place place_of(int64_t index, size_t axes, const std::vector<int64_t>& sizes,
               const std::vector<int64_t>& target, const std::vector<int64_t>& source) {
  Place place;
  for (size_t axis = axes; axis-- > 0;) {
    const int64_t at = index % sizes[axis];
    index /= sizes[axis];
    place.target += at * target[axis];
    place.source += at * source[axis];
  }
  return place;
}

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
      if (source_strides_[axis] != 1 || sizes_[axis] < 4 || sizes_[last] < 4) continue;
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
  for (int64_t row = begin; row < end; ++row) {
    const Place place = place_of(row, last, sizes_, target_strides_, source_strides_);
    T* out = target + place.target;
    const T* in = source + place.source;
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
void StridedCopy::copy_blocks(T* target, const T* source, int64_t begin, int64_t end) const {
  const size_t last = sizes_.size() - 1, fast = last - 1;
  const int64_t rows = sizes_[fast], columns = sizes_[last];
  const int64_t row_blocks = (rows + kBlock - 1) / kBlock;
  const int64_t to = target_strides_[fast], from = source_strides_[last];
  for (int64_t block = begin; block < end; ++block) {
    const Place place =
        place_of(block / row_blocks, fast, sizes_, target_strides_, source_strides_);
    const int64_t r0 = block % row_blocks * kBlock, r1 = std::min(r0 + kBlock, rows);
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const int64_t c1 = std::min(c0 + kBlock, columns);
      for (int64_t r = r0; r < r1; ++r) {
        T* out = target + place.target + r * to;
        const T* in = source + place.source + r;
        for (int64_t c = c0; c < c1; ++c) out[c] = in[c * from];
      }
    }
  }
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
  if (inner_ == Inner::kTranspose) {
    const int64_t row_blocks = (sizes_[last - 1] + kBlock - 1) / kBlock;
    const int64_t matrices = elements_ / (sizes_[last] * sizes_[last - 1]);
    const int64_t grain = std::max<int64_t>(1, kGrain / (kBlock * sizes_[last]));
    parallel_for(matrices * row_blocks, grain, [&](int64_t begin, int64_t end) {
      copy_blocks(target, source, begin, end);
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / sizes_[last]);
  parallel_for(elements_ / sizes_[last], grain,
               [&](int64_t begin, int64_t end) { copy_rows(target, source, begin, end); });
}

void StridedCopy::run(void* target, int64_t target_start, const void* source,
                      int64_t source_start) const {
  if (elements_ == 0) return;
  with_element(dtype_, [&](auto element) {
    using T = decltype(element);
    run_as<T>(static_cast<T*>(target) + target_start,
              static_cast<const T*>(source) + source_start);
  });
}

}  // namespace tracefire::cpu
