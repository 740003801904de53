// SPDX-License-Identifier: Apache-2.0
#include "core/base/location.h"

#include <mutex>
#include <unordered_set>

namespace tracefire {

std::string_view Location::file_name() const {
  if (!file) return {};
  return file_bytes < 0 ? std::string_view(file)
                        : std::string_view(file, static_cast<size_t>(file_bytes));
}

std::string Location::str() const {
  if (!file) return "";
  return std::string(file_name()) + ":" + std::to_string(line);
}

Location make_location(const std::string& file, int32_t line) {
  if (file.empty()) return {};
  // Never destroyed: locations may be printed while the process ends.
  static std::mutex* mutex = new std::mutex;
  static auto* files = new std::unordered_set<std::string>;
  std::lock_guard<std::mutex> lock(*mutex);
  return {files->insert(file).first->c_str(), line, static_cast<int32_t>(file.size())};
}

}  // namespace tracefire
