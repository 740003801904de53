// SPDX-License-Identifier: Apache-2.0
#include "backends/api/device_backend.h"

namespace tracefire {

Result<std::unique_ptr<CapturedGraph>> DeviceBackend::capture(
    Stream&, const std::function<Status(Stream&)>&) {
  return error(ErrorCode::kInternal, device().str(),
               " cannot capture launches and was asked to; please report it.");
}

}  // namespace tracefire
