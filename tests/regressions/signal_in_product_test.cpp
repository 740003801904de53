// SPDX-License-Identifier: Apache-2.0
// A signal that arrived inside a product broke the heap: oneDNN's generated code uses memory of
// its own as stack, and the kernel wrote the handler's frame below it.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>

#include "tracefire/ops.h"

namespace tracefire::test {
namespace {

std::atomic<int> arrived{0};

/// Sends a signal every half millisecond to a handler that runs on the interrupted stack.
class Signals {
 public:
  Signals() {
    struct sigaction action = {};
    action.sa_handler = [](int) { ++arrived; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    const itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Signals() {
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ = {};
};

}  // namespace

TEST_CASE("signals that arrive during products change nothing") {
  const Tensor a = Tensor::of(std::vector<float>(128 * 784, 0.5f), {128, 784});
  const Tensor b = Tensor::of(std::vector<float>(784 * 512, 0.25f), {784, 512});
  const std::vector<float> expected(128 * 512, 98.0f);
  const Signals signals;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (std::chrono::steady_clock::now() < end || arrived < 50) {
    REQUIRE(matmul(a, b).values<float>() == expected);
  }
}

}  // namespace tracefire::test
