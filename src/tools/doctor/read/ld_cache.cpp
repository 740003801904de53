// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/read/ld_cache.h"

#include <cstdint>
#include <cstring>

namespace tracefire::doctor {

namespace {

constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr size_t kHeader = 48, kEntry = 24;  // glibc, sysdeps/generic/dl-cache.h

uint32_t word(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view name_at(std::string_view bytes, uint32_t offset) {
  if (offset >= bytes.size()) return {};
  std::string_view rest = bytes.substr(offset, 4096);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

std::map<std::string, std::string> parse_ld_cache(std::string_view bytes) {
  std::map<std::string, std::string> out;
  size_t begin = bytes.find(kMagic);  // an old-format part may stand before it
  if (begin == bytes.npos) return out;
  bytes.remove_prefix(begin);
  uint32_t count = word(bytes, kMagic.size());
  for (uint32_t i = 0; i < count && i < 200000; ++i) {
    size_t at = kHeader + size_t{i} * kEntry;
    if (at + kEntry > bytes.size()) break;
    int32_t flags = static_cast<int32_t>(word(bytes, at));
    std::string_view name = name_at(bytes, word(bytes, at + 4)),
                     path = name_at(bytes, word(bytes, at + 8));
    int abi = flags & 0xff00;
    bool is64 = abi == 0x0300 || abi == 0x0a00;  // x86-64, AArch64
    bool wanted =
        name.rfind("libcu", 0) == 0 || name.rfind("libnv", 0) == 0 || name.rfind("libnccl", 0) == 0;
    if (is64 && wanted && !path.empty() && path[0] == '/') out.emplace(name, path);
  }
  return out;
}

}  // namespace tracefire::doctor
