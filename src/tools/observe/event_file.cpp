// SPDX-License-Identifier: Apache-2.0
// What event files are made of: TFRecord frames and PNG images.
#include "tools/observe/event_file.h"

#include <libdeflate.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "tracefire/summary.h"

namespace tracefire::summary {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
    table[i] = value;
  }
  return table;
}

/// TensorFlow stores checksums rotated and shifted, so that a checksum over checksums is no 0.
uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

template <class Number>
void append_little_endian(std::string* out, Number value) {
  for (size_t i = 0; i < sizeof value; ++i) *out += static_cast<char>(value >> 8 * i & 0xff);
}

void append_big_endian(std::string* out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) *out += static_cast<char>(value >> shift & 0xff);
}

/// A chunk of a PNG file: length, type, data, CRC32 over type and data.
void add_chunk(std::string* out, const char* type, const std::string& data) {
  append_big_endian(out, static_cast<uint32_t>(data.size()));
  const std::string body = type + data;
  *out += body;
  append_big_endian(out, libdeflate_crc32(0, body.data(), body.size()));
}

}  // namespace

uint32_t crc32c(std::string_view data) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~0u;
  for (const char c : data) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::string tfrecord(const std::string& data) {
  std::string out;
  append_little_endian(&out, uint64_t{data.size()});
  append_little_endian(&out, masked(crc32c(out)));
  out += data;
  append_little_endian(&out, masked(crc32c(data)));
  return out;
}

std::string png(const uint8_t* pixels, int64_t height, int64_t width, int64_t channels) {
  constexpr char kColourTypes[] = {0, 4, 2, 6};  // grey, grey and alpha, RGB, RGBA
  const auto row = static_cast<size_t>(width * channels);
  std::string raw;
  raw.reserve((row + 1) * static_cast<size_t>(height));
  for (int64_t y = 0; y < height; ++y) {
    raw += '\0';  // no filter
    raw.append(reinterpret_cast<const char*>(pixels) + static_cast<size_t>(y) * row, row);
  }
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  std::string packed;
  size_t bytes = 0;
  if (compressor) {
    packed.resize(libdeflate_zlib_compress_bound(compressor.get(), raw.size()));
    bytes = libdeflate_zlib_compress(compressor.get(), raw.data(), raw.size(), packed.data(),
                                     packed.size());
  }
  if (bytes == 0) {
    error(ErrorCode::kInternal, "an image of ", width, " x ", height, " could not be compressed")
        .throw_if_error();
  }
  packed.resize(bytes);
  std::string header;
  append_big_endian(&header, static_cast<uint32_t>(width));
  append_big_endian(&header, static_cast<uint32_t>(height));
  header += {8, kColourTypes[channels - 1], 0, 0, 0};
  std::string out = "\x89PNG\r\n\x1a\n";
  add_chunk(&out, "IHDR", header);
  add_chunk(&out, "IDAT", packed);
  add_chunk(&out, "IEND", "");
  return out;
}

}  // namespace tracefire::summary
