// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefire/tensor.h"

/// Data for training: arrays in memory, tables read from files, the digits that come with the
/// library.
namespace tracefire::data {

/// Examples and what is to be learnt of them: row i of `y` belongs to row i of `x`.
struct Dataset {
  Tensor x;  ///< [rows, ...]
  Tensor y;  ///< [rows, ...]; undefined where only predictions are wanted
  /// Rows of x. Errors: kEmptyInput where x is undefined or has no axis.
  TRACEFIRE_API int64_t rows() const;
};

/// Rows by number, in this order, of every array.
/// Errors: kIndexOutOfRange for a row that is not there, kShapeMismatch where x and y differ.
TRACEFIRE_API Dataset take_rows(const Dataset& from, const std::vector<int32_t>& rows);
/// Every n-th row from the first on, and the others: {rest, every n-th}; no row is in both.
/// Errors: kBadAttribute for n < 2, kEmptyInput where there are fewer than two rows.
TRACEFIRE_API std::pair<Dataset, Dataset> split_every(const Dataset& from, int64_t n);

/// Numbers of a text file, row-major.
struct TRACEFIRE_API Table {
  std::string source;              ///< where it was read: a path, for messages
  std::vector<std::string> names;  ///< of the columns; empty without a header
  int64_t rows = 0, columns = 0;
  std::vector<double> values;  ///< [rows, columns]

  /// Columns [first, first + count) as f32 [rows, count]; count -1: up to the last.
  /// Errors: kIndexOutOfRange for columns that are not there; kShapeMismatch where there are not
  /// rows x columns values.
  Tensor floats(int64_t first = 0, int64_t count = -1) const;
  /// A column of whole numbers as int32 [rows]; -1 is the last column.
  /// Errors: as floats(); kBadFile naming the first row that is no whole number of int32.
  Tensor labels(int64_t column) const;
  /// Number of the column with this name. Errors: kIndexOutOfRange listing the names.
  int64_t column(const std::string& name) const;
};

struct CsvOptions {
  bool header = false;   ///< the first line holds the columns' names
  char separator = ',';  ///< one byte; blanks around a field are left out
  /// More text than this, after decompression, is refused before memory is taken for it.
  uint64_t max_bytes = uint64_t{4} << 30;
};

/// Reads numbers separated by commas, one row a line; text compressed by gzip is recognised by its
/// first bytes. Fields may stand in double quotes; empty lines are skipped; "nan" and "inf" are
/// read as such, an empty field is an error.
/// Errors, with file, line and column: kFileNotFound; kBadFile for a field that is no number, and
/// for damaged compressed data; kRaggedRows; kEmptyInput for a file without a row of numbers;
/// kBadSetting for options that cannot be.
TRACEFIRE_API Table read_csv(const std::string& path, const CsvOptions& options = {});
/// The same from memory; `source` names it in messages.
TRACEFIRE_API Table parse_csv(std::string_view text, const CsvOptions& options = {},
                              const std::string& source = "text");

/// The 1,797 scanned digits of 8 x 8 pixels from the UCI Optical Recognition of Handwritten Digits
/// data set (test part; E. Alpaydin, C. Kaynak 1998; CC BY 4.0), as scikit-learn ships them and
/// embedded in this library. x: f32 [1797, 64] in 0 … 1, y: int32 [1797] in 0 … 9.
TRACEFIRE_API Dataset digits();

}  // namespace tracefire::data
