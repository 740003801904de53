// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include "core/base/location.h"
#include "core/base/parse_device.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "tracefire/dtype.h"

namespace tracefire {
namespace {

constexpr int kDTypes = 22;

TEST_CASE("every element type has a name that reads back") {
  std::set<std::string_view> names;
  for (int i = 1; i < kDTypes; ++i) {
    DType dtype = static_cast<DType>(i);
    CAPTURE(i);
    CHECK(dtype_from_name(dtype_name(dtype)) == dtype);
    CHECK(names.insert(dtype_name(dtype)).second);
    int families = is_floating(dtype) + is_integer(dtype) + is_complex(dtype);
    CHECK(families == (is_numeric(dtype) ? 1 : 0));
  }
  CHECK(dtype_name(static_cast<DType>(kDTypes)) == "invalid");
  CHECK_FALSE(dtype_from_name("invalid").has_value());
  CHECK_FALSE(dtype_from_name("float").has_value());
  CHECK(dtype_name(DType::kBF16) == "bfloat16");
  CHECK(dtype_size(DType::kC128) == 16);
  CHECK(dtype_size(DType::kI4) == 1);
  CHECK(dtype_size(DType::kToken) == 0);
  CHECK(is_signed_integer(DType::kI4));
  CHECK_FALSE(is_signed_integer(DType::kU64));
  CHECK_FALSE(is_integer(DType::kBool));
}

TEST_CASE("devices are read in every form that TensorFlow writes") {
  Device gpu1{Device::kGpu, 1};
  for (const char* text : {"/GPU:1", "GPU:1", "gpu:1", "/gpu:1", "/device:GPU:1", "device:gpu:1",
                           "/job:localhost/replica:0/task:0/device:GPU:1"}) {
    CAPTURE(text);
    CHECK(parse_device(text) == gpu1);
  }
  CHECK(parse_device("cpu").str() == "/CPU:0");
  CHECK(Device().str() == "");
  CHECK(Device{Device::kGpu, 255}.str() == "/GPU:255");
}

TEST_CASE("a device that is none is refused with the known kinds") {
  for (const char* text : {"", "/", ":", "/TPU:0", "GPU:", "GPU:x", "GPU:256", "GPU:-1", "GPU:1 ",
                           "/job:worker/device:GPU:0", "/job:localhost", "//GPU:0", "GPU:0:0"}) {
    CAPTURE(text);
    Result<Device> device = try_parse_device(text);
    REQUIRE_FALSE(device.ok());
    CHECK(device.status().code() == ErrorCode::kUnknownDevice);
    CHECK(device.status().message().find("CPU, GPU") != std::string::npos);
  }
  CHECK_THROWS_AS(parse_device("TPU"), Error);
}

TEST_CASE("device kinds register once, in upper case") {
  uint8_t kind = register_device_kind("testkind");
  CHECK(register_device_kind("TESTKIND") == kind);
  CHECK(device_kind_name(kind) == "TESTKIND");
  CHECK(parse_device("testkind:3") == Device{kind, 3});
  CHECK(register_device_kind("gpu") == Device::kGpu);
  CHECK_THROWS_AS(register_device_kind("no good"), Error);
  CHECK_THROWS_AS(register_device_kind(""), Error);
}

TEST_CASE("a status carries its catalogue code, and throws as the catalogue's kind") {
  CHECK(Status().ok());
  CHECK(Status().str() == "OK");
  Status status = error(ErrorCode::kBadAxis, "axis ", 3, " of rank ", 2);
  CHECK(status.str() == "[TF-E0104] axis 3 of rank 2");
  CHECK(status.prefixed("sum: ").message() == "sum: axis 3 of rank 2");
  CHECK(Status().prefixed("sum: ").ok());
  try {
    status.throw_if_error();
    FAIL("did not throw");
  } catch (const Error& e) {
    CHECK(e.code() == "TF-E0104");
    CHECK(e.number() == 104);
    CHECK(e.kind() == ErrorKind::kOutOfRange);
    CHECK(std::string(e.what()) == status.str());
  }
  CHECK(error_kind(ErrorCode::kOutOfMemory) == ErrorKind::kResourceExhausted);
  CHECK(find_catalogue_entry(104)->name == std::string("BadAxis"));
  CHECK(find_catalogue_entry(999) == nullptr);
}

Result<int> half_of(int value) {
  if (value % 2) return error(ErrorCode::kBadAttribute, value, " is odd");
  return value / 2;
}

Result<int> quarter_of(int value) {
  TF_ASSIGN(int half, half_of(value));
  TF_ASSIGN(int quarter, half_of(half));
  return quarter;
}

TEST_CASE("results hand errors on") {
  CHECK(quarter_of(12).value() == 3);
  CHECK(quarter_of(6).status().message() == "3 is odd");
  CHECK_THROWS_AS(quarter_of(7).value(), Error);
}

TEST_CASE("locations share their file name") {
  Location a = make_location("train.py", 12), b = make_location(std::string("train.") + "py", 13);
  CHECK(a.file == b.file);
  CHECK(a.str() == "train.py:12");
  CHECK(Location().str() == "");
}

TEST_CASE("closest names and exact numbers") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(closest_name("threds", {"threads", "log_level"}) == "threads");
  CHECK(closest_name("colour", {"threads", "log_level"}) == "");
  CHECK(real_text(1) == "1.0");
  CHECK(real_text(0.1) == "0.1");
  CHECK(real_text(-1e300) == "-1e+300");
  CHECK(real_text(1.0 / 3) == "0.3333333333333333");
}

}  // namespace
}  // namespace tracefire
