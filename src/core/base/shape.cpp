// SPDX-License-Identifier: Apache-2.0
#include "tracefire/shape.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "core/base/dim_table.h"
#include "core/base/dim_text.h"
#include "core/base/status.h"

namespace tracefire {
namespace {

using dims::Entry;
using dims::Form;
using dims::Sum;
using dims::Table;
using dims::Term;

constexpr size_t kMaxTerms = 32;   // of a product written as a sum
constexpr size_t kMaxDegree = 16;  // atoms of one term

const Entry& entry(Dim dim) { return Table::instance().at(dim.symbol()); }

bool before(const Term& a, const Term& b) {
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
  return a.atoms < b.atoms;
}

/// Sorts, joins terms of the same atoms and drops those that vanish.
Sum normalized(Sum sum) {
  std::sort(sum.begin(), sum.end(), before);
  Sum out;
  for (Term& term : sum) {
    if (!out.empty() && out.back().atoms == term.atoms) {
      out.back().coefficient = dims::saturating_add(out.back().coefficient, term.coefficient);
    } else {
      out.push_back(std::move(term));
    }
  }
  out.erase(std::remove_if(out.begin(), out.end(), [](const Term& t) { return !t.coefficient; }),
            out.end());
  return out;
}

Sum sum_of(Dim dim) {
  if (dim.is_constant()) return dim.value() == 0 ? Sum{} : Sum{Term{{}, dim.value()}};
  const Entry& e = entry(dim);
  return e.form == Form::kSum ? e.sum : Sum{Term{{dim.symbol()}, 1}};
}

Dim dim_of(Sum sum) {
  if (sum.empty()) return Dim(0);
  if (sum.size() == 1) {
    const Term& term = sum[0];
    if (term.atoms.empty()) return Dim(term.coefficient);
    if (term.atoms.size() == 1 && term.coefficient == 1) return Dim::from_symbol(term.atoms[0]);
  }
  Entry e;
  e.form = Form::kSum;
  e.sum = std::move(sum);
  return Table::instance().intern(std::move(e));
}

Dim opaque(Form form, std::vector<Dim> args) {
  Entry e;
  e.form = form;
  e.args = std::move(args);
  return Table::instance().intern(std::move(e));
}

bool by_symbol(Dim a, Dim b) {
  return a.symbol() != b.symbol() ? a.symbol() < b.symbol() : a.value() < b.value();
}

Dim scaled_sum(Dim a, int64_t factor, Dim b) {
  Sum sum = sum_of(a);
  for (Term term : sum_of(b)) {
    term.coefficient = dims::saturating_mul(term.coefficient, factor);
    sum.push_back(std::move(term));
  }
  return dim_of(normalized(std::move(sum)));
}

/// a / b where b divides a as a polynomial.
std::optional<Dim> exact_quotient(Dim a, Dim b) {
  Sum rest = sum_of(a), divisor = sum_of(b), quotient;
  for (size_t step = 0; !rest.empty(); ++step) {
    if (step == kMaxTerms) return std::nullopt;
    const Term &lead = rest[0], &by = divisor[0];
    int64_t factor = dims::floor_divide(lead.coefficient, by.coefficient);
    if (dims::saturating_mul(factor, by.coefficient) != lead.coefficient) return std::nullopt;
    Term q{{}, factor};
    std::set_difference(lead.atoms.begin(), lead.atoms.end(), by.atoms.begin(), by.atoms.end(),
                        std::back_inserter(q.atoms));
    if (q.atoms.size() + by.atoms.size() != lead.atoms.size()) return std::nullopt;
    for (const Term& term : divisor) {
      int64_t product = dims::saturating_mul(term.coefficient, q.coefficient);
      Term t{q.atoms, dims::saturating_mul(product, -1)};
      t.atoms.insert(t.atoms.end(), term.atoms.begin(), term.atoms.end());
      std::sort(t.atoms.begin(), t.atoms.end());
      rest.push_back(std::move(t));
    }
    rest = normalized(std::move(rest));
    quotient.push_back(std::move(q));
  }
  return dim_of(normalized(std::move(quotient)));
}

/// floor(a / c), c > 1: whole multiples leave the division, so that one form remains.
Dim divide_by_constant(Dim a, int64_t c) {
  Sum whole, rest;
  int64_t common = c;
  for (const Term& term : sum_of(a)) {
    int64_t q = dims::floor_divide(term.coefficient, c);
    int64_t r = term.coefficient - q * c;
    if (q != 0) whole.push_back({term.atoms, q});
    if (r != 0) rest.push_back({term.atoms, r});
    if (!term.atoms.empty()) common = std::gcd(common, r);
  }
  if (common > 1) {  // floor((g x + k) / (g c)) = floor((x + floor(k / g)) / c)
    for (Term& term : rest) term.coefficient = dims::floor_divide(term.coefficient, common);
    c /= common;
  }
  Dim numerator = dim_of(normalized(std::move(rest)));
  Dim outside = dim_of(normalized(std::move(whole)));
  if (c == 1) return outside + numerator;
  dims::Range range = dims::range_of(numerator);
  if (range.low >= 0 && range.high < c) return outside;
  if (numerator.is_symbol()) {
    const Entry& e = entry(numerator);
    int64_t product = 0;
    if (e.form == Form::kFloorDiv && e.args[1].is_constant() && e.args[1].value() > 0 &&
        !__builtin_mul_overflow(e.args[1].value(), c, &product)) {
      return outside + floor_div(e.args[0], Dim(product));
    }
  }
  return outside + opaque(Form::kFloorDiv, {numerator, Dim(c)});
}

/// The one of the two that is never smaller; nullopt where it depends.
std::optional<Dim> larger(Dim a, Dim b) {
  dims::Range ra = dims::range_of(a), rb = dims::range_of(b);
  if (ra.low >= rb.high) return a;
  if (rb.low >= ra.high) return b;
  dims::Range difference = dims::range_of(a - b);
  if (difference.low >= 0) return a;
  if (difference.high <= 0) return b;
  return std::nullopt;
}

std::optional<int64_t> evaluate(Dim dim, const std::unordered_map<int32_t, int64_t>& values) {
  if (dim.is_constant()) return dim.value();
  const Entry& e = entry(dim);
  int64_t out = e.form == Form::kProduct ? 1 : 0;
  if (e.form == Form::kFree) {
    auto found = values.find(dim.symbol());
    if (found == values.end()) return std::nullopt;
    return found->second;
  }
  for (const Term& term : e.sum) {
    int64_t product = term.coefficient;
    for (int32_t atom : term.atoms) {
      std::optional<int64_t> v = evaluate(Dim::from_symbol(atom), values);
      if (!v) return v;
      product = dims::saturating_mul(product, *v);
    }
    out = dims::saturating_add(out, product);
  }
  for (size_t i = 0; i < e.args.size(); ++i) {
    std::optional<int64_t> v = evaluate(e.args[i], values);
    if (!v) return v;
    if (e.form == Form::kProduct) out = dims::saturating_mul(out, *v);
    if (e.form == Form::kMax) out = i == 0 ? *v : std::max(out, *v);
    if (e.form == Form::kFloorDiv) out = i == 0 ? *v : dims::floor_divide(out, *v);
  }
  return out;
}

}  // namespace

Dim Dim::fresh(std::string name, int64_t bound) {
  return from_symbol(Table::instance().add_free(std::move(name), bound));
}

Dim Dim::from_symbol(int32_t symbol) {
  Dim dim;
  dim.symbol_ = symbol;
  return dim;
}

int64_t Dim::bound() const { return dims::range_of(*this).high; }

std::string Dim::str() const { return dim_text(*this, symbol_name); }

Dim operator+(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) {
    return Dim(dims::saturating_add(a.value(), b.value()));
  }
  return scaled_sum(a, 1, b);
}

