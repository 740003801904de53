// SPDX-License-Identifier: Apache-2.0
//
// Versions as packages, drivers and libraries write them, and the conditions that packages set.
#pragma once

#include <string>
#include <string_view>

namespace tracefire::doctor {

/// -1, 0 or 1. Compares the numbers between dots; what is missing is zero. A local part ("+cu124")
/// does not count; a pre-release ("rc1", "dev…", "a", "b") comes before its release.
int compare_versions(std::string_view a, std::string_view b);
/// The first `parts` numbers: minor_of("9.10.2.21", 2) is "9.10".
std::string leading(std::string_view version, int parts);
/// The first number, -1 where there is none.
int major_of(std::string_view version);
/// Local part: "cu124" of "2.6.0+cu124", "" without one.
std::string local_part(std::string_view version);
/// Without its local part.
std::string public_part(std::string_view version);
/// True where `version` meets "<2.0.0,>=1.23.5" (PEP 440 without markers; "" is always met).
bool meets(std::string_view version, std::string_view conditions);
/// True where `text` is a version as PEP 440 writes them: "2.21", "2.6.0+cu124", "3.0.0rc1".
bool is_pep440(std::string_view text);

}  // namespace tracefire::doctor
