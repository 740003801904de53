// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/base/settings.h"

namespace tracefire::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "tracefire-cache-2\n";

/// FNV-1a. It names files, whose whole key is compared, and finds values that the disk damaged.
uint64_t hash(const std::string& text) {
  uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

std::string default_directory() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') {
    return std::string(xdg) + "/tracefire";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return std::string(home) + "/.cache/tracefire";
  }
  return "";
}

/// What precedes a value in its file.
std::string head_of(const std::string& value) {
  return std::to_string(value.size()) + " " + std::to_string(hash(value)) + "\n";
}

}  // namespace

DiskCache DiskCache::from_settings(const std::string& kind) {
  const int64_t limit = settings::disk_cache_size();
  std::string directory = settings::cache_directory();
  if (directory.empty()) directory = default_directory();
  if (limit <= 0 || directory.empty()) return DiskCache("", 0);
  return DiskCache(directory + "/" + kind, static_cast<size_t>(limit));
}

std::string DiskCache::file_of(const std::string& key) const {
  char name[24];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash(key)));
  return directory_ + "/" + name;
}

std::optional<std::string> DiskCache::find(const std::string& key) const {
  if (directory_.empty()) return std::nullopt;
  const std::string path = file_of(key);
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const std::string head = kMagic + std::to_string(key.size()) + "\n" + key;
  if (text.size() < head.size() || text.compare(0, head.size(), head) != 0) return std::nullopt;
  const size_t end = text.find('\n', head.size());
  if (end == std::string::npos) return std::nullopt;
  std::string value = text.substr(end + 1);
  if (text.substr(head.size(), end + 1 - head.size()) != head_of(value)) return std::nullopt;
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return value;
}

void DiskCache::put(const std::string& key, const std::string& value) const {
  if (directory_.empty()) return;
  std::error_code failed;
  fs::create_directories(directory_, failed);
  if (failed) return;
  static std::atomic<unsigned> counter{0};
  const std::string path = file_of(key);
  const std::string part =
      path + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".part";
  {
    std::ofstream file(part, std::ios::binary);
    file << kMagic << key.size() << "\n" << key << head_of(value) << value;
    if (!file.flush()) {
      file.close();
      fs::remove(part, failed);
      return;
    }
  }
  fs::rename(part, path, failed);
  if (failed) fs::remove(part, failed);
  shrink();
}

void DiskCache::shrink() const {
  struct Entry {
    fs::file_time_type used;
    size_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  size_t total = 0;
  std::error_code ignored;
  for (fs::directory_iterator it(directory_, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    std::error_code failed;
    const size_t bytes = fs::file_size(it->path(), failed);
    if (failed) continue;
    const auto used = fs::last_write_time(it->path(), failed);
    if (failed) continue;
    total += bytes;
    entries.push_back({used, bytes, it->path()});
  }
  if (total <= limit_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_) return;
    std::error_code failed;
    if (fs::remove(entry.path, failed)) total -= entry.bytes;
  }
}

}  // namespace tracefire::cuda