Dim operator-(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) {
    return Dim(dims::saturating_add(a.value(), dims::saturating_mul(b.value(), -1)));
  }
  return scaled_sum(a, -1, b);
}

Dim operator*(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) {
    return Dim(dims::saturating_mul(a.value(), b.value()));
  }
  Sum x = sum_of(a), y = sum_of(b), product;
  size_t degree = 0;
  if (!x.empty() && !y.empty()) degree = x[0].atoms.size() + y[0].atoms.size();
  if (x.size() * y.size() > kMaxTerms || degree > kMaxDegree) {
    if (a == Dim(1) || b == Dim(1)) return a == Dim(1) ? b : a;
    std::vector<Dim> args = {a, b};
    std::sort(args.begin(), args.end(), by_symbol);
    return opaque(Form::kProduct, std::move(args));
  }
  for (const Term& s : x) {
    for (const Term& t : y) {
      Term term{s.atoms, dims::saturating_mul(s.coefficient, t.coefficient)};
      term.atoms.insert(term.atoms.end(), t.atoms.begin(), t.atoms.end());
      std::sort(term.atoms.begin(), term.atoms.end());
      product.push_back(std::move(term));
    }
  }
  return dim_of(normalized(std::move(product)));
}

Dim floor_div(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return Dim(dims::floor_divide(a.value(), b.value()));
  if (b == Dim(0) || a == Dim(0)) return Dim(0);
  if (b == Dim(1)) return a;
  if (b.is_constant()) {
    if (b.value() < 0) return floor_div(Dim(0) - a, Dim(0) - b);
    return divide_by_constant(a, b.value());
  }
  if (std::optional<Dim> exact = exact_quotient(a, b)) return *exact;
  dims::Range ra = dims::range_of(a), rb = dims::range_of(b);
  if (ra.low >= 0 && ra.high < rb.low) return Dim(0);
  return opaque(Form::kFloorDiv, {a, b});
}

