// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/runtime/run.h"
#include "core/trace/cell.h"

namespace tracefire {

/// What a ready cell holds: its storage, and the run that can still turn out to have failed.
struct DevicePayload final : trace::Payload {
  Storage storage;  ///< empty for tokens
  std::shared_ptr<Run> run;
  int32_t result = 0;
  /// Numbers of the sizes where the cell's shape depends on data; empty otherwise.
  std::vector<int64_t> sizes;

  DevicePayload() = default;
  DevicePayload(Storage s, std::shared_ptr<Run> r, int32_t i)
      : storage(std::move(s)), run(std::move(r)), result(i) {}
};

inline std::shared_ptr<DevicePayload> payload_of(const trace::Cell& cell) {
  return std::static_pointer_cast<DevicePayload>(cell.payload);
}

/// The run behind a payload, where a check of it can still turn out to have failed.
inline Run::Parent parent_of(const std::shared_ptr<DevicePayload>& payload) {
  if (payload && payload->run && payload->run->can_fail()) return {payload->run, payload->result};
  return {};
}

/// The cell's type with numbers for sizes that data decided.
inline ValueType bound_type(const trace::Cell& cell, const DevicePayload& payload) {
  ValueType type = cell.type;
  if (!payload.sizes.empty()) type.shape = Shape::of(payload.sizes);
  return type;
}

}  // namespace tracefire
