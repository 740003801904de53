// SPDX-License-Identifier: Apache-2.0
// gzip (RFC 1952) around deflate (RFC 1951): Huffman codes decoded bit by bit with canonical
// counts, which is fast enough for data that is read once, and small enough to be checked by eye
// and fuzzer.
#include "lib/data/inflate.h"

#include <array>

namespace tracefire::data {
namespace {

constexpr int kMaxBits = 15;       // of a code
constexpr int kMaxLiterals = 286;  // literal and length codes
constexpr int kMaxDistances = 30;

/// Bits of the data, lowest first, and bytes. Reading past the end sets `failed`.
class Bits {
 public:
  Bits(std::string_view data, size_t at) : data_(data), at_(at) {}

  uint32_t take(int count) {
    while (have_ < count) {
      if (at_ >= data_.size()) {
        failed_ = true;
        return 0;
      }
      hold_ |= static_cast<uint32_t>(static_cast<uint8_t>(data_[at_++])) << have_;
      have_ += 8;
    }
    const uint32_t value = hold_ & ((1u << count) - 1);
    hold_ >>= count;
    have_ -= count;
    return value;
  }
  /// Drops the rest of the current byte.
  void align() {
    hold_ = 0;
    have_ = 0;
  }
  /// The next `count` whole bytes, after align(); empty and failed where they are not there.
  std::string_view bytes(size_t count) {
    if (count > data_.size() - at_) {
      failed_ = true;
      return {};
    }
    at_ += count;
    return data_.substr(at_ - count, count);
  }
  bool failed() const { return failed_; }
  size_t at() const { return at_; }

 private:
  std::string_view data_;
  size_t at_;
  uint32_t hold_ = 0;
  int have_ = 0;
  bool failed_ = false;
};

/// A canonical Huffman code: how many symbols have each length, and the symbols in order of code.
struct Code {
  std::array<uint16_t, kMaxBits + 1> count{};
  std::array<uint16_t, kMaxLiterals + 2> symbol{};

  /// From the length of each symbol's code. False where lengths are no code: oversubscribed, or
  /// incomplete with more than one symbol.
  bool build(const uint8_t* lengths, int symbols) {
    count.fill(0);
    for (int i = 0; i < symbols; ++i) ++count[lengths[i]];
    int left = 1;
    for (int bits = 1; bits <= kMaxBits; ++bits) {
      left = 2 * left - count[static_cast<size_t>(bits)];
      if (left < 0) return false;
    }
    std::array<uint16_t, kMaxBits + 2> first{};
    for (size_t bits = 1; bits <= kMaxBits; ++bits) {
      first[bits + 1] = static_cast<uint16_t>(first[bits] + count[bits]);
    }
    for (int i = 0; i < symbols; ++i) {
      if (lengths[i] != 0) symbol[first[lengths[i]]++] = static_cast<uint16_t>(i);
    }
    const int used = symbols - count[0];
    return left == 0 || used <= 1;
  }

