// SPDX-License-Identifier: Apache-2.0
// Wrong data, and training that is interrupted: a coded error that names the place, nothing lost.
#include <atomic>
#include <cmath>
#include <csignal>

#include "nn/reference.h"
#include "support/skip.h"
#include "tracefire/config.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

nn::Sequential classifier(int64_t classes = 3) {
  nn::Sequential model({nn::Dense(classes)});
  model.compile({.optimizer = optim::Adam(),
                 .loss = nn::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {nn::SparseCategoricalAccuracy()}});
  return model;
}

/// Code and text of fitting these arrays.
std::pair<int, std::string> fit_error(const Tensor& x, const Tensor& y,
                                      nn::FitOptions options = {}) {
  options.verbose = false;
  nn::Sequential model = classifier();
  std::string text;
  const int code = error_of([&] { model.fit(x, y, options); }, &text);
  return {code, text};
}

bool has(const std::string& text, const char* part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

Tensor floats(std::vector<int64_t> sizes, float value = 0.5f) {
  size_t count = 1;
  for (int64_t size : sizes) count *= static_cast<size_t>(size);
  return Tensor::of(std::vector<float>(count, value), sizes);
}

}  // namespace

TEST_CASE("bad input: labels out of range, wrong element types and shapes, no rows") {
  const Tensor x = floats({4, 2});
  const auto labels = [](std::vector<int32_t> values) {
    const auto rows = static_cast<int64_t>(values.size());
    return Tensor::of(values, {rows});
  };
  const Tensor good = labels({0, 1, 2, 0});
  {
    const auto [code, text] = fit_error(x, labels({0, 1, 3, 0}));
    CHECK(code == 301);
    for (const char* part : {"row 2", "label is 3", "3 classes", "0 to 2"}) CHECK(has(text, part));
  }
  CHECK(has(fit_error(x, labels({0, -1, 2, 0})).second, "label is -1"));
  for (const int64_t far : {int64_t{3'000'000'000}, int64_t{1} << 40, -(int64_t{1} << 40)}) {
    const Tensor wide = Tensor::of(std::vector<int64_t>{0, 1, 2, far}, {4});
    const auto [code, text] = fit_error(x, wide);
    CHECK(code == 301);
    CHECK(has(text, "row 3"));
    CHECK(has(text, ("label is " + std::to_string(far)).c_str()));
  }
  {
    const auto [code, text] = fit_error(x, labels({0, 1, 2}));
    CHECK(code == 101);
    CHECK(has(text, "(4, 2)"));
    CHECK(has(text, "(3,)"));
  }
  CHECK(fit_error(x, floats({4})).first == 102);     // labels that are no whole numbers
  CHECK(fit_error(x, floats({4, 3})).first == 101);  // targets where labels are wanted
  CHECK(fit_error(floats({0, 2}), labels({})).first == 115);
  CHECK(fit_error(Tensor(), good).first == 115);
  CHECK(fit_error(Tensor::scalar(1.0f), good).first == 115);
  CHECK(fit_error(x, Tensor()).first == 502);
  CHECK(fit_error(Tensor::of<double>({1, 2, 3, 4}, {4, 1}), good).first == 102);
  CHECK(fit_error(floats({4}), good).first == 101);
  CHECK(fit_error(x, good, {.batch_size = 0}).first == 502);
  CHECK(fit_error(x, good, {.epochs = 0}).first == 502);
  CHECK(fit_error(x, good, {.validation = {floats({1, 2}), labels({7})}}).first == 301);
  CHECK(fit_error(x, good, {.validation = {floats({1, 3}), labels({0})}}).first == 101);
  CHECK(fit_error(x, reshape(good, Shape{4, 1})).first == 0);  // a column of labels is one
}

TEST_CASE("bad input: NaN and infinity are found before training, with their place") {
  std::vector<float> values(8, 1.0f);
  values[5] = NAN;
  const Tensor y = Tensor::of<int32_t>({0, 1, 2, 0}, {4});
  const auto [code, text] = fit_error(Tensor::of(values, {4, 2}), y);
  CHECK(code == 302);
  for (const char* part : {"x, row 2, element 1", "nan"}) CHECK(has(text, part));
  values[5] = INFINITY;
  CHECK(has(fit_error(Tensor::of(values, {4, 2}), y).second, "inf"));
  // Whoever wants them may have them.
  CHECK(fit_error(Tensor::of(values, {4, 2}), y, {.check_data = false}).first == 0);

  nn::Sequential line({nn::Dense(1)});
  line.compile({.optimizer = optim::Sgd(), .loss = nn::MeanSquaredError()});
  std::string why;
  CHECK(error_of(
            [&] {
              line.fit(floats({2, 1}), floats({2, 1}, NAN), {.verbose = false});
            },
            &why) == 302);
  CHECK(has(why, "y, row 0"));
}

TEST_CASE("bad input: a failed fit leaves the model usable") {
  nn::Sequential model = classifier();
  const Tensor x = floats({4, 2}), y = Tensor::of<int32_t>({0, 1, 2, 0}, {4});
  model.fit(x, y, {.epochs = 2, .verbose = false});
  const std::vector<float> before = model.variables()[0].read().values<float>();
  CHECK(error_of([&] {
          model.fit(x, Tensor::of<int32_t>({0, 9, 2, 0}, {4}), {.verbose = false});
        }) == 301);
  CHECK(error_of([&] { model.fit(floats({4, 5}), y, {.verbose = false}); }) == 101);
  CHECK(error_of([&] { model.predict(floats({0, 2})); }) == 115);
  CHECK(error_of([&] { model.predict(floats({3, 4})); }) == 101);
  CHECK(model.variables()[0].read().values<float>() == before);
  CHECK(model.fit(x, y, {.verbose = false}).epochs.size() == 1);
  CHECK(model.predict(x).sizes() == std::vector<int64_t>{4, 3});
}

TEST_CASE("labels that only the device sees are checked there, too") {
  // Without the check before training the step itself finds them.
  nn::Sequential model = classifier();
  const Tensor x = floats({4, 2}), y = Tensor::of<int32_t>({0, 5, 2, 0}, {4});
  CHECK(error_of([&] { model.fit(x, y, {.verbose = false, .check_data = false}); }) == 301);
}

TEST_CASE("a loop asks whether it is interrupted before its first step and between steps") {
  if (default_device().kind == Device::kGpu) {
    return tracefire::test::skip("a captured graph of several steps is asked about once");
  }
  static std::atomic<int> asked{0};
  nn::Sequential model = classifier();
  const Tensor x = draw({64, 2}, 0, 1, 1), y = draw_labels(64, 3, 2);
  const nn::FitOptions options{.batch_size = 16, .epochs = 1, .verbose = false};  // four steps
  model.fit(x, y, options);
  const auto steps = [&] { return model.optimizer().iterations().read().item<int64_t>(); };
  for (const int answer_yes_at : {1, 3, 5}) {
    INFO("yes to question ", answer_yes_at);
    const int64_t before = steps();
    asked = 0;
    set_interrupt_check([=] { return ++asked >= answer_yes_at; });
    std::string text;
    const int code = error_of([&] { model.fit(x, y, options); }, &text);
    set_interrupt_check({});
    INFO(text);
    CHECK(asked == std::min(answer_yes_at, 4));
    CHECK(code == (answer_yes_at <= 4 ? 501 : 0));
    CHECK(steps() - before == std::min(answer_yes_at - 1, 4));
    CHECK((text.find("before the first") != std::string::npos) == (answer_yes_at == 1));
  }
}

TEST_CASE("an interrupted fit says so, keeps the last finished step and the epochs so far") {
  static std::atomic<int> asked{0};
  nn::Sequential model = classifier();
  const Tensor x = draw({64, 2}, 0, 1, 1), y = draw_labels(64, 3, 2);
  model.fit(x, y, {.epochs = 1, .verbose = false});  // builds and traces
  const auto steps = [&] { return model.optimizer().iterations().read().item<int64_t>(); };
  for (const int64_t batch : {16, 64}) {  // four steps an epoch, and one
    for (const bool watched : {false, true}) {
      INFO("batch ", batch, watched ? ", watched" : "");
      const int64_t before = steps();
      nn::FitOptions options{.batch_size = batch, .epochs = 1000, .verbose = false};
      if (watched) options.on_epoch = [](int64_t, const nn::Report&) { return true; };
      asked = 0;
      set_interrupt_check([] { return ++asked >= 9; });
      std::string text;
      const int code = error_of([&] { model.fit(x, y, options); }, &text);
      set_interrupt_check({});
      INFO(text);
      CHECK(code == 501);
      const nn::History& history = model.history();
      REQUIRE(!history.epochs.empty());
      CHECK(history.epochs.size() < 10);
      CHECK(history["loss"].size() == history.epochs.size());
      CHECK(std::isfinite(history["loss"].back()));
      // Whole steps were done: those of the finished epochs, and less than one epoch more.
      const int64_t an_epoch = 64 / batch, done = steps() - before;
      CHECK(done >= an_epoch * static_cast<int64_t>(history.epochs.size()));
      CHECK(done < an_epoch * static_cast<int64_t>(history.epochs.size() + 1));
      for (const Variable& variable : model.variables()) {
        for (float value : variable.read().values<float>()) CHECK(std::isfinite(value));
      }
    }
  }
  const int64_t now = steps();
  model.fit(x, y, {.batch_size = 16, .epochs = 2, .verbose = false});
  CHECK(steps() == now + 8);
}
