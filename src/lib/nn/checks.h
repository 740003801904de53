// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tracefire/tensor.h"

namespace tracefire::nn {

/// Throws kIndexOutOfRange with the first row whose label is outside 0 … classes - 1. One small
/// read from the device where all are right.
void check_labels(const Tensor& labels, int64_t classes);
/// Throws kNotFinite with the first place in `array` (called `name`) that is NaN or infinite.
void check_finite_values(const Tensor& array, const char* name);
/// Labels [batch, 1] as [batch], others as they are.
Tensor labels_of_rows(const Tensor& y_true, const Tensor& y_pred);

}  // namespace tracefire::nn
