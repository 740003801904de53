// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/status.h"
#include "core/base/text.h"
#include "tracefire/data.h"
#include "tracefire/ops.h"

namespace tracefire::data {
namespace {

/// The number of a column that may be counted from the end.
int64_t resolve_column(const Table& table, int64_t column) {
  const int64_t at = column < 0 ? column + table.columns : column;
  if (at < 0 || at >= table.columns) {
    error(ErrorCode::kIndexOutOfRange, table.source, " has no column ", column, "; it has ",
          table.columns, ", numbered from 0 (or from -1, the last)")
        .throw_if_error();
  }
  return at;
}

void check_table(const Table& table) {
  if (table.rows >= 0 && table.columns >= 0) {
    const Dim wanted = Dim(table.rows) * Dim(table.columns);  // saturates
    if (static_cast<int64_t>(table.values.size()) == wanted.value()) return;
  }
  error(ErrorCode::kShapeMismatch, table.source, ": a table of ", table.rows, " rows and ",
        table.columns, " columns has ", table.values.size(), " values")
      .throw_if_error();
}

}  // namespace

int64_t Dataset::rows() const {
  if (!x.defined() || x.rank() == 0) {
    error(ErrorCode::kEmptyInput, "x ", x.defined() ? "is a scalar" : "is missing",
          "; it needs an axis of rows, [rows, ...]")
        .throw_if_error();
  }
  return x.sizes()[0];
}

Dataset take_rows(const Dataset& from, const std::vector<int32_t>& rows) {
  const int64_t count = from.rows();
  for (int32_t row : rows) {
    if (row >= 0 && row < count) continue;
    error(ErrorCode::kIndexOutOfRange, "row ", row, " was asked of data with ", count,
          " rows, numbered from 0")
        .throw_if_error();
  }
  if (from.y.defined() && (from.y.rank() == 0 || from.y.sizes()[0] != count)) {
    error(ErrorCode::kShapeMismatch, "x is ", from.x.shape().str(), " and y ", from.y.shape().str(),
          "; both need the same number of rows")
        .throw_if_error();
  }
  const Tensor index = Tensor::of(rows, {static_cast<int64_t>(rows.size())});
  return {gather(from.x, index), from.y.defined() ? gather(from.y, index) : Tensor()};
}

std::pair<Dataset, Dataset> split_every(const Dataset& from, int64_t n) {
  if (n < 2) {
    error(ErrorCode::kBadAttribute, "split_every got n = ", n, "; it must be at least 2")
        .throw_if_error();
  }
  const int64_t count = from.rows();
  if (count < 2) {
    error(ErrorCode::kEmptyInput, "split_every got ", count, " rows; both parts need at least one")
        .throw_if_error();
  }
  std::vector<int32_t> rest, chosen;
  for (int64_t row = 0; row < count; ++row) {
    (row % n == 0 ? chosen : rest).push_back(static_cast<int32_t>(row));
  }
  return {take_rows(from, rest), take_rows(from, chosen)};
}

Tensor Table::floats(int64_t first, int64_t count) const {
  check_table(*this);
  const int64_t begin = resolve_column(*this, first);
  const int64_t width = count < 0 ? columns - begin : count;
  if (width > columns - begin) {
    error(ErrorCode::kIndexOutOfRange, source, ": ", width, " columns from ", begin,
          " on were asked for; it has ", columns)
        .throw_if_error();
  }
  std::vector<float> out;
  out.reserve(static_cast<size_t>(rows * width));
  for (int64_t row = 0; row < rows; ++row) {
    const auto line = values.begin() + row * columns + begin;
    for (auto value = line; value != line + width; ++value) {
      out.push_back(static_cast<float>(*value));
    }
  }
  return Tensor::of(out, {rows, width});
}

Tensor Table::labels(int64_t column) const {
  check_table(*this);
  const int64_t at = resolve_column(*this, column);
  std::vector<int32_t> out;
  out.reserve(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    const double value = values[static_cast<size_t>(row * columns + at)];
    if (!(value == std::floor(value) && std::abs(value) <= 2147483647.0)) {
      error(ErrorCode::kBadFile, source, ", row ", row, ", column ", at + 1, ": the label is ",
            value, "; expected a whole number of 32 bits")
          .throw_if_error();
    }
    out.push_back(static_cast<int32_t>(value));
  }
  return Tensor::of(out, {rows});
}

int64_t Table::column(const std::string& name) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int64_t>(i);
  }
  const std::string close =
      closest_name(name, std::vector<std::string_view>(names.begin(), names.end()));
  std::string known;
  for (const std::string& other : names) known += (known.empty() ? "" : ", ") + other;
  error(ErrorCode::kIndexOutOfRange, source, " has no column '", name, "'",
        close.empty() ? "" : "; did you mean '" + close + "'?",
        " Columns: ", known.empty() ? "none is named (CsvOptions::header)" : known)
      .throw_if_error();
  return -1;
}

}  // namespace tracefire::data
