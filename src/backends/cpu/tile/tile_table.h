// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/api/loop.h"
#include "tracefire/dtype.h"

namespace tracefire::cpu {

/// How a register of the tile interpreter holds its elements. Narrow floating types are held as
/// f32; complex ones are only compared and selected.
enum class RegType : uint8_t {
  kF32, kF64, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool, kC64, kC128
};
constexpr size_t kRegTypes = 13;
constexpr size_t kLoopOps = static_cast<size_t>(LoopOp::kCount);
constexpr size_t kDTypes = 22;

/// Vector instructions that a table of tile functions is compiled for.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };

/// One scalar operation over a tile of `n` elements. Operands not used are null. `out` may be an
/// operand itself, and overlaps none otherwise.
using TileFn = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n);
/// Counts the leading elements that are finite; n where all are.
using FiniteFn = int64_t (*)(const void* a, int64_t n);
/// Random words (u32 or u64) of elements first, first+1, … from a key of two words.
using RandomFn = void (*)(void* out, const uint32_t* key, uint64_t first, int64_t n);

/// Functions for everything that can stand in a loop program. Null: not supported.
struct TileTable {
  TileFn ops[kLoopOps][kRegTypes] = {};
  /// Register (by its type) to register of the dtype's type, with the cast's semantics.
  TileFn casts[kRegTypes][kDTypes] = {};
  /// Memory of a dtype to its register type and back. Null where memory and register agree.
  TileFn loads[kDTypes] = {};
  TileFn stores[kDTypes] = {};
  /// Elements of 1, 2, 4, 8 or 16 bytes a stride apart (b points to the stride, an int64_t, in
  /// elements) into adjacent ones; index: log2 of the size.
  TileFn gathers[5] = {};
  FiniteFn finite_f32 = nullptr;
  FiniteFn finite_f64 = nullptr;
  RandomFn threefry32 = nullptr;
  RandomFn threefry64 = nullptr;
  RandomFn philox32 = nullptr;
  RandomFn philox64 = nullptr;
};

/// The best table for this machine, or the one for `isa` where the machine has it (else null).
const TileTable& tile_table();
const TileTable* tile_table(Isa isa);
Isa best_isa();

/// Register type of a dtype; false where the interpreter does not know the dtype.
bool reg_type(DType dtype, RegType* type);
constexpr size_t reg_size(RegType type) {
  constexpr std::array<uint8_t, kRegTypes> kSizes = {4, 8, 1, 2, 4, 8, 1, 2,
                                                    4, 8, 1, 8, 16};
  return kSizes[static_cast<size_t>(type)];
}

// Each fills what its translation unit holds; better instruction sets overwrite entries.
void fill_real_baseline(TileTable* table);
void fill_real_avx2(TileTable* table);
void fill_real_avx512(TileTable* table);
void fill_int_baseline(TileTable* table);
void fill_int_avx2(TileTable* table);
void fill_casts_baseline(TileTable* table);
void fill_casts_avx2(TileTable* table);
void fill_random_baseline(TileTable* table);
void fill_random_avx2(TileTable* table);
void fill_libm(TileTable* table);

}  // namespace tracefire::cpu
