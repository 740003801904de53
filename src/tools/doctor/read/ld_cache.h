// SPDX-License-Identifier: Apache-2.0
//
// /etc/ld.so.cache: which file the loader takes for a library's name.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tracefire::doctor {

/// Name -> path, of 64-bit libraries whose name begins with "libcu", "libnv" or "libnccl". The
/// first entry of a name counts, as it does for the loader. Empty where the bytes are no cache.
std::map<std::string, std::string> parse_ld_cache(std::string_view bytes);

}  // namespace tracefire::doctor
