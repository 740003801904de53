// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tools/inject/record_format.h"

namespace tracefire::inject {

/// Callback numbers first to last (inclusive) do the same kind of work. The numbers are CUPTI's
/// (cupti_runtime_cbid.h, cupti_driver_cbid.h of 13.0); they never change their meaning.
struct ApiRange {
  uint16_t first;
  uint16_t last;
  ApiClass work;
};

/// cudaLaunchKernel, cudaMemcpyAsync, cudaStreamSynchronize and so on.
std::span<const ApiRange> runtime_ranges();
/// cuLaunchKernel, cuMemcpyHtoDAsync, cuStreamSynchronize and so on.
std::span<const ApiRange> driver_ranges();
/// The class of a call, 0 for one that is not traced.
int api_class(bool runtime, uint32_t number);

}  // namespace tracefire::inject
