// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/web/http_parse.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "tools/monitor/web/http_server.h"

namespace tracefire::monitor {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_ip_number(const std::string& host) {
  unsigned char buffer[16];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

}  // namespace

bool parse_request(std::string_view head, ParsedRequest* request) {
  size_t end = head.find("\r\n");
  if (end == std::string_view::npos) return false;
  const std::string_view line = head.substr(0, end);
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.find(' ', second + 1) != std::string_view::npos) {
    return false;
  }
  const std::string_view version = line.substr(second + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  request->method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const bool plain =
      std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (target.empty() || target[0] != '/' || !plain) return false;
  const size_t question = target.find('?');
  request->path = target.substr(0, question);
  if (question != std::string_view::npos) request->query = target.substr(question + 1);
  int hosts = 0;
  for (size_t begin = end + 2; begin < head.size(); begin = end + 2) {
    end = head.find("\r\n", begin);
    if (end == std::string_view::npos) return false;
    const std::string_view header = head.substr(begin, end - begin);
    const size_t colon = header.find(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const bool token = std::all_of(header.begin(), header.begin() + static_cast<long>(colon),
                                   [](char c) { return c > ' ' && c < '\x7f'; });
    const bool printable = std::all_of(header.begin(), header.end(), [](char c) {
      return c == '\t' || static_cast<unsigned char>(c) >= ' ';
    });
    if (!token || !printable) return false;
    const std::string name = lower(header.substr(0, colon));
    const std::string_view value = trimmed(header.substr(colon + 1));
    if (name == "host") {
      ++hosts;
      request->host = value;
    }
    if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
      request->has_body = true;
    }
  }
  return hosts == 1;
}

std::string query_value(std::string_view query, std::string_view name) {
  for (size_t begin = 0; begin <= query.size();) {
    const size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view pair = query.substr(begin, end - begin);
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return std::string(pair.substr(equals + 1));
    }
    begin = end + 1;
  }
  return "";
}

bool is_loopback(const std::string& host) {
  return host == "::1" || host == "localhost" || host.rfind("127.", 0) == 0;
}

bool host_allowed(const std::string& header, const std::vector<std::string>& names) {
  std::string host = lower(header);
  if (!host.empty() && host.front() == '[') {
    const size_t bracket = host.find(']');
    if (bracket == std::string::npos) return false;
    const std::string rest = host.substr(bracket + 1);
    if (!rest.empty() &&
        (rest[0] != ':' || rest.find_first_not_of("0123456789", 1) != std::string::npos)) {
      return false;
    }
    return is_ip_number(host.substr(1, bracket - 1));
  }
  const size_t colon = host.find(':');
  if (colon != std::string::npos) {
    if (host.find_first_not_of("0123456789", colon + 1) != std::string::npos) return false;
    host.resize(colon);
  }
  if (host == "localhost" || is_ip_number(host)) return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return !name.empty() && lower(name) == host; });
}

}  // namespace tracefire::monitor