  /// The next symbol, or -1 where the bits are no code.
  int decode(Bits* bits) const {
    int code = 0, first = 0, index = 0;
    for (size_t length = 1; length <= kMaxBits; ++length) {
      code |= static_cast<int>(bits->take(1));
      if (bits->failed()) return -1;
      const int here = count[length];
      if (code - first < here) return symbol[static_cast<size_t>(index + code - first)];
      index += here;
      first = 2 * (first + here);
      code *= 2;
    }
    return -1;
  }
};

constexpr std::array<uint16_t, 29> kLengthBase = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                  15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                  67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<uint8_t, 29> kLengthExtra = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                  2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<uint16_t, 30> kDistanceBase = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::array<uint8_t, 30> kDistanceExtra = {0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                                    4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                                    9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

/// One deflate stream.
class Inflate {
 public:
  Inflate(Bits* bits, std::string* out, uint64_t max_bytes)
      : bits_(*bits), out_(*out), start_(out->size()), max_bytes_(max_bytes) {}

  /// Null, or what is wrong with the data.
  const char* run() {
    for (bool last = false; !last;) {
      last = bits_.take(1) != 0;
      const uint32_t kind = bits_.take(2);
      if (bits_.failed()) return kCut;
      const char* wrong = kind == 0   ? stored()
                          : kind == 1 ? fixed()
                          : kind == 2 ? dynamic()
                                      : "a block has the reserved type";
      if (wrong != nullptr) return wrong;
    }
    return nullptr;
  }

 private:
  static constexpr const char* kCut = "the data ends too early";
  static constexpr const char* kLarge = "the text is larger than the limit (max_bytes)";

  const char* stored() {
    bits_.align();
    const std::string_view head = bits_.bytes(4);
    if (bits_.failed()) return kCut;
    const auto byte = [&](size_t i) {
      return static_cast<uint32_t>(static_cast<uint8_t>(head[i]));
    };
    const uint32_t length = byte(0) | byte(1) << 8, check = byte(2) | byte(3) << 8;
    if (length != (~check & 0xffffu)) return "the length of a stored block is damaged";
    const std::string_view body = bits_.bytes(length);
    if (bits_.failed()) return kCut;
    if (out_.size() + length > max_bytes_) return kLarge;
    out_.append(body);
    return nullptr;
  }

  const char* fixed() {
    std::array<uint8_t, 288> lengths;
    for (size_t i = 0; i < 288; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    literals_.build(lengths.data(), 288);
    lengths.fill(5);
    distances_.build(lengths.data(), kMaxDistances);
    return codes();
  }

  const char* dynamic() {
    constexpr std::array<uint8_t, 19> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    const int literals = static_cast<int>(bits_.take(5)) + 257;
    const int distances = static_cast<int>(bits_.take(5)) + 1;
    const auto given = static_cast<size_t>(bits_.take(4)) + 4;
    if (bits_.failed()) return kCut;
    if (literals > kMaxLiterals || distances > kMaxDistances) return "a block has too many codes";
    std::array<uint8_t, kMaxLiterals + kMaxDistances> lengths{};
    for (size_t i = 0; i < given; ++i) lengths[kOrder[i]] = static_cast<uint8_t>(bits_.take(3));
    if (bits_.failed()) return kCut;
    Code of_lengths;
    if (!of_lengths.build(lengths.data(), 19)) return kBadCode;
    lengths.fill(0);
    const auto total = static_cast<size_t>(literals + distances);
    for (size_t i = 0; i < total;) {
      const int symbol = of_lengths.decode(&bits_);
      if (symbol < 0) return bits_.failed() ? kCut : kBadCode;
      if (symbol < 16) {
        lengths[i++] = static_cast<uint8_t>(symbol);
        continue;
      }
      if (symbol == 16 && i == 0) return "a block repeats a length before the first";
      const uint8_t value = symbol == 16 ? lengths[i - 1] : uint8_t{0};
      const size_t times = symbol == 16   ? 3 + bits_.take(2)
                           : symbol == 17 ? 3 + bits_.take(3)
                                          : 11 + bits_.take(7);
      if (bits_.failed()) return kCut;
      if (times > total - i) return "a block repeats a length too often";
      for (size_t k = 0; k < times; ++k) lengths[i++] = value;
    }
    if (lengths[256] == 0) return "a block has no code for its end";
    if (!literals_.build(lengths.data(), literals)) return kBadCode;
    if (!distances_.build(lengths.data() + literals, distances)) return kBadCode;
    return codes();
  }

  const char* codes() {
    while (true) {
      const int symbol = literals_.decode(&bits_);
      if (symbol < 0) return bits_.failed() ? kCut : kBadCode;
      if (symbol == 256) return nullptr;
      if (symbol < 256) {
        if (out_.size() >= max_bytes_) return kLarge;
        out_.push_back(static_cast<char>(symbol));
        continue;
      }
      const auto l = static_cast<size_t>(symbol - 257);
      if (l >= kLengthBase.size()) return kBadCode;
      const size_t length = kLengthBase[l] + bits_.take(kLengthExtra[l]);
      const int d = distances_.decode(&bits_);
      if (bits_.failed()) return kCut;
      if (d < 0 || d >= kMaxDistances) return kBadCode;
      const auto place = static_cast<size_t>(d);
      const size_t distance = kDistanceBase[place] + bits_.take(kDistanceExtra[place]);
      if (bits_.failed()) return kCut;
      if (distance > out_.size() - start_) return "a copy reaches before the begin of the text";
      if (out_.size() + length > max_bytes_) return kLarge;
      for (size_t i = 0; i < length; ++i) out_.push_back(out_[out_.size() - distance]);
    }
  }

  static constexpr const char* kBadCode = "a code is damaged";

  Bits& bits_;
  std::string& out_;
  const size_t start_;  ///< of this stream's text: copies reach no further back
  const uint64_t max_bytes_;
  Code literals_, distances_;
};

/// CRC-32 of RFC 1952.
uint32_t crc32(std::string_view data) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      made[i] = c;
    }
    return made;
  }();
  uint32_t sum = ~0u;
  for (char c : data) sum = table[(sum ^ static_cast<uint8_t>(c)) & 0xff] ^ (sum >> 8);
  return ~sum;
}

uint32_t little32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<uint8_t>(bytes[i])} << 8 * i;
  return value;
}

