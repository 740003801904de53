// SPDX-License-Identifier: Apache-2.0
#include "core/base/dim_table.h"

#include <algorithm>
#include <mutex>

#include "core/base/status.h"

namespace tracefire::dims {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMaxParts = 500;

Range add(Range a, Range b) {
  return {saturating_add(a.low, b.low), saturating_add(a.high, b.high)};
}

Range multiply(Range a, Range b) {
  int64_t corners[4] = {saturating_mul(a.low, b.low), saturating_mul(a.low, b.high),
                        saturating_mul(a.high, b.low), saturating_mul(a.high, b.high)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

Range divide(Range a, Range b) {
  if (b.low > 0) {
    int64_t corners[4] = {floor_divide(a.low, b.low), floor_divide(a.low, b.high),
                          floor_divide(a.high, b.low), floor_divide(a.high, b.high)};
    Range r = {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
    // A missing limit stays missing: kMax // 2 is no limit either, unless the divisor is at
    // least 2.
    if (a.high == kMax && b.low == 1) r.high = kMax;
    return r;
  }
  // The divisor may be 0, which gives 0, or negative: only the size of the dividend is known.
  int64_t size = std::max(a.high, saturating_mul(a.low, -1));
  if (b.low < 0) return {saturating_mul(size, -1), size};
  return {std::min<int64_t>(a.low, 0), std::max<int64_t>(a.high, 0)};
}

Range range_of_symbol(int32_t symbol) { return Table::instance().at(symbol).range; }

Range range_of_entry(const Entry& e) {
  Range r{0, 0};
  switch (e.form) {
    case Form::kFree:
      return e.range;
    case Form::kSum:
      for (const Term& term : e.sum) {
        Range product{term.coefficient, term.coefficient};
        for (int32_t atom : term.atoms) product = multiply(product, range_of_symbol(atom));
        r = add(r, product);
      }
      return r;
    case Form::kFloorDiv:
      return divide(range_of(e.args[0]), range_of(e.args[1]));
    case Form::kMax:
      r = {kMin, kMin};
      for (Dim arg : e.args) {
        Range a = range_of(arg);
        r = {std::max(r.low, a.low), std::max(r.high, a.high)};
      }
      return r;
    case Form::kProduct:
      r = {1, 1};
      for (Dim arg : e.args) r = multiply(r, range_of(arg));
      return r;
  }
  return r;
}

void add_parts(int32_t symbol, Entry* e) {
  const Entry& part = Table::instance().at(symbol);
  e->parts = saturating_add(e->parts, part.parts);
  if (part.form == Form::kFree) {
    e->free.push_back(symbol);
  } else {
    e->free.insert(e->free.end(), part.free.begin(), part.free.end());
  }
}

void complete(Entry* e) {
  e->parts = 1;
  e->free.clear();
  for (const Term& term : e->sum) {
    e->parts = saturating_add(e->parts, 1);
    for (int32_t atom : term.atoms) add_parts(atom, e);
  }
  for (Dim arg : e->args) {
    e->parts = saturating_add(e->parts, 1);
    if (arg.is_symbol()) add_parts(arg.symbol(), e);
  }
  std::sort(e->free.begin(), e->free.end());
  e->free.erase(std::unique(e->free.begin(), e->free.end()), e->free.end());
  e->range = range_of_entry(*e);
}

std::string key_of(const Entry& e) {
  std::string key(1, static_cast<char>(e.form));
  auto put = [&key](int64_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof(v)); };
  for (const Term& term : e.sum) {
    put(term.coefficient);
    put(static_cast<int64_t>(term.atoms.size()));
    for (int32_t atom : term.atoms) put(atom);
  }
  for (Dim arg : e.args) {
    put(arg.symbol());
    put(arg.value());
  }
  return key;
}

}  // namespace

Table& Table::instance() {
  static Table* table = new Table;  // never destroyed: tensors may outlive static objects
  return *table;
}

const Entry& Table::at(int32_t symbol) const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  if (static_cast<size_t>(symbol) >= entries_.size()) {
    error(ErrorCode::kSymbolUnbound, "there is no symbolic size with number ", symbol,
          "; Dim::fresh() makes one")
        .throw_if_error();
  }
  return entries_[static_cast<size_t>(symbol)];
}

int32_t Table::add_free(std::string name, int64_t bound) {
  Entry e;
  e.name = std::move(name);
  e.range = {0, std::max<int64_t>(bound, 0)};
  std::unique_lock<std::shared_mutex> lock(mutex_);
  entries_.push_back(std::move(e));
  return static_cast<int32_t>(entries_.size() - 1);
}

Dim Table::intern(Entry entry) {
  std::string key = key_of(entry);
  {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    auto found = by_key_.find(key);
    if (found != by_key_.end()) return Dim::from_symbol(found->second);
  }
  complete(&entry);
  if (entry.parts > kMaxParts) {
    entry = Entry{Form::kFree, "D", {}, {}, entry.range, {}, 1};
    entry.range.low = std::max<int64_t>(entry.range.low, 0);
  }
  std::unique_lock<std::shared_mutex> lock(mutex_);
  auto [place, added] = by_key_.emplace(std::move(key), static_cast<int32_t>(entries_.size()));
  if (added) entries_.push_back(std::move(entry));
  return Dim::from_symbol(place->second);
}

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? kMax : kMin;
}

int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? kMax : kMin;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return saturating_mul(a, -1);
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Range range_of(Dim dim) {
  if (dim.is_constant()) return {dim.value(), dim.value()};
  return range_of_symbol(dim.symbol());
}

}  // namespace tracefire::dims
