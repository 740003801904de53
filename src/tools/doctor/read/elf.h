// SPDX-License-Identifier: Apache-2.0
//
// The dynamic section of a shared library, read without loading it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tracefire::doctor {

struct ElfFacts {
  bool valid = false;
  bool is64 = false;
  uint16_t machine = 0;  ///< EM_X86_64 62, EM_AARCH64 183
  std::string soname;
  std::vector<std::string> needed;
  std::vector<std::string> rpath, runpath;  ///< as written, with $ORIGIN
  std::vector<std::string> version_needs;   ///< "GLIBC_2.34", …
  std::string module_version;               ///< "version=" of a kernel module's .modinfo
};

/// Gives at most `size` bytes at an offset; shorter where the file ends.
using ReadAt = std::function<std::string(uint64_t offset, size_t size)>;

/// Never reads more than about a megabyte, whatever the headers say.
ElfFacts read_elf(const ReadAt& read_at);

}  // namespace tracefire::doctor
