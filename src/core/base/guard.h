// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "core/base/status.h"

namespace tracefire {

/// The failure that is being handled, as a status: kOutOfMemory where the host had no memory for a
/// list or a text, kInternal for what nobody expected. Errors keep their code. Inside `catch` only.
Status status_of(const std::exception& failure);

/// Runs `work`, which gives a Status or a Result. What it throws becomes its status, so that
/// pending values fail with a reason and nothing but tracefire::Error leaves the library. Not for
/// calls of the user's functions, whose exceptions are the user's.
template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& failure) {
    return status_of(failure);
  }
}

}  // namespace tracefire
