// SPDX-License-Identifier: Apache-2.0
//
// What the doctor reads besides the tree, and the one file that it writes.
#pragma once

#include <map>
#include <string>

namespace tracefire::doctor {

/// The environment variables of this process.
std::map<std::string, std::string> own_environment();
/// The first and the last megabytes of a file or of a pipe ("-": standard input). Returns what went
/// wrong, "" where nothing did.
std::string read_text(const std::string& path, std::string* text);
/// Why write_private() could not write there, "" where it could; leaves everything as it is.
std::string check_private(const std::string& path);
/// Whether both names are of one file that is there.
bool is_same_file(const std::string& a, const std::string& b);
/// Readable by its owner alone; a link or another user's file is not written to. Returns what went
/// wrong.
std::string write_private(const std::string& path, const std::string& text);

}  // namespace tracefire::doctor
