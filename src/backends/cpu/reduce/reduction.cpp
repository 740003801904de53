// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/reduce/reduction.h"

#include <algorithm>

#include "core/base/thread_pool.h"

namespace tracefire::cpu {
namespace {

/// Elements that one chunk reduces.
constexpr int64_t kChunk = 32 * 1024;
/// Elements of a narrow type that are turned into float at once; whole stretches of a float sum.
constexpr int64_t kPiece = 2048;
constexpr int64_t kRowsAtOnce = 16;
constexpr size_t kMaxAcc = 8;

bool contains(const std::vector<int64_t>& axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

}  // namespace

int64_t Reduction::Axes::count() const {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

int64_t Reduction::Axes::offset(int64_t index) const {
  int64_t offset = 0;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    offset += index % sizes[axis] * strides[axis];
    index /= sizes[axis];
  }
  return offset;
}

Reduction::Reduction(ReduceOp op, bool mean, DType dtype, const std::vector<int64_t>& sizes,
                     const std::vector<int64_t>& axes)
    : size_(dtype_size(dtype)) {
  RegType type = RegType::kF32;
  reg_type(dtype, &type);
  functions_ = &reduce_functions(op, type);
  load_ = tile_table().loads[static_cast<size_t>(dtype)];
  store_ = tile_table().stores[static_cast<size_t>(dtype)];

  // Neighbouring axes of one kind become one.
  struct Group {
    int64_t size, stride;
    bool reduced;
  };
  std::vector<Group> groups;
  int64_t stride = 1, reduced_count = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    const bool reduced = contains(axes, axis);
    if (reduced) reduced_count *= sizes[axis];
    if (sizes[axis] != 1) {
      if (!groups.empty() && groups.back().reduced == reduced) {
        groups.back().size *= sizes[axis];
      } else {
        groups.push_back({sizes[axis], stride, reduced});
      }
    }
    stride *= sizes[axis];
  }
  if (mean) divisor_ = static_cast<double>(reduced_count);
  if (groups.empty()) groups.push_back({1, 1, true});
  columns_ = !groups[0].reduced;
  inner_ = groups[0].size;
  for (size_t i = groups.size(); i-- > 1;) {
    Axes& to = groups[i].reduced ? reduced_ : kept_;
    to.sizes.push_back(groups[i].size);
    to.strides.push_back(groups[i].stride);
  }
  choose_chunks();
}

void Reduction::choose_chunks() {
  const int64_t rows = reduced_.count();
  if (columns_) {
    blocks_ = (inner_ + kColumnBlock - 1) / kColumnBlock;
    const int64_t width = std::max<int64_t>(1, std::min(inner_, kColumnBlock));
    chunk_rows_ = std::max(kRowsAtOnce, kChunk / width / kRowsAtOnce * kRowsAtOnce);
  } else if (inner_ > kChunk) {
    chunk_part_ = kChunk;
    chunks_ = rows * ((inner_ + kChunk - 1) / kChunk);
    return;
  } else {
    chunk_rows_ = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, inner_));
  }
  chunks_ = std::max<int64_t>(1, (rows + chunk_rows_ - 1) / chunk_rows_);
}

int64_t Reduction::block_width(int64_t block) const {
  return columns_ ? std::min(kColumnBlock, inner_ - block * kColumnBlock) : 1;
}

int64_t Reduction::slot_bytes() const {
  return std::min(columns_ ? inner_ : 1, kColumnBlock) *
         static_cast<int64_t>(functions_->acc_size);
}

size_t Reduction::workspace_bytes() const {
  return chunks_ <= 1 ? 0 : static_cast<size_t>(kept_.count() * blocks_ * chunks_ * slot_bytes());
}

void Reduction::take_row(char* acc, const char* in, int64_t offset, int64_t n) const {
  const char* x = in + offset * static_cast<int64_t>(size_);
  if (load_ == nullptr) {
    functions_->row(acc, x, n);
    return;
  }
  alignas(64) float piece[kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = std::min(kPiece, n - i);
    load_(piece, x + i * static_cast<int64_t>(size_), nullptr, nullptr, count);
    functions_->row(acc, piece, count);
  }
}

