// SPDX-License-Identifier: Apache-2.0
#include "core/base/dim_text.h"

#include <algorithm>
#include <vector>

#include "core/base/dim_table.h"

namespace tracefire {
namespace {

using Names = std::function<std::string(int32_t)>;

std::string joined(std::vector<std::string> parts, const char* separator) {
  std::sort(parts.begin(), parts.end());
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : separator) + part;
  return out;
}

/// "N * M * 3" for atoms and the size of the coefficient, whose sign the sum writes.
std::string term_text(const dims::Term& term, const Names& name) {
  std::vector<std::string> atoms;
  for (int32_t atom : term.atoms) atoms.push_back(dim_text(Dim::from_symbol(atom), name));
  std::string out = joined(std::move(atoms), " * ");
  uint64_t size = term.coefficient < 0 ? 0 - static_cast<uint64_t>(term.coefficient)
                                       : static_cast<uint64_t>(term.coefficient);
  if (out.empty()) return std::to_string(size);
  return size == 1 ? out : out + " * " + std::to_string(size);
}

std::string sum_text(const dims::Sum& sum, const Names& name) {
  std::vector<std::string> plus, minus;
  std::string plus_constant, minus_constant;
  for (const dims::Term& term : sum) {
    std::string text = term_text(term, name);
    if (term.atoms.empty()) {
      (term.coefficient < 0 ? minus_constant : plus_constant) = text;
    } else {
      (term.coefficient < 0 ? minus : plus).push_back(text);
    }
  }
  std::string out = joined(std::move(plus), " + ");
  if (!plus_constant.empty()) out += (out.empty() ? "" : " + ") + plus_constant;
  if (out.empty()) out = "0";
  if (!minus.empty()) out += " - " + joined(std::move(minus), " - ");
  if (!minus_constant.empty()) out += " - " + minus_constant;
  return "(" + out + ")";
}

}  // namespace

std::string dim_text(Dim dim, const Names& name) {
  if (dim.is_constant()) return std::to_string(dim.value());
  const dims::Entry& e = dims::Table::instance().at(dim.symbol());
  std::vector<std::string> args;
  std::string constant;
  for (Dim arg : e.args) {
    if (arg.is_constant() && e.form != dims::Form::kFloorDiv) {
      constant = std::to_string(arg.value());
    } else {
      args.push_back(dim_text(arg, name));
    }
  }
  switch (e.form) {
    case dims::Form::kFree:
      return name(dim.symbol());
    case dims::Form::kSum:
      return sum_text(e.sum, name);
    case dims::Form::kFloorDiv:
      return "(" + args[0] + " // " + args[1] + ")";
    case dims::Form::kMax:
      return "max(" + joined(std::move(args), ", ") + (constant.empty() ? "" : ", " + constant) +
             ")";
    case dims::Form::kProduct:
      return "(" + joined(std::move(args), " * ") + (constant.empty() ? "" : " * " + constant) +
             ")";
  }
  return "";
}

std::string symbol_name(int32_t symbol) { return dims::Table::instance().at(symbol).name; }

bool is_free_symbol(int32_t symbol) {
  return dims::Table::instance().at(symbol).form == dims::Form::kFree;
}

}  // namespace tracefire
