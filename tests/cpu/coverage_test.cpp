// SPDX-License-Identifier: Apache-2.0
// Every row of the op table can run on the CPU.
#include <doctest/doctest.h>

#include <set>

#include "backends/api/device_backend.h"

namespace tracefire {
namespace {

/// Rows that the executor runs itself: other kinds of steps than kernels.
bool run_by_executor(const OpRow& row) {
  const std::set<std::string_view> control = {"if", "while", "call", "token"};
  return control.count(row.name) != 0 || row.effect[0] != '\0';
}

TEST_CASE("cpu: every row has a kernel, decomposes, or is the executor's") {
  DeviceBackend* device = Backends::instance().find(Device{Device::kCpu, 0}).value();
  const OpTable& table = OpTable::instance();
  size_t kernels = 0;
  for (size_t op = 0; op < table.rows().size(); ++op) {
    const OpRow& row = table.rows()[op];
    const KernelList& list = device->kernels(static_cast<OpId>(op));
    INFO(row.name);
    CHECK((!list.empty() || row.decompose != nullptr || run_by_executor(row)));
    std::set<std::string_view> names;
    for (const Kernel* kernel : list) {
      CHECK(!kernel->name().empty());
      CHECK(!kernel->library().empty());
      names.insert(kernel->name());
    }
    CHECK(names.size() == list.size());
    kernels += list.size();
  }
  CHECK(kernels > table.rows().size() / 2);
}

}  // namespace
}  // namespace tracefire
