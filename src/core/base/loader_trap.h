// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

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

/// A file that dlopen() of a plain name must not meet, and why.
struct NamedTrap {
  const char* why = nullptr;  ///< null: there is none
  char path[4096] = "";
};

namespace loader_trap_detail {

/// Looks at `path`. True where the search ends there: at a trap, or at what the loader would take.
inline bool ends_search(const char* path, NamedTrap* trap) {
  if (access(path, F_OK) != 0) return false;
  trap->why = loader_trap(path);
  if (trap->why == nullptr) return true;
  snprintf(trap->path, sizeof(trap->path), "%s", path);
  return true;
}

/// The files of that name in the loader's cache, whose strings end in a zero byte.
inline bool ends_in_cache(const char* cache, const char* name, NamedTrap* trap) {
  const int file = open(cache, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  struct stat info {};
  const bool usable = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  const auto size = static_cast<size_t>(info.st_size);
  void* memory = usable ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return false;
  const char* const begin = static_cast<const char*>(memory);
  const char* const end = begin + size;
  const size_t length = strlen(name) + 1;
  bool ended = false;
  for (const char* at = begin; !ended && at < end;) {
    at = static_cast<const char*>(memmem(at, static_cast<size_t>(end - at), name, length));
    if (at == nullptr) break;
    const char* start = at;
    while (start > begin && start[-1] != '\0') --start;
    if (start < at && *start == '/' && at[-1] == '/') ended = ends_search(start, trap);
    at += length;
  }
  munmap(memory, size);
  return ended;
}

}  // namespace loader_trap_detail

/// The trap that dlopen(name) of a plain name would step into, going where the loader goes: what is
/// loaded already, LD_LIBRARY_PATH, the cache, the system's folders. Allocates nothing.
inline NamedTrap named_loader_trap(const char* name, const char* library_path,
                                   const char* cache = "/etc/ld.so.cache") {
  using namespace loader_trap_detail;
  NamedTrap trap;
  char path[4096];
  for (const char* list = library_path; list != nullptr && *list != '\0';) {
    const size_t length = strcspn(list, ":;");
    if (length > 0) {
      const int written =
          snprintf(path, sizeof(path), "%.*s/%s", static_cast<int>(length), list, name);
      if (written < static_cast<int>(sizeof(path)) && ends_search(path, &trap)) return trap;
    }
    list += length + (list[length] != '\0');
  }
  if (ends_in_cache(cache, name, &trap)) return trap;
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) {
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (ends_search(path, &trap)) return trap;
  }
  return trap;
}

/// dlopen() of a path or a plain name that steps into no trap: null then, and `trap` tells. What the
/// process has loaded already under a plain name is given without a search.
inline void* open_library(const char* file, const char* library_path, NamedTrap* trap) {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
  *trap = NamedTrap();
  if (strchr(file, '/') == nullptr) {
    if (void* handle = dlopen(file, kFlags | RTLD_NOLOAD)) return handle;
    *trap = named_loader_trap(file, library_path);
  } else {
    loader_trap_detail::ends_search(file, trap);
  }
  return trap->why == nullptr ? dlopen(file, kFlags) : nullptr;
}

}  // namespace tracefire
