// SPDX-License-Identifier: Apache-2.0
// Helps tests to put the emulated NVIDIA libraries into folders of their own.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "backends/nvidia/search.h"

namespace tracefire::test {

/// A folder that is removed at the end.
class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/tracefire_test_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string path(const std::string& below = "") const {
    return below.empty() ? path_ : path_ + "/" + below;
  }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    std::ofstream(path(file), std::ios::binary) << text;
  }

 private:
  std::string path_;
};

/// Sets an environment variable until the end of the scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedEnv() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

/// The emulator that the build put beside the test program.
inline std::string emulator_library() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libtf_cuda_emulator.so")
      .string();
}

/// Puts a copy of the emulator under another name ("nvidia/cu13/lib/libnvrtc.so.13"). A copy has
/// state of its own.
inline void place_copy(const TempDir& dir, const std::string& name) {
  std::filesystem::create_directories(std::filesystem::path(dir.path(name)).parent_path());
  std::filesystem::copy_file(emulator_library(), dir.path(name));
}

/// Options under which only what the test gives can be found.
inline nvidia::SearchOptions nothing_else() {
  nvidia::SearchOptions options;
  options.loaded = nullptr;
  options.loader = false;
  return options;
}

}  // namespace tracefire::test
