// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/api/loop.h"
#include "backends/cpu/tile/tile_table.h"

namespace tracefire::cpu {

/// A loop program as the tile interpreter runs it: registers are places in a worker's scratch
/// memory, or in the arrays themselves where nothing has to be converted. Holds no sizes.
struct LoopPlan {
  /// Where the elements of a register are while one tile is computed.
  enum class Home : uint8_t {
    kSlot,    ///< scratch slot `index`, computed or loaded anew for each tile
    kFixed,   ///< scratch slot `index`, filled once: a constant or a scalar input
    kInput,   ///< in the array of input `index`, read where it is
    kOutput,  ///< in the array of output `index`, written where it belongs
  };
  struct Register {
    RegType type = RegType::kF32;
    Home home = Home::kSlot;
    int32_t index = -1;
  };
  enum class Kind : uint8_t { kMap, kIndex, kRandom, kBitcast, kCheckFinite };
  struct Step {
    Kind kind = Kind::kMap;
    TileFn fn = nullptr;        ///< of kMap
    RandomFn random = nullptr;  ///< of kRandom; a is the input that holds the key
    FiniteFn finite = nullptr;  ///< of kCheckFinite
    int32_t out = -1, a = -1, b = -1, c = -1;  ///< registers
    int32_t axis = 0;                          ///< of kIndex
    TileFn unload = nullptr, reload = nullptr; ///< of kBitcast, for narrow floating types
  };
  struct Input {
    DType dtype = DType::kF32;
    size_t size = 4;         ///< bytes an element in memory
    int32_t reg = -1;        ///< -1: a key, or not used
    TileFn load = nullptr;   ///< null where register and memory agree
    int gather = 2;          ///< log2(size): TileTable::gathers
  };
  struct Output {
    size_t size = 4;
    int32_t reg = -1;
    TileFn store = nullptr;  ///< null where register and memory agree
    bool in_home = false;    ///< the register's home is this output: nothing is left to do
  };
  struct Constant {
    int32_t reg;
    double imm;
    int64_t imm_int;
  };

  std::vector<Register> registers;
  std::vector<Step> steps;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Constant> constants;
  int32_t slots = 0;         ///< scratch slots, each of slot_size bytes an element
  size_t slot_size = 4;
  int64_t tile = 1024;       ///< elements of one tile
  double cost = 1;           ///< rough nanoseconds an element
};

/// Why the interpreter cannot run `program`, or "".
std::string loop_refusal(const LoopProgram& program);

/// The plan of an accepted program. With `write_through`, results are computed in their arrays
/// where possible; without, after everything was read: for results that share an input's array.
LoopPlan make_loop_plan(const LoopProgram& program, const BoundLoop& bound, bool write_through);

}  // namespace tracefire::cpu
