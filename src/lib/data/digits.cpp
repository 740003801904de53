// SPDX-License-Identifier: Apache-2.0
#include "lib/data/digits_bytes.h"
#include "tracefire/data.h"

namespace tracefire::data {

Dataset digits() {
  Table table = parse_csv(digits_bytes(), {}, "digits.csv.gz");
  const Tensor labels = table.labels(-1);
  for (double& value : table.values) value /= 16;  // pixels run from 0 to 16
  return {table.floats(0, 64), labels};
}

}  // namespace tracefire::data