Dim max(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return Dim(std::max(a.value(), b.value()));
  std::vector<Dim> args;
  for (Dim dim : {a, b}) {
    if (dim.is_symbol() && entry(dim).form == Form::kMax) {
      const std::vector<Dim>& inner = entry(dim).args;
      args.insert(args.end(), inner.begin(), inner.end());
    } else {
      args.push_back(dim);
    }
  }
  std::sort(args.begin(), args.end(), by_symbol);
  std::vector<Dim> kept;
  for (Dim dim : args) {
    bool drop = false;
    for (size_t i = 0; i < kept.size() && !drop;) {
      std::optional<Dim> winner = larger(kept[i], dim);
      if (winner && *winner == kept[i]) {
        drop = true;
      } else if (winner) {
        kept.erase(kept.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (!drop) kept.push_back(dim);
  }
  return kept.size() == 1 ? kept[0] : opaque(Form::kMax, std::move(kept));
}

int64_t DimEnv::eval(Dim dim) const { return evaluate(dim, values_).value_or(-1); }

std::vector<int32_t> free_symbols(Dim dim) {
  if (dim.is_constant()) return {};
  const Entry& e = entry(dim);
  return e.form == Form::kFree ? std::vector<int32_t>{dim.symbol()} : e.free;
}

Dim substitute(Dim dim, const std::unordered_map<int32_t, Dim>& by) {
  if (dim.is_constant() || by.empty()) return dim;
  const Entry& e = entry(dim);
  if (e.form == Form::kFree) {
    auto found = by.find(dim.symbol());
    return found == by.end() ? dim : found->second;
  }
  if (std::none_of(e.free.begin(), e.free.end(), [&](int32_t s) { return by.count(s) != 0; })) {
    return dim;
  }
  Dim out = 0;
  for (const Term& term : e.sum) {
    Dim product = term.coefficient;
    for (int32_t atom : term.atoms) product = product * substitute(Dim::from_symbol(atom), by);
    out = out + product;
  }
  for (size_t i = 0; i < e.args.size(); ++i) {
    Dim arg = substitute(e.args[i], by);
    if (i == 0) {
      out = arg;
    } else if (e.form == Form::kMax) {
      out = max(out, arg);
    } else {
      out = e.form == Form::kFloorDiv ? floor_div(out, arg) : out * arg;
    }
  }
  return out;
}

Shape Shape::of(const std::vector<int64_t>& sizes) {
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}

void Shape::bad_axis(int axis) const {
  error(ErrorCode::kBadAxis, "axis ", axis, " of shape ", str(), " was asked for, which has ",
        rank(), " axes, numbered from 0")
      .throw_if_error();
  std::abort();  // not reached
}

bool Shape::is_constant() const {
  return std::all_of(begin(), end(), [](Dim dim) { return dim.is_constant(); });
}

Dim Shape::elements() const {
  Dim product = 1;
  for (Dim dim : dims_) product = product * dim;
  return product;
}

std::vector<int64_t> Shape::sizes() const {
  std::vector<int64_t> out;
  out.reserve(dims_.size());
  for (Dim dim : dims_) out.push_back(dim.value());
  return out;
}

Shape Shape::bind(const DimEnv& env) const {
  Shape out = *this;
  for (Dim& dim : out.dims_) {
    if (std::optional<int64_t> value = evaluate(dim, env.values())) dim = Dim(*value);
  }
  return out;
}

Shape Shape::substitute(const std::unordered_map<int32_t, Dim>& by) const {
  Shape out = *this;
  for (Dim& dim : out.dims_) dim = tracefire::substitute(dim, by);
  return out;
}

std::string Shape::str() const {
  std::string out = "(";
  for (size_t i = 0; i < dims_.size(); ++i) out += (i ? ", " : "") + dims_[i].str();
  return out + (dims_.size() == 1 ? ",)" : ")");
}

}  // namespace tracefire
