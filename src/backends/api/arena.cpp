// SPDX-License-Identifier: Apache-2.0
#include "backends/api/arena.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace tracefire {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kMostBytes = size_t{1} << 52;

/// A value with its place in time and, once chosen, in memory.
struct Block {
  int32_t value;
  int32_t first, last;  ///< steps, both included
  size_t bytes;
  size_t offset = 0;
};

/// Rounded up to the alignment. What no device can hold counts as kMostBytes, which is refused when
/// it is allocated, so that sums of sizes do not wrap around.
size_t block_bytes(int64_t elements, size_t element_bytes) {
  const auto count = static_cast<size_t>(elements);
  if (element_bytes != 0 && count > kMostBytes / element_bytes) return kMostBytes;
  const size_t bytes = std::max<size_t>(count * element_bytes, 1);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool overlap(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

/// True for values whose bytes lie in the arena. Results have storage of their own, because they
/// outlive the run; what regions and host calls return is allocated when they run.
bool in_arena(const Program& program, const ProgramValue& value, Device device) {
  if (value.device != device || value.param >= 0 || value.alias_of >= 0 || value.in_slot >= 0 ||
      value.type.dtype == DType::kToken || value.type.dtype == DType::kString ||
      value.first_step < 0) {
    return false;
  }
  const StepKind kind = program.steps[static_cast<size_t>(value.first_step)].kind;
  return kind == StepKind::kKernel || kind == StepKind::kCopy;
}

/// Most bytes that live at once: no plan takes less.
size_t most_live(const std::vector<Block>& blocks) {
  std::vector<std::pair<int32_t, int64_t>> changes;  // a step, and the bytes that come or go there
  changes.reserve(2 * blocks.size());
  for (const Block& block : blocks) {
    changes.push_back({block.first, static_cast<int64_t>(block.bytes)});
    changes.push_back({block.last + 1, -static_cast<int64_t>(block.bytes)});
  }
  std::sort(changes.begin(), changes.end());  // what goes before what comes
  int64_t live = 0, most = 0;
  for (const auto& [step, bytes] : changes) most = std::max(most, live += bytes);
  return static_cast<size_t>(most);
}

/// Bytes below the end of the arena that no live block holds, by place and by size.
class Gaps {
 public:
  /// The lowest of the smallest gaps that hold `bytes`, else the end, which grows.
  size_t take(size_t bytes) {
    const auto found = by_size_.lower_bound({bytes, 0});
    if (found == by_size_.end()) {
      const size_t at = gap_at_end();
      if (at != end_) remove(std::prev(by_place_.end()));
      end_ = at + bytes;
      return at;
    }
    const auto [size, at] = *found;
    remove(by_place_.find(at));
    if (size > bytes) add(at + bytes, size - bytes);
    return at;
  }
  void give_back(size_t at, size_t bytes) {
    const auto next = by_place_.lower_bound(at);
    if (next != by_place_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    if (next != by_place_.end() && next->first == at + bytes) {
      bytes += next->second;
      remove(next);
    }
    add(at, bytes);
  }
  size_t end() const { return end_; }

 private:
  using ByPlace = std::map<size_t, size_t>;
  size_t gap_at_end() const {
    if (by_place_.empty()) return end_;
    const auto last = std::prev(by_place_.end());
    return last->first + last->second == end_ ? last->first : end_;
  }
  void add(size_t at, size_t bytes) {
    by_place_[at] = bytes;
    by_size_.insert({bytes, at});
  }
  void remove(ByPlace::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    by_place_.erase(gap);
  }

  ByPlace by_place_;
  std::set<std::pair<size_t, size_t>> by_size_;
  size_t end_ = 0;
};

/// Places blocks in the order of their lives, or backwards in time, each in the smallest gap that
/// holds it. Returns the end of the last. Takes n log n.
size_t place_by_time(std::vector<Block>* blocks, bool backwards) {
  const auto begins = [&](const Block& block) { return backwards ? -block.last : block.first; };
  const auto ends = [&](const Block& block) { return backwards ? -block.first : block.last; };
  std::stable_sort(blocks->begin(), blocks->end(), [&](const Block& a, const Block& b) {
    return begins(a) != begins(b) ? begins(a) < begins(b) : a.bytes > b.bytes;
  });
  const auto later = [&](size_t a, size_t b) { return ends((*blocks)[a]) > ends((*blocks)[b]); };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> live(later);
  Gaps gaps;
  for (size_t i = 0; i < blocks->size(); ++i) {
    Block& block = (*blocks)[i];
    while (!live.empty() && ends((*blocks)[live.top()]) < begins(block)) {
      const Block& done = (*blocks)[live.top()];
      gaps.give_back(done.offset, done.bytes);
      live.pop();
    }
    block.offset = gaps.take(block.bytes);
    live.push(i);
  }
  return gaps.end();
}

/// Places the largest blocks first: small ones find gaps between them. Returns the end of the last.
/// Takes n * n.
size_t place_by_size(std::vector<Block>* blocks) {
  // Ties by birth keep the plan stable.
  std::stable_sort(blocks->begin(), blocks->end(), [](const Block& a, const Block& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.first < b.first;
  });
  std::vector<Block> placed;  // by offset
  placed.reserve(blocks->size());
  size_t end = 0;
  for (Block& block : *blocks) {
    size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const Block& other : placed) {
      if (!overlap(other, block)) continue;
      if (other.offset >= at) {
        const size_t gap = other.offset - at;
        if (gap >= block.bytes && gap < best_gap) {
          best = at;
          best_gap = gap;
          if (gap == block.bytes) break;
        }
      }
      at = std::max(at, other.offset + other.bytes);
    }
    block.offset = best == SIZE_MAX ? at : best;
    end = std::max(end, block.offset + block.bytes);
    const auto place =
        std::upper_bound(placed.begin(), placed.end(), block,
                         [](const Block& a, const Block& b) { return a.offset < b.offset; });
    placed.insert(place, block);
  }
  return end;
}

/// Chooses offsets; returns the bytes that they take: those of the first way that needs no more
/// than what lives at once, else of the best. Of large programs, nearly so is good enough, and very
/// large ones go without the way that takes n * n.
size_t place(std::vector<Block>* blocks) {
  constexpr size_t kFewBlocks = 2000, kManyBlocks = 20000;
  const size_t least = most_live(*blocks);
  const size_t goal = blocks->size() > kFewBlocks ? least + least / 100 : least;
  size_t best = place_by_time(blocks, false);
  const auto attempt = [&](auto way) {
    std::vector<Block> other = *blocks;
    const size_t end = way(&other);
    if (end >= best) return;
    best = end;
    blocks->swap(other);
  };
  if (best > least) attempt([](auto* copy) { return place_by_time(copy, /*backwards=*/true); });
  if (best > goal && blocks->size() <= kManyBlocks) attempt(place_by_size);
  return best;
}

}  // namespace

ArenaPlan plan_arena(const Program& program, Device device, const DimEnv& env) {
  ArenaPlan plan;
  plan.offsets.assign(program.values.size(), -1);
  std::vector<bool> is_output(program.values.size(), false);
  for (size_t r = 0; r < program.results.size(); ++r) {
    if (program.result_slots[r] >= 0) continue;
    int32_t value = program.results[r];
    while (program.values[static_cast<size_t>(value)].alias_of >= 0) {
      value = program.values[static_cast<size_t>(value)].alias_of;
    }
    is_output[static_cast<size_t>(value)] = true;
  }

  std::vector<Block> blocks;
  for (size_t v = 0; v < program.values.size(); ++v) {
    const ProgramValue& value = program.values[v];
    if (is_output[v] || !in_arena(program, value, device)) continue;
    const int64_t elements = env.eval(value.type.shape.elements());
    if (elements < 0) continue;  // depends on data: allocated when its step runs
    blocks.push_back({static_cast<int32_t>(v), value.first_step, value.last_step,
                      block_bytes(elements, dtype_size(value.type.dtype))});
  }
  plan.bytes = place(&blocks);
  for (const Block& block : blocks) {
    plan.offsets[static_cast<size_t>(block.value)] = static_cast<int64_t>(block.offset);
  }
  return plan;
}

}  // namespace tracefire
