// SPDX-License-Identifier: Apache-2.0
// One number as the bytes of an element: the same for constants that are built, folded and filled
// in.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/element.h"

namespace tracefire {
namespace {

template <class T>
T read(const std::string& bytes) {
  T value{};
  REQUIRE(bytes.size() == sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("whole numbers keep their low bits in integer types") {
  // numpy.array([300, -1, 2**40 + 5]).astype(...)
  CHECK(read<uint8_t>(element_bytes(int64_t{300}, DType::kU8)) == 44);
  CHECK(read<int8_t>(element_bytes(int64_t{300}, DType::kI8)) == 44);
  CHECK(read<int8_t>(element_bytes(int64_t{200}, DType::kI8)) == -56);
  CHECK(read<uint16_t>(element_bytes(int64_t{-1}, DType::kU16)) == 65535);
  CHECK(read<int32_t>(element_bytes((int64_t{1} << 40) + 5, DType::kI32)) == 5);
  CHECK(read<uint64_t>(element_bytes(int64_t{-1}, DType::kU64)) == ~uint64_t{0});
  CHECK(read<int8_t>(element_bytes(int64_t{9}, DType::kI4)) == -7);
  CHECK(read<int8_t>(element_bytes(int64_t{-8}, DType::kI4)) == -8);
  CHECK(read<uint8_t>(element_bytes(int64_t{20}, DType::kU4)) == 4);
  CHECK(read<uint8_t>(element_bytes(int64_t{256}, DType::kBool)) == 1);
}

TEST_CASE("real numbers are cut off towards zero and to the ends of an integer type") {
  CHECK(read<int32_t>(element_bytes(-1.9, DType::kI32)) == -1);
  CHECK(read<uint8_t>(element_bytes(-0.9, DType::kU8)) == 0);
  CHECK(read<uint8_t>(element_bytes(300.0, DType::kU8)) == 255);
  CHECK(read<uint8_t>(element_bytes(-5.0, DType::kU8)) == 0);
  CHECK(read<int8_t>(element_bytes(-kInfinity, DType::kI8)) == -128);
  CHECK(read<int8_t>(element_bytes(9.0, DType::kI4)) == 7);
  CHECK(read<int8_t>(element_bytes(-9.0, DType::kI4)) == -8);
  CHECK(read<uint8_t>(element_bytes(99.0, DType::kU4)) == 15);
  CHECK(read<int32_t>(element_bytes(kNan, DType::kI32)) == 0);
  using I64 = std::numeric_limits<int64_t>;
  CHECK(read<int64_t>(element_bytes(kInfinity, DType::kI64)) == I64::max());
  CHECK(read<int64_t>(element_bytes(-kInfinity, DType::kI64)) == I64::min());
  CHECK(read<int64_t>(element_bytes(-std::ldexp(1.0, 63), DType::kI64)) == I64::min());
  CHECK(read<uint64_t>(element_bytes(std::ldexp(1.0, 63), DType::kU64)) == uint64_t{1} << 63);
  CHECK(read<uint64_t>(element_bytes(kInfinity, DType::kU64)) == ~uint64_t{0});
  CHECK(read<uint32_t>(element_bytes(4294967295.0, DType::kU32)) == 4294967295u);
  CHECK(read<uint8_t>(element_bytes(kNan, DType::kBool)) == 1);  // as != 0 says
}

TEST_CASE("floating types round once, to the nearest") {
  CHECK(read<float>(element_bytes(0.1, DType::kF32)) == 0.1f);
  CHECK(read<double>(element_bytes(0.1, DType::kF64)) == 0.1);
  CHECK(read<double>(element_bytes(int64_t{7}, DType::kF64)) == 7.0);
  // numpy.float16(1 + 2**-11 + 2**-40): above the middle of 1 and the next, which float32 forgets.
  CHECK(read<uint16_t>(
            element_bytes(1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40), DType::kF16)) == 0x3c01);
  CHECK(read<uint16_t>(element_bytes(1 + std::ldexp(1.0, -11), DType::kF16)) == 0x3c00);
  CHECK(read<uint16_t>(element_bytes(1.0, DType::kBF16)) == 0x3f80);
  CHECK(element_bytes(2.0, DType::kC64).size() == 8);
  CHECK(element_bytes(2.0, DType::kString).empty());
  CHECK(element_bytes(int64_t{2}, DType::kToken).empty());
}

}  // namespace tracefire
