// SPDX-License-Identifier: Apache-2.0
//
// Text from outside: taken apart and made safe to show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tracefire::doctor {

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
std::vector<std::string_view> split(std::string&& text,
                                    char separator) = delete;  // it would dangle
/// Lines without their ends, "\r\n" too; at most `limit` of them.
std::vector<std::string_view> lines_of(std::string_view text, size_t limit = 200000);
std::vector<std::string_view> lines_of(std::string&& text, size_t limit = 200000) = delete;
std::string lower(std::string_view text);
bool contains(std::string_view text, std::string_view part);
/// Ignores case (ASCII).
bool contains_word(std::string_view text, std::string_view part);
/// What stands between `before` and the next of `ends` (or the end); "" where `before` is not.
std::string between(std::string_view text, std::string_view before, std::string_view ends);
/// Replaces each `from`.
std::string replace_all(std::string text, std::string_view from, std::string_view to);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// True where `text` is digits and dots and begins with a digit.
bool is_version(std::string_view text);
/// The first version ("535.183.01", "9.1") in `text` with at least one dot, or "".
std::string find_version(std::string_view text);
/// "/a/b" of "/a/b/c"; "/" at the top.
std::string parent_of(std::string_view path);
/// "c" of "/a/b/c".
std::string name_of(std::string_view path);
/// Joins and removes "//", "/./" and "/../" by text alone; never goes above "/".
std::string normal_path(std::string_view path);

/// The text for people: line ends and tabs become spaces, what would act on a terminal is spelled
/// out, what is over `limit` bytes is cut.
std::string printable(std::string_view text, size_t limit = 2000);
/// printable(), then & < > " ' as entities.
std::string html_text(std::string_view text);

}  // namespace tracefire::doctor
