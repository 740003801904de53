// SPDX-License-Identifier: Apache-2.0
#include "backends/api/arena.h"

#include <algorithm>
#include <numeric>

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

/// The smallest gap between placed blocks that hold bytes at the same time; else after the last.
size_t best_offset(const std::vector<Block>& placed, const Block& block,
                   std::vector<const Block*>* scratch) {
  scratch->clear();
  for (const Block& other : placed) {
    if (overlap(other, block)) scratch->push_back(&other);
  }
  std::sort(scratch->begin(), scratch->end(),
            [](const Block* a, const Block* b) { return a->offset < b->offset; });
  size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
  for (const Block* other : *scratch) {
    if (other->offset >= at) {
      const size_t gap = other->offset - at;
      if (gap >= block.bytes && gap < best_gap) {
        best = at;
        best_gap = gap;
      }
    }
    at = std::max(at, other->offset + other->bytes);
  }
  return best == SIZE_MAX ? at : best;
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
  // Large blocks first: small ones find gaps between them. Ties by birth keep the plan stable.
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.first < b.first;
  });
  std::vector<Block> placed;
  placed.reserve(blocks.size());
  std::vector<const Block*> scratch;
  for (Block block : blocks) {
    block.offset = best_offset(placed, block, &scratch);
    plan.offsets[static_cast<size_t>(block.value)] = static_cast<int64_t>(block.offset);
    plan.bytes = std::max(plan.bytes, block.offset + block.bytes);
    placed.push_back(block);
  }
  return plan;
}

}  // namespace tracefire
