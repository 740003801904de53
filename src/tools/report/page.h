// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::report {

/// Numbers formatted as printf does, at most 511 characters. Texts go through html_text().
template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[512];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

/// A page in one file: no scripts, nothing loaded from elsewhere (its policy forbids both), light
/// or dark as the reader's system is. `body` is markup; `title` is text.
std::string page(std::string_view title, const std::string& body);

/// A cell of a table, escaped; numbers are set to the right.
std::string cell(std::string_view text, bool number = false);

/// A column's heading.
struct Column {
  const char* name;
  bool number = false;
};
/// A table with one cell a column; all texts are escaped.
std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows);

/// A point of a curve.
struct CurvePoint {
  double x, y;
};
/// A curve over its points as SVG, filled below. `y_top` and the labels of the x axis are texts.
std::string curve(std::string_view title, const std::vector<CurvePoint>& points,
                  const std::string& y_top, const std::string& x_first, const std::string& x_last);

/// A lane of a time line: slices of one colour.
struct Lane {
  struct Slice {
    double start, span;  ///< in the unit of the time line
    std::string name;
  };
  std::string name;
  const char* colour;
  std::vector<Slice> slices;
};
/// A time line as SVG, one lane below the other. Slices of one pixel are joined; `from` to `to` is
/// what it shows, labelled by two texts.
std::string time_line(std::string_view title, const std::vector<Lane>& lanes, double from,
                      double to, const std::string& first, const std::string& last);

/// A part of a whole as a bar.
struct Part {
  std::string name;
  double share;  ///< 0 to 1
};
std::string bars(std::string_view title, const std::vector<Part>& parts);

/// "1.5 MiB", "12 B".
std::string bytes_text(double bytes);
/// "12.3 us", "1.2 ms", "3.4 s".
std::string duration_text(double us);

}  // namespace tracefire::report
