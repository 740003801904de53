// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tracefire::monitor {

struct ParsedRequest {
  std::string method;
  std::string path;
  std::string query;
  std::string host;  ///< the Host header as it came
  bool has_body = false;
};

/// Parses request line and headers ("\r\n" after each, without the empty line). Strict: false for a
/// path that is not absolute, a missing or second Host, a header without colon, control characters.
bool parse_request(std::string_view head, ParsedRequest* request);

/// Value of `name` in "a=1&b=2", "" where it is not there.
std::string query_value(std::string_view query, std::string_view name);

}  // namespace tracefire::monitor
