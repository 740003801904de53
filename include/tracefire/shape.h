// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefire/export.h"

namespace tracefire {

/// One size of a shape: a number, or a symbol whose number is known when a program is bound.
///
/// Symbols are free (a batch size, a data-dependent count; 0 or more, each with an upper bound) or
/// derived from other dims (N + 1, N * 28). They are interned in a canonical form (sums of products,
/// constants folded), so equal expressions compare equal: (N + 1) - 1 is N, N * 28 / 28 is N.
/// Numbers saturate at the ends of int64 instead of wrapping around.
class TRACEFIRE_API Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(int64_t value) : value_(value) {}  // NOLINT: numbers are dims

  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();
  /// A new free symbol, different from every other. `name` is for people; `bound` is inclusive.
  static Dim fresh(std::string name, int64_t bound = kUnbounded);
  /// The symbol with this number, as symbol() gave it. Whoever asks about a number that no symbol
  /// has is told kSymbolUnbound.
  static Dim from_symbol(int32_t symbol);

  constexpr bool is_symbol() const { return symbol_ >= 0; }
  constexpr bool is_constant() const { return symbol_ < 0; }
  /// The number; only where is_constant().
  constexpr int64_t value() const { return value_; }
  constexpr int32_t symbol() const { return symbol_; }
  /// Largest number this dim can have.
  int64_t bound() const;
  /// "128", "N", "(N + 1)".
  std::string str() const;

  friend constexpr bool operator==(Dim a, Dim b) {
    return a.value_ == b.value_ && a.symbol_ == b.symbol_;
  }
  friend constexpr bool operator!=(Dim a, Dim b) { return !(a == b); }

 private:
  int64_t value_ = 0;
  int32_t symbol_ = -1;
};

// An expression with more than 500 parts becomes a new free symbol of the same bound.
TRACEFIRE_API Dim operator+(Dim a, Dim b);
TRACEFIRE_API Dim operator-(Dim a, Dim b);
TRACEFIRE_API Dim operator*(Dim a, Dim b);
/// Rounded towards negative infinity; division by zero gives 0. (N * 28) / N is simplified to 28,
/// as if N were not 0.
TRACEFIRE_API Dim floor_div(Dim a, Dim b);
TRACEFIRE_API Dim max(Dim a, Dim b);

/// Numbers of the free symbols of one run.
class TRACEFIRE_API DimEnv {
 public:
  void set(int32_t symbol, int64_t value) { values_[symbol] = value; }
  bool has(int32_t symbol) const { return values_.count(symbol) != 0; }
  /// Number of `dim`, or -1 where a free symbol in it has none yet. Any negative result means that
  /// `dim` is no size (N - 5 with N = 3).
  int64_t eval(Dim dim) const;
  const std::unordered_map<int32_t, int64_t>& values() const { return values_; }

 private:
  std::unordered_map<int32_t, int64_t> values_;
};

/// Free symbols in `dim` (itself, or those it is derived from), without duplicates.
TRACEFIRE_API std::vector<int32_t> free_symbols(Dim dim);

/// `dim` with free symbols replaced by the dims that `by` has for them; others stay.
TRACEFIRE_API Dim substitute(Dim dim, const std::unordered_map<int32_t, Dim>& by);

/// Sizes of a tensor, outermost first. Rank 0 is a scalar.
class TRACEFIRE_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  static Shape of(const std::vector<int64_t>& sizes);

  int rank() const { return static_cast<int>(dims_.size()); }
  /// Errors: kBadAxis for an axis outside 0 … rank - 1.
  Dim operator[](int axis) const { return dims_[checked(axis)]; }
  Dim& operator[](int axis) { return dims_[checked(axis)]; }
  const std::vector<Dim>& dims() const { return dims_; }
  void push_back(Dim dim) { dims_.push_back(dim); }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }

  bool is_constant() const;
  /// Product of the sizes, perhaps symbolic; 1 for a scalar.
  Dim elements() const;
  /// Sizes as numbers; only where is_constant().
  std::vector<int64_t> sizes() const;
  /// The same shape with symbols replaced by their numbers in `env`.
  Shape bind(const DimEnv& env) const;
  /// The same shape with free symbols replaced by the dims that `by` has for them.
  Shape substitute(const std::unordered_map<int32_t, Dim>& by) const;
  /// "(128, 784)", "(N, 10)", "(3,)", "()" as NumPy writes them.
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  size_t checked(int axis) const {
    if (axis < 0 || axis >= rank()) bad_axis(axis);
    return static_cast<size_t>(axis);
  }
  [[noreturn]] void bad_axis(int axis) const;
  std::vector<Dim> dims_;
};

}  // namespace tracefire
