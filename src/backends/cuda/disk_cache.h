// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/base/status.h"

namespace tracefire::cuda {

/// Compiled kernels on disk, below the setting cache_directory. Many processes may share it: files
/// are written beside their place and moved there. An entry holds its whole key, so that two keys
/// never mix. Failures of the disk are not errors: the kernel is then compiled again.
class DiskCache {
 public:
  /// `directory` empty: nothing is kept. `limit` in bytes; the entry used longest ago goes first.
  DiskCache(std::string directory, size_t limit)
      : directory_(std::move(directory)), limit_(limit) {}

  /// The cache that the settings describe.
  static DiskCache from_settings(const std::string& kind);

  std::optional<std::string> find(const std::string& key) const;
  void put(const std::string& key, const std::string& value) const;

 private:
  std::string file_of(const std::string& key) const;
  void shrink() const;

  std::string directory_;
  size_t limit_;
};

}  // namespace tracefire::cuda
