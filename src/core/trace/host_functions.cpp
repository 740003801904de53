// SPDX-License-Identifier: Apache-2.0
#include "core/trace/host_functions.h"

#include <deque>
#include <mutex>

namespace tracefire::trace {
namespace {
struct Registry {
  std::mutex mutex;
  std::deque<HostFunction> functions;  // addresses stay
};
Registry& registry() {
  static Registry& instance = *new Registry;  // outlives every thread
  return instance;
}
}  // namespace

int64_t register_host_function(HostFunction function) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().functions.push_back(std::move(function));
  return static_cast<int64_t>(registry().functions.size()) - 1;
}

const HostFunction* find_host_function(int64_t number) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto& functions = registry().functions;
  if (number < 0 || number >= static_cast<int64_t>(functions.size())) return nullptr;
  return &functions[static_cast<size_t>(number)];
}

}  // namespace tracefire::trace
