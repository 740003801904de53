// SPDX-License-Identifier: Apache-2.0
// Checks of data before training: computed on the device, where one number comes back; only data
// that is wrong is read to say where.
#include "lib/nn/checks.h"

#include <cmath>
#include <cstring>

#include "core/base/status.h"
#include "lib/nn/values.h"

namespace tracefire::nn {
namespace {

/// "row 3" or "row 3, element 17" of an array [rows, ...].
std::string place_of(size_t index, const Tensor& array) {
  const auto rows = static_cast<size_t>(array.sizes()[0]);
  const size_t width = array.element_count() / rows;
  std::string place = "row " + std::to_string(index / width);
  if (width > 1) place += ", element " + std::to_string(index % width);
  return place;
}

}  // namespace

void check_labels(const Tensor& labels, int64_t classes) {
  if (labels.element_count() == 0) return;
  const auto axes = all_axes(labels);
  const Tensor ends[] = {cast(reduce_min(labels, axes), DType::kI64),
                         cast(reduce_max(labels, axes), DType::kI64)};
  int64_t range[2];
  const std::vector<HostValue> read = fetch(ends);
  for (size_t i = 0; i < 2; ++i) std::memcpy(&range[i], read[i].data, sizeof range[i]);
  if (range[0] >= 0 && range[1] < classes) return;
  const std::vector<int64_t> all = cast(labels, DType::kI64).values<int64_t>();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] >= 0 && all[i] < classes) continue;
    error(ErrorCode::kIndexOutOfRange, "y, ", place_of(i, labels), ": the label is ", all[i],
          "; the model's result has ", classes, " classes, so labels run from 0 to ", classes - 1)
        .throw_if_error();
  }
}

void check_finite_values(const Tensor& array, const char* name) {
  if (!is_floating(array.dtype()) || array.element_count() == 0) return;
  if (reduce_all(is_finite(array), all_axes(array)).item<bool>()) return;
  const std::vector<float> all = cast(array, DType::kF32).values<float>();
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::isfinite(all[i])) continue;
    error(ErrorCode::kNotFinite, name, ", ", place_of(i, array), ": the value is ", all[i],
          "; training needs finite numbers. Replace or drop such rows")
        .throw_if_error();
  }
  // float64 beyond float32's range.
  error(ErrorCode::kNotFinite, name, " holds values that are not finite").throw_if_error();
}

}  // namespace tracefire::nn
