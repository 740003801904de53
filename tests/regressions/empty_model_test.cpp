// SPDX-License-Identifier: Apache-2.0
// Sequential({}) did not compile: it could mean no layers, or a copy of an empty model.
#include <doctest/doctest.h>

#include "tracefire/nn.h"

namespace tracefire::test {

TEST_CASE("a model of no layers can be written in every way") {
  const nn::Sequential none({}), named({}, "named"), braces{{}}, nothing;
  CHECK(none.layers().empty());
  CHECK(named.layers().empty());
  CHECK(named.name() == "named");
  CHECK(braces.layers().empty());
  CHECK(none.name() == nothing.name());
  const nn::Sequential one({nn::Dense(1)}), two({nn::Dense(1), nn::Sequential({nn::Dense(1)})});
  CHECK(one.layers().size() == 1);
  CHECK(two.layers().size() == 2);
}

}  // namespace tracefire::test
