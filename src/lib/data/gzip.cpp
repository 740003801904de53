// SPDX-License-Identifier: Apache-2.0
// Members of a gzip file, each decompressed by libdeflate into the room that is left. libdeflate
// checks header, codes, sum and length; what it has no room for is tried again with twice the room.
#include "lib/data/gzip.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>

namespace tracefire::data {
namespace {

constexpr uint64_t kLeastRoom = uint64_t{1} << 16;

}  // namespace

bool is_gzip(std::string_view data) { return data.substr(0, 2) == "\x1f\x8b"; }

Result<std::string> gunzip(std::string_view data, uint64_t max_bytes, const std::string& source) {
  size_t at = 0;  // where a member begins
  const auto failed = [&](const auto&... what) {
    return error(ErrorCode::kBadFile, source, ": compressed data, byte ", at, ": ", what...);
  };
  constexpr const char* kCure = "; expected a whole gzip file. Copy or compress it again";
  if (data.empty()) return failed("the file is empty", kCure);
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflate(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!inflate) {
    return error(ErrorCode::kOutOfMemory, source,
                 ": no memory is left to decompress it; expected a few kilobytes. Free some");
  }
  std::string out(std::min(max_bytes, std::max(kLeastRoom, uint64_t{2} * data.size())), '\0');
  size_t used = 0;  // bytes of out that are text
  while (at < data.size()) {
    const std::string_view rest = data.substr(at);
    if (!is_gzip(rest)) return failed("what follows is not gzip", kCure);
    size_t read = 0, written = 0;
    const libdeflate_result result =
        libdeflate_gzip_decompress_ex(inflate.get(), rest.data(), rest.size(), out.data() + used,
                                      out.size() - used, &read, &written);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
      if (out.size() >= max_bytes) {
        return failed("the text is larger than the limit of ", max_bytes,
                      " bytes. Raise CsvOptions::max_bytes");
      }
      out.resize(std::min(max_bytes, uint64_t{2} * out.size()));
      continue;
    }
    if (result != LIBDEFLATE_SUCCESS) {
      return failed("what begins here is cut short or damaged", kCure);
    }
    used += written;
    at += read;
    while (at < data.size() && data[at] == '\0') ++at;  // padding of tapes and tar
  }
  out.resize(used);
  return out;
}

}  // namespace tracefire::data
