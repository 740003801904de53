// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tracefire::report {

/// One message of protobuf's wire format, written field by field. The files of TensorBoard need a
/// dozen fields, which libprotobuf and its generated code would be out of proportion for.
class Message {
 public:
  void number(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
  }
  /// A double, 64 bits on the wire.
  void real(int field, double value) {
    varint(static_cast<uint64_t>(field) << 3 | 1);
    append(&value, sizeof value);
  }
  /// A float, 32 bits on the wire.
  void single(int field, float value) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    append(&value, sizeof value);
  }
  /// A string or bytes field.
  void text(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& inner) { text(field, inner.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void append(const void* value, size_t bytes) {  // little-endian, as every machine we run on
    bytes_.append(static_cast<const char*>(value), bytes);
  }
  std::string bytes_;
};

}  // namespace tracefire::report