/// Place after a member's header, or 0 where it is damaged.
size_t after_header(std::string_view data, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(data[i]); };
  if (data.size() - at < 10 || !is_gzip(data.substr(at)) || byte(at + 2) != 8) return 0;
  const uint8_t flags = byte(at + 3);
  if ((flags & 0xe0) != 0) return 0;
  at += 10;
  if ((flags & 4) != 0) {  // extra field
    if (data.size() - at < 2) return 0;
    const size_t length = byte(at) | static_cast<size_t>(byte(at + 1)) << 8;
    if (data.size() - at - 2 < length) return 0;
    at += 2 + length;
  }
  for (const uint8_t text : {8, 16}) {  // name, comment
    if ((flags & text) == 0) continue;
    const size_t end = data.find('\0', at);
    if (end == std::string_view::npos) return 0;
    at = end + 1;
  }
  if ((flags & 2) != 0) at += 2;  // sum of the header
  return at <= data.size() ? at : 0;
}

}  // namespace

bool is_gzip(std::string_view data) { return data.substr(0, 2) == "\x1f\x8b"; }

Result<std::string> gunzip(std::string_view data, uint64_t max_bytes, const std::string& source) {
  std::string out;
  const auto damaged = [&](size_t at, const char* wrong) {
    return error(ErrorCode::kBadFile, source, ": compressed data, byte ", at, ": ", wrong,
                 "; expected a whole gzip file. Copy or compress it again");
  };
  size_t at = 0;
  while (at < data.size()) {
    const size_t body = after_header(data, at);
    if (body == 0) return damaged(at, at == 0 ? "the header is damaged" : "more data follows");
    Bits bits(data, body);
    const size_t begin = out.size();
    if (const char* wrong = Inflate(&bits, &out, max_bytes).run()) return damaged(bits.at(), wrong);
    bits.align();
    const std::string_view tail = bits.bytes(8);
    if (bits.failed()) return damaged(bits.at(), "the data ends too early");
    const std::string_view text = std::string_view(out).substr(begin);
    if (little32(tail) != crc32(text) ||
        little32(tail.substr(4)) != static_cast<uint32_t>(text.size())) {
      return damaged(bits.at(), "sum or length do not fit the text");
    }
    at = bits.at();
    while (at < data.size() && data[at] == '\0') ++at;  // padding of tapes and tar
  }
  if (at == 0) return damaged(0, "the file is empty");
  return out;
}

}  // namespace tracefire::data
