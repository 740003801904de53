// SPDX-License-Identifier: Apache-2.0
// Many values read together: one firing, one wait a device, failures where they belong.
#include <doctest/doctest.h>

#include <cstring>

#include "support.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

Device null_device() { return {register_device_kind("NULL"), 0}; }

template <class T>
std::vector<T> elements(const HostValue& value) {
  CHECK(value.dtype == DTypeOf<T>::value);
  std::vector<T> out(value.bytes / sizeof(T));
  if (value.bytes > 0) std::memcpy(out.data(), value.data, value.bytes);
  return out;
}

/// Rows of a table on a device that computes nothing; indices are checked there.
Tensor checked_rows() {
  return op("gather", {Tensor::of<float>({1, 2, 3}, {3}), Tensor::of<int32_t>({0, 2}, {2})},
            {{"axis", int64_t{0}}});
}

}  // namespace

TEST_CASE("fetch gives the values of tensors of any dtype and rank, in their order") {
  const Tensor x = vec({1, 2, 3});
  const std::vector<HostValue> values =
      fetch(Tensors{op("mul", {x, x}), sum(x), Tensor::of<float>({}, {2, 0}),
                    op("cast", {x}, {{"dtype", DType::kI64}}), x, x});
  REQUIRE(values.size() == 6);
  CHECK(elements<float>(values[0]) == std::vector<float>{1, 4, 9});
  CHECK(values[0].sizes == std::vector<int64_t>{3});
  CHECK(elements<float>(values[1]) == std::vector<float>{6});
  CHECK(values[1].sizes.empty());
  CHECK(values[2].sizes == std::vector<int64_t>{2, 0});
  CHECK(values[2].bytes == 0);
  CHECK(elements<int64_t>(values[3]) == std::vector<int64_t>{1, 2, 3});
  CHECK(elements<float>(values[4]) == elements<float>(values[5]));
  CHECK(fetch({}).empty());
}

TEST_CASE("a fetched value does not change when its variable does") {
  Variable v(vec({1, 2}), "v");
  const Function twice = trace_function("twice", {}, [&](const Tensors&) -> Tensors {
    v.assign(op("mul", {v.read(), Tensor::scalar(2.0f)}));
    return {};
  });
  twice({});
  const std::vector<HostValue> before = fetch(Tensors{v.read()});
  twice({});
  CHECK(elements<float>(before[0]) == std::vector<float>{2, 4});
  CHECK(v.read().values<float>() == std::vector<float>{4, 8});
}

TEST_CASE("fetch fires what is pending as one program") {
  const Tensor x = vec({1, 2, 3});
  x.wait();
  const Tensors pending{op("exp", {x}), op("sin", {x}), op("cos", {x})};
  reset_proof();
  fetch(pending);
  CHECK(proof().runs == 1);
}

TEST_CASE("values and the checks behind them are read with one wait") {
  DeviceScope scope(null_device());
  Variable total(Tensor::scalar(0.0f), "total");
  const Function step = trace_function("step", {}, [&](const Tensors&) -> Tensors {
    total.assign(op("add", {total.read(), sum(checked_rows())}));
    return {total.read()};
  });
  step({});
  const Tensor first = step({})[0];
  const Tensor second = checked_rows();
  reset_proof();
  const std::vector<HostValue> values = fetch(Tensors{first, second, total.read()});
  Proof seen = proof();
  CHECK(seen.synchronizations == 1);
  CHECK(seen.copies_out == 4 + 8 + 4 + 3 * 16);  // and the words of three runs
  CHECK(values[1].copied);
  CHECK(elements<float>(values[1]) == std::vector<float>{0, 0});

  reset_proof();
  const Tensor alone = step({})[0];
  alone.item<float>();
  CHECK(proof().synchronizations == 1);
  reset_proof();
  checked_rows().wait();
  CHECK(proof().synchronizations == 1);
}

TEST_CASE("values too large for one block travel by themselves") {
  DeviceScope scope(null_device());
  const int64_t elements = (int64_t{160} << 20) / 4;
  auto large = [&](float value) {
    return op("broadcast_to", {Tensor::scalar(value)}, {{"shape", Shape{elements}}});
  };
  const Tensors tensors{large(1), checked_rows(), large(2)};
  reset_proof();
  const std::vector<HostValue> values = fetch(tensors);
  CHECK(proof().synchronizations == 2);
  CHECK(values[0].bytes == values[2].bytes);
  CHECK(values[0].owner == values[1].owner);
  CHECK(values[0].owner != values[2].owner);
}

TEST_CASE("values on several devices take a wait each") {
  Tensor here, there;
  {
    DeviceScope scope(null_device());
    there = op("exp", {vec({1, 2})});
    here = op("exp", {vec({1, 2})});
  }
  reset_proof();
  const std::vector<HostValue> values = fetch(Tensors{there, vec({5}), here});
  CHECK(proof().synchronizations == (default_device().kind == Device::kGpu ? 2 : 1));
  CHECK(elements<float>(values[1]) == std::vector<float>{5});
}

TEST_CASE("fetch throws the first failure, and nothing of what did not fail is lost") {
  const Tensor table = vec({1, 2, 3});
  const Tensor good = op("mul", {table, table});
  const Tensor bad = op("gather", {table, Tensor::of<int32_t>({7}, {1})}, {{"axis", int64_t{0}}});
  std::string text;
  CHECK(error_of([&] { fetch(Tensors{good, bad}); }, &text) == 301);
  CHECK(text.find("gather") != std::string::npos);
  CHECK(elements<float>(fetch(Tensors{good})[0]) == std::vector<float>{1, 4, 9});
  CHECK(error_of([&] { fetch(Tensors{bad}); }) == 301);
  CHECK(error_of([&] { fetch(Tensors{Tensor::from_strings({"a"}, {1})}); }) == 102);
  CHECK(error_of([&] { fetch(Tensors{Tensor()}); }) != 0);
}

TEST_CASE("a size that data decide is known when it is fetched") {
  const Tensors parts = apply_op("unique", Tensors{Tensor::of<int32_t>({3, 1, 3}, {3})});
  const std::vector<HostValue> values = fetch(Tensors{parts[0], parts[1]});
  CHECK(values[0].sizes == std::vector<int64_t>{2});
  CHECK(values[1].sizes == std::vector<int64_t>{3});
}
