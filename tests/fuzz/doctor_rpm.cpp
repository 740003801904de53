// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any bytes as a database of rpm, any text as what pacman, apk and rpm wrote.
#include <algorithm>

#include "tools/doctor/read/system_packages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::map<std::string, SystemPackage> out;
  ReadAt read = [&](uint64_t at, size_t count) {
    return at >= text.size() ? std::string()
                             : std::string(text.substr(static_cast<size_t>(at), count));
  };
  add_rpm_database(read, &out);
  // Past the magic words, so that little is lost on finding them.
  std::string made = std::string("SQLite format 3\0", 16) + std::string(text);
  ReadAt second = [&](uint64_t at, size_t count) {
    return at >= made.size() ? std::string() : made.substr(static_cast<size_t>(at), count);
  };
  add_rpm_database(second, &out);
  add_pacman_folder(text, &out);
  add_apk_installed(text, &out);
  add_rpm_lines(text, &out);
  return 0;
}
