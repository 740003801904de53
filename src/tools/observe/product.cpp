// SPDX-License-Identifier: Apache-2.0
#include "tools/observe/product.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "backends/nvidia/stack.h"
#include "core/base/event.h"
#include "tracefire/config.h"
#include "tracefire/ops.h"
#include "tracefire/tensor.h"

namespace tracefire {
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

void run(ProductTrial* trial) {
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

/// Lanes of float32 of one multiprocessor.
int lanes(int capability) { return capability < 86 ? 64 : 128; }

}  // namespace

double peak_of(const std::string& device) {
  std::string lower = device;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (lower.find("gpu") == std::string::npos && lower.find("cuda") == std::string::npos) return 0;
  const size_t digit = lower.find_last_of("0123456789");
  const size_t first =
      digit == std::string::npos ? digit : lower.find_last_not_of("0123456789", digit) + 1;
  const size_t wanted =
      digit == std::string::npos
          ? 0
          : std::stoul("0" + lower.substr(first, std::min<size_t>(digit - first + 1, 6)));
  size_t index = 0;
  for (const nvidia::Gpu& gpu : nvidia::Stack::instance().inventory().gpus) {
    if (index++ != wanted) continue;
    return 2e3 * gpu.clock_khz * gpu.multiprocessors * lanes(gpu.capability);
  }
  return 0;
}

const char* ProductTrial::grade() const {
  if (!problem.empty()) return "failed";
  if (peak <= 0) return "unknown";
  return flops_per_second < kSlowProduct * peak ? "slow" : "good";
}

std::string ProductTrial::words() const {
  if (!problem.empty()) return framework + ": " + problem + ".";
  char text[256];
  std::snprintf(text, sizeof text, ": %.3g TFLOP/s on ", flops_per_second / 1e12);
  std::string out = framework + text + (device.empty() ? "an unknown device" : device);
  if (peak <= 0) return out + "; no peak is known for it.";
  std::snprintf(text, sizeof text, ", %.0f %% of its float32 peak of %.3g TFLOP/s",
                100 * flops_per_second / peak, peak / 1e12);
  out += text;
  if (flops_per_second > peak) out += " (more than all: tensor cores, TF32)";
  if (flops_per_second < kSlowProduct * peak) {
    out += ". That is slow: other work on the device, clocks held down, or a wrong build";
  }
  return out + ".";
}

ProductTrial try_product() {
  ProductTrial trial;
  trial.framework = "Tracefire " TRACEFIRE_VERSION;
  try {
    run(&trial);
  } catch (const Error& failure) {
    if (failure.kind() == ErrorKind::kCancelled) throw;
    trial.problem = failure.what();
  } catch (const std::bad_alloc&) {
    trial.problem = "there is not enough memory for three matrices of 100 MB";
  }
  return trial;
}

}  // namespace tracefire