void Reduction::take_columns(char* acc, const char* in, int64_t offset, int64_t rows,
                             int64_t stride, int64_t width) const {
  const char* x = in + offset * static_cast<int64_t>(size_);
  if (load_ == nullptr) {
    functions_->columns(acc, x, rows, stride, width);
    return;
  }
  alignas(64) float piece[kRowsAtOnce * kColumnBlock];
  for (int64_t first = 0; first < rows; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, rows - first);
    for (int64_t r = 0; r < count; ++r) {
      load_(piece + r * width, x + (first + r) * stride * static_cast<int64_t>(size_), nullptr,
            nullptr, width);
    }
    functions_->columns(acc, piece, count, width, width);
  }
}

void Reduction::run_chunk(char* acc, const char* in, int64_t kept, int64_t block,
                          int64_t chunk) const {
  const int64_t base = kept_.offset(kept) + block * kColumnBlock;
  functions_->init(acc, block_width(block));
  if (chunk_part_ != 0) {
    const int64_t parts = (inner_ + chunk_part_ - 1) / chunk_part_;
    const int64_t start = chunk % parts * chunk_part_;
    take_row(acc, in, base + reduced_.offset(chunk / parts) + start,
             std::min(chunk_part_, inner_ - start));
    return;
  }
  const int64_t end = std::min((chunk + 1) * chunk_rows_, reduced_.count());
  if (!columns_) {
    for (int64_t row = chunk * chunk_rows_; row < end; ++row) {
      take_row(acc, in, base + reduced_.offset(row), inner_);
    }
    return;
  }
  // Rows along the innermost reduced axis lie a stride apart and are taken together.
  const int64_t run = reduced_.sizes.empty() ? 1 : reduced_.sizes.back();
  const int64_t stride = reduced_.sizes.empty() ? 0 : reduced_.strides.back();
  for (int64_t row = chunk * chunk_rows_; row < end;) {
    const int64_t count = std::min(run - row % run, end - row);
    take_columns(acc, in, base + reduced_.offset(row), count, stride, block_width(block));
    row += count;
  }
}

void Reduction::finish(char* out, const char* acc, int64_t kept, int64_t block) const {
  const int64_t width = block_width(block);
  const int64_t at = columns_ ? kept * inner_ + block * kColumnBlock : kept;
  char* target = out + at * static_cast<int64_t>(size_);
  if (store_ == nullptr) {
    functions_->finish(target, acc, width, divisor_);
    return;
  }
  alignas(64) float wide[kColumnBlock];
  functions_->finish(wide, acc, width, divisor_);
  store_(target, wide, nullptr, nullptr, width);
}

void Reduction::run(void* out, const void* in, void* workspace) const {
  char* to = static_cast<char*>(out);
  const char* from = static_cast<const char*>(in);
  const int64_t places = kept_.count() * blocks_;
  if (places == 0) return;
  const int64_t rows = reduced_.count();
  const int64_t per_place = columns_ ? rows * std::min(inner_, kColumnBlock) : rows * inner_;
  if (chunks_ <= 1) {
    const int64_t grain = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, per_place));
    parallel_for(places, grain, [&](int64_t begin, int64_t end) {
      alignas(64) char acc[kColumnBlock * kMaxAcc];
      for (int64_t place = begin; place < end; ++place) {
        run_chunk(acc, from, place / blocks_, place % blocks_, 0);
        finish(to, acc, place / blocks_, place % blocks_);
      }
    });
    return;
  }
  // Accumulators of all chunks, those of one place side by side.
  const int64_t slot = slot_bytes();
  char* partials = static_cast<char*>(workspace);
  parallel_for(places * chunks_, 1, [&](int64_t begin, int64_t end) {
    alignas(64) char acc[kColumnBlock * kMaxAcc];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t place = task / chunks_, block = place % blocks_;
      run_chunk(acc, from, place / blocks_, block, task % chunks_);
      std::copy_n(acc, block_width(block) * static_cast<int64_t>(functions_->acc_size),
                  partials + task * slot);
    }
  });
  parallel_for(places, 64, [&](int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end; ++place) {
      char* first = partials + place * chunks_ * slot;
      for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
        functions_->merge(first, first + chunk * slot, block_width(place % blocks_));
      }
      finish(to, first, place / blocks_, place % blocks_);
    }
  });
}

}  // namespace tracefire::cpu
