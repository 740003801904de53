// SPDX-License-Identifier: Apache-2.0
// Tables of numbers from text. Every error names file, line and column (both from 1).
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/base/guard.h"
#include "core/base/path.h"
#include "lib/data/gzip.h"
#include "tracefire/data.h"

namespace tracefire::data {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// What a message shows of a field.
std::string shown(std::string_view field) {
  std::string text;
  for (char c : field.substr(0, 24)) text += c >= ' ' && c < '\x7f' ? c : '?';
  return "'" + text + (field.size() > 24 ? "...'" : "'");
}

class Parser {
 public:
  Parser(std::string_view text, const CsvOptions& options, const std::string& source)
      : text_(text), options_(options) {
    table_.source = source;
  }

  Result<Table> run() {
    if (text_.substr(0, 3) == "\xef\xbb\xbf") text_.remove_prefix(3);  // mark of UTF-8
    bool header = options_.header;
    while (!text_.empty()) {
      ++line_;
      const size_t end = std::min(text_.find('\n'), text_.size());
      const std::string_view line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      if (trim(line).empty()) continue;
      TF_RETURN_IF_ERROR(header ? read_names(line) : read_row(line));
      header = false;
    }
    if (table_.rows == 0) {
      return error(ErrorCode::kEmptyInput, table_.source, " has no row of numbers",
                   options_.header ? " below its header" : "",
                   "; expected one row a line, numbers separated by '",
                   std::string(1, options_.separator), "'");
    }
    return std::move(table_);
  }

 private:
  /// The next field of `rest`, without blanks and quotes. Fails on a quote that does not close.
  Status next_field(std::string_view* rest, std::string_view* field, bool* more) {
    ++column_;
    std::string_view from = *rest;
    size_t begin = 0;
    while (begin < from.size() && is_blank(from[begin]) && from[begin] != options_.separator) {
      ++begin;
    }
    size_t after = 0;
    if (begin < from.size() && from[begin] == '"') {
      const size_t close = from.find('"', begin + 1);
      if (close == std::string_view::npos) return wrong("a quote does not close on its line");
      *field = from.substr(begin + 1, close - begin - 1);
      after = close + 1;
      while (after < from.size() && is_blank(from[after]) && from[after] != options_.separator) {
        ++after;
      }
      if (after < from.size() && from[after] != options_.separator) {
        return wrong("text follows a closing quote");
      }
    } else {
      after = std::min(from.find(options_.separator), from.size());
      *field = trim(from.substr(0, after));
    }
    *more = after < from.size();
    rest->remove_prefix(std::min(after + 1, from.size()));
    return {};
  }

  Status wrong(const std::string& what) const {
    return error(ErrorCode::kBadFile, table_.source, ", line ", line_, ", column ", column_, ": ",
                 what, "; expected a number");
  }

  Status read_names(std::string_view line) {
    column_ = 0;
    for (bool more = true; more;) {
      std::string_view field;
      TF_RETURN_IF_ERROR(next_field(&line, &field, &more));
      table_.names.emplace_back(trim(field));
    }
    table_.columns = column_;
    return check_names();
  }

  /// A name that two columns have would be answered with the first. Columns may have no name.
  Status check_names() const {
    std::vector<std::string_view> sorted(table_.names.begin(), table_.names.end());
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i].empty() || sorted[i] != sorted[i - 1]) continue;
      return error(ErrorCode::kBadFile, table_.source, ", line ", line_,
                   ": two columns are called ", shown(sorted[i]),
                   "; expected a name of its own for each. Rename one of them");
    }
    return {};
  }

  Status read_row(std::string_view line) {
    column_ = 0;
    for (bool more = true; more;) {
      std::string_view field;
      TF_RETURN_IF_ERROR(next_field(&line, &field, &more));
      if (table_.columns > 0 && column_ > table_.columns) break;
      double value = 0;
      TF_RETURN_IF_ERROR(number(trim(field), &value));
      table_.values.push_back(value);
    }
    if (table_.columns == 0) table_.columns = column_;
    if (column_ != table_.columns) {
      return error(ErrorCode::kRaggedRows, table_.source, ", line ", line_, " has ",
                   column_ > table_.columns ? "more than " : "", std::min(column_, table_.columns),
                   " fields; expected ", table_.columns, " as in the first line");
    }
    ++table_.rows;
    return {};
  }

  Status number(std::string_view field, double* value) const {
    std::string_view digits = field;
    if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
    if (code == std::errc::result_out_of_range && end == digits.data() + digits.size()) {
      return wrong(shown(field) + " is beyond the range of a number");
    }
    if (code != std::errc() || end != digits.data() + digits.size() ||
        (digits.size() != field.size() && digits.front() == '-')) {
      return wrong(field.empty() ? "the field is empty" : shown(field) + " is no number");
    }
    return {};
  }

  std::string_view text_;
  const CsvOptions& options_;
  Table table_;
  int64_t line_ = 0, column_ = 0;
};

Status check_options(const CsvOptions& options) {
  const char c = options.separator;
  const bool taken = c == '"' || c == '\n' || c == '\r' || c == '\0' || c == '.' || c == '-' ||
                     c == '+' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                     (c >= 'A' && c <= 'Z');
  if (!taken) return {};
  return error(ErrorCode::kBadSetting, "separator is '", std::string(1, c),
               "'; it must be a byte that is no part of a number, a quote or an end of line");
}

Result<Table> parse(std::string_view text, const CsvOptions& options, const std::string& source) {
  TF_RETURN_IF_ERROR(check_options(options));
  std::string plain;
  if (is_gzip(text)) {
    TF_ASSIGN(plain, gunzip(text, options.max_bytes, source));
    text = plain;
  }
  if (text.size() > options.max_bytes) {
    return error(ErrorCode::kBadFile, source, " has ", text.size(), " bytes; expected at most ",
                 options.max_bytes, ". Raise CsvOptions::max_bytes");
  }
  return Parser(text, options, source).run();
}

Result<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  TF_RETURN_IF_ERROR(check_path(path, ErrorCode::kFileNotFound));
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (!failure && std::filesystem::is_directory(status)) {
    return error(ErrorCode::kFileNotFound, "'", path, "' is a folder; expected a file");
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) {
    return error(ErrorCode::kFileNotFound, "'", path,
                 "' cannot be read: ", std::generic_category().message(errno),
                 ". Check the path and its permissions");
  }
  std::string content;
  std::array<char, 1 << 16> block;
  while (size_t count = std::fread(block.data(), 1, block.size(), file.get())) {
    if (content.size() + count > max_bytes) {
      return error(ErrorCode::kBadFile, "'", path, "' has more than ", max_bytes,
                   " bytes. Raise CsvOptions::max_bytes");
    }
    content.append(block.data(), count);
  }
  if (std::ferror(file.get()) != 0) {
    return error(ErrorCode::kFileNotFound, "reading '", path,
                 "' failed: ", std::generic_category().message(errno));
  }
  return content;
}

}  // namespace

Table parse_csv(std::string_view text, const CsvOptions& options, const std::string& source) {
  return guarded([&] { return parse(text, options, source); }).value();
}

Table read_csv(const std::string& path, const CsvOptions& options) {
  return guarded([&]() -> Result<Table> {
           TF_ASSIGN(const std::string content, read_file(path, options.max_bytes));
           return parse(content, options, path);
         })
      .value();
}

}  // namespace tracefire::data
