// SPDX-License-Identifier: Apache-2.0
// The product in Tracefire itself: where it ran, its rate, and whether it is right.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/base/event.h"
#include "tools/cli/matmul_trial.h"
#include "tracefire/config.h"
#include "tracefire/ops.h"
#include "tracefire/tensor.h"

namespace tracefire::cli {
namespace {

constexpr double kFlops = 2.0 * kProductSize * kProductSize * kProductSize;
constexpr int kChecked = 8;          // elements compared with the host
constexpr double kTolerance = 2e-3;  // of the sum of magnitudes: TF32 keeps 11 bits
constexpr int kRunsOnGpu = 3;        // the best counts; on a CPU one is long enough

/// Numbers in [-0.5, 0.5), the same for the same seed.
std::vector<float> numbers(uint32_t seed) {
  std::vector<float> out(size_t{kProductSize} * kProductSize);
  uint32_t state = seed;
  for (float& value : out) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
  }
  return out;
}

/// Empty where the elements that were looked at are right.
std::string check(const std::vector<float>& a, const std::vector<float>& b,
                  const std::vector<float>& c) {
  constexpr size_t n = kProductSize;
  for (size_t k = 0; k < kChecked; ++k) {
    const size_t row = k * 709 % n, column = k * 1471 % n;
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < n; ++i) {
      const double term = double{a[row * n + i]} * double{b[i * n + column]};
      sum += term;
      magnitude += std::abs(term);
    }
    const double got = c[row * n + column];
    if (std::abs(got - sum) <= kTolerance * magnitude) continue;
    char text[160];
    std::snprintf(text, sizeof text, "element (%zu, %zu) is %g, and %g on the host", row, column,
                  got, sum);
    return text;
  }
  return "";
}

/// Sees the placement of the product's steps while it lives.
class Watch {
 public:
  Watch() {
    Events::Subscriber subscriber;
    subscriber.run = [this](const RunEvent& run) {
      for (const StepRecord& step : run.program->steps) {
        if (step.tf_name != "MatMul") continue;
        line_ = "Executing op MatMul in device /job:localhost/replica:0/task:0/device:" +
                step.device.str().substr(1) + " by " + step.kernel;
        if (!step.reason.empty()) line_ += " (" + step.reason + ")";
        device_ = step.device;
      }
    };
    subscription_ = Events::instance().subscribe(std::move(subscriber));
  }
  ~Watch() { Events::instance().unsubscribe(subscription_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  const std::string& line() const { return line_; }
  Device device() const { return device_; }

 private:
  std::string line_;
  Device device_;
  int subscription_ = -1;
};

void run(MatmulTrial* trial) {
  using Clock = std::chrono::steady_clock;
  const std::vector<int64_t> sizes = {kProductSize, kProductSize};
  const std::vector<float> a = numbers(1), b = numbers(2);
  const Tensor left = Tensor::from_host(a.data(), DType::kF32, sizes);
  const Tensor right = Tensor::from_host(b.data(), DType::kF32, sizes);
  const bool gpu = default_device().kind == Device::kGpu;
  Watch watch;
  double least = 0;
  Tensor product;
  if (gpu) matmul(left, right).wait();  // chooses and loads the kernel
  for (int i = 0; i < (gpu ? kRunsOnGpu : 1); ++i) {
    const auto begin = Clock::now();
    product = matmul(left, right);
    product.wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    least = i == 0 ? seconds : std::min(least, seconds);
  }
  trial->placement = watch.line();
  trial->device = watch.device().is_set() ? watch.device().str() : "";
  trial->problem = check(a, b, product.values<float>());
  if (!trial->problem.empty()) trial->problem = "the product is wrong: " + trial->problem;
  trial->flops_per_second = kFlops / least;
  trial->peak = peak_of(trial->device);
}

}  // namespace

MatmulTrial try_matmul(const std::string& version) {
  MatmulTrial trial;
  trial.framework = "Tracefire " + version;
  try {
    run(&trial);
  } catch (const Error& failure) {
    trial.problem = failure.what();
  } catch (const std::bad_alloc&) {
    trial.problem = "there is not enough memory for three matrices of 100 MB";
  }
  return trial;
}

}  // namespace tracefire::cli
