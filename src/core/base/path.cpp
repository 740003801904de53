// SPDX-License-Identifier: Apache-2.0
#include "core/base/path.h"

namespace tracefire {

Status check_path(const std::string& path, ErrorCode code) {
  const size_t at = path.find('\0');
  if (at == std::string::npos) return {};
  std::string shown;
  for (char c : path) shown += c == '\0' ? std::string("\\0") : std::string(1, c);
  return error(code, "the path '", shown, "' holds a NUL byte at ", at,
               "; expected the name of a file. Check where the path comes from");
}

}  // namespace tracefire
