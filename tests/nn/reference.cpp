// SPDX-License-Identifier: Apache-2.0
#include "nn/reference.h"

#include <cmath>
#include <fstream>

#include "support/paths.h"

namespace tracefire::testing {

const nlohmann::json& keras_values() {
  static const nlohmann::json values = [] {
    std::ifstream file(test::source_dir() + "/tests/nn/data/keras.json");
    return nlohmann::json::parse(file);
  }();
  return values;
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected, double rtol,
                 double atol) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("number ", i, ": got ", got[i], ", expected ", expected[i]);
    CHECK(std::abs(got[i] - expected[i]) <= rtol * std::abs(expected[i]) + atol);
  }
}

}  // namespace tracefire::testing
