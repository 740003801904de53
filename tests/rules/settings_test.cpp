// SPDX-License-Identifier: Apache-2.0
// Settings at the public edge of the library: what is wrong in them is thrown where work begins,
// and the placement log starts by whatever entrance it is asked for.
#include "core/base/settings.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "tracefire/config.h"
#include "tracefire/observe.h"
#include "tracefire/ops.h"
#include "tracefire/tensor.h"

namespace tracefire {
namespace {

std::string code_of(void (*work)()) {
  try {
    work();
  } catch (const Error& failure) {
    return failure.code();
  }
  return "none";
}

TEST_CASE("a wrong variable is thrown by each first use, until the program mends it") {
  setenv("TRACEFIRE_DEVICE_POLICY", "harsh", 1);
  reset_settings();
  for (void (*work)() :
       {+[] { Tensor::scalar(1.0f); }, +[] { list_devices(); }, +[] { setting("threads"); },
        +[] { manifest(); }, +[] { iota(DType::kF32, Shape{3}).wait(); }}) {
    CHECK(code_of(work) == "TF-E0503");
  }
  change_setting("device_policy", "soft");
  CHECK(code_of([] { Tensor::scalar(1.0f); }) == "none");
  unsetenv("TRACEFIRE_DEVICE_POLICY");
  reset_settings();
}

/// Executions of a product that nobody reads: none, but for the log, which runs op by op.
uint64_t unread_products() {
  reset_proof();
  {
    const Tensor a = Tensor::of(std::vector<float>(4, 1.0f), {2, 2}, parse_device("CPU:0"));
    matmul(a, a);
  }
  uint64_t runs = 0;
  for (const Proof::Row& row : proof().rows) runs += row.op == "matmul" ? row.runs : 0;
  return runs;
}

TEST_CASE("the placement log is one setting, however it is asked for") {
  CHECK(unread_products() == 0);
  for (const char* word : {"true", "1", "on", "yes"}) {
    CAPTURE(word);
    change_setting("log_device_placement", word);
    CHECK(setting("log_device_placement") == "true");
    CHECK(unread_products() == 1);
    change_setting("log_device_placement", "off");
    CHECK(setting("log_device_placement") == "false");
    CHECK(unread_products() == 0);
  }
  set_log_device_placement(true);
  CHECK(unread_products() == 1);
  set_log_device_placement(false);
  CHECK(unread_products() == 0);
  setenv("TRACEFIRE_LOG_DEVICE_PLACEMENT", "yes", 1);
  reset_settings();
  CHECK(unread_products() == 1);
  unsetenv("TRACEFIRE_LOG_DEVICE_PLACEMENT");
  reset_settings();
  CHECK(unread_products() == 0);
}

}  // namespace
}  // namespace tracefire
