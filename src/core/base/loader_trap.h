// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace tracefire {

/// Why dlopen() must not see a file, or null: it maps what the headers promise, and a page behind
/// the end of the file ends the process with SIGBUS; a pipe is waited for without end.
/// Whatever else is wrong with a file, the loader itself refuses and says. Allocates nothing.
inline const char* loader_trap(const char* path) {
  struct stat info {};
  if (stat(path, &info) != 0) return nullptr;
  if (!S_ISREG(info.st_mode)) return "it is no regular file";
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return nullptr;
  const auto size = static_cast<uint64_t>(info.st_size);
  const char* const cut = "the file is cut off: its headers promise more bytes than it has";
  const char* trap = nullptr;
  Elf64_Ehdr head{};
  if (pread(file, &head, sizeof(head), 0) == static_cast<ssize_t>(sizeof(head)) &&
      std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
      head.e_phentsize == sizeof(Elf64_Phdr)) {
    for (unsigned i = 0; i < head.e_phnum && trap == nullptr; ++i) {
      Elf64_Phdr part{};
      const uint64_t place = head.e_phoff + uint64_t{i} * sizeof(part);
      if (place > size || pread(file, &part, sizeof(part), static_cast<off_t>(place)) !=
                              static_cast<ssize_t>(sizeof(part))) {
        trap = cut;
      } else if (part.p_type == PT_LOAD &&
                 (part.p_filesz > size || part.p_offset > size - part.p_filesz)) {
        trap = cut;
      }
    }
  }
  close(file);
  return trap;
}

}  // namespace tracefire
