// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

namespace tracefire::inject {

/// Writes varints and texts into a buffer of fixed size; what does not fit sets `full`, and the
/// bytes are then to be thrown away. Allocates nothing.
class Packer {
 public:
  Packer(uint8_t* data, size_t capacity) : data_(data), capacity_(capacity) {}

  void number(uint64_t value) {
    if (capacity_ - size_ < 10) {
      full_ = true;
      return;
    }
    while (value >= 0x80) {
      data_[size_++] = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    data_[size_++] = static_cast<uint8_t>(value);
  }
  void signed_number(int64_t value) {
    number((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void text(const char* begin, size_t length) {
    number(length);
    if (full_ || capacity_ - size_ < length) {
      full_ = true;
      return;
    }
    if (length != 0) std::memcpy(data_ + size_, begin, length);
    size_ += length;
  }
  void text(const char* zero_ended) { text(zero_ended, std::strlen(zero_ended)); }
  void fixed32(uint32_t value) { fixed(&value, sizeof(value)); }
  void fixed64(uint64_t value) { fixed(&value, sizeof(value)); }

  size_t size() const { return size_; }
  bool full() const { return full_; }
  uint8_t* data() { return data_; }
  /// Goes on after the first `size` bytes; whether something did not fit stays known.
  void cut_to(size_t size) { size_ = size; }
  size_t room() const { return capacity_ - size_; }

 private:
  void fixed(const void* value, size_t bytes) {
    if (capacity_ - size_ < bytes) {
      full_ = true;
      return;
    }
    std::memcpy(data_ + size_, value, bytes);
    size_ += bytes;
  }

  uint8_t* data_;
  size_t capacity_;
  size_t size_ = 0;
  bool full_ = false;
};

}  // namespace tracefire::inject
