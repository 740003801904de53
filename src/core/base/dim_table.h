// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefire/shape.h"

namespace tracefire::dims {

/// coefficient * atom * atom …; an atom is a symbol that is not itself a sum.
struct Term {
  std::vector<int32_t> atoms;  ///< sorted; empty for the constant term
  int64_t coefficient = 0;
};

/// A sum of terms, sorted by degree (largest first), then by atoms; no coefficient is 0.
using Sum = std::vector<Term>;

enum class Form : uint8_t {
  kFree,
  kSum,
  kFloorDiv,  ///< args[0] // args[1]
  kMax,       ///< largest of args
  kProduct,   ///< product of args that would have too many terms as a sum
};

/// Numbers a dim can have, both ends included; the ends of int64 stand for no limit.
struct Range {
  int64_t low = 0;
  int64_t high = 0;
};

/// What a symbol number stands for. Immutable once in the table.
struct Entry {
  Form form = Form::kFree;
  std::string name;  ///< kFree
  Sum sum;           ///< kSum
  std::vector<Dim> args;
  Range range;
  std::vector<int32_t> free;  ///< free symbols below, sorted
  int64_t parts = 1;          ///< parts of the written-out expression
};

/// All symbols of the process. Thread-safe; entries never move and never go away.
class Table {
 public:
  static Table& instance();
  const Entry& at(int32_t symbol) const;
  int32_t add_free(std::string name, int64_t bound);
  /// The symbol of an expression; the same expression gets the same symbol.
  Dim intern(Entry entry);

 private:
  mutable std::shared_mutex mutex_;
  std::deque<Entry> entries_;
  std::unordered_map<std::string, int32_t> by_key_;
};

int64_t saturating_add(int64_t a, int64_t b);
int64_t saturating_mul(int64_t a, int64_t b);
/// Rounded towards negative infinity; 0 for b == 0.
int64_t floor_divide(int64_t a, int64_t b);
Range range_of(Dim dim);

}  // namespace tracefire::dims
