// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "tools/report/wire.h"

namespace tracefire::report {

/// Field numbers of tsl/profiler/protobuf/xplane.proto, which TensorBoard's profile plugin reads:
/// a space has planes (devices), a plane has lines (streams, threads), a line has events.
namespace xplane {
inline constexpr int kSpacePlanes = 1, kSpaceHostnames = 4;
inline constexpr int kPlaneId = 1, kPlaneName = 2, kPlaneLines = 3, kPlaneEventMetadata = 4;
inline constexpr int kLineId = 1, kLineName = 2, kLineTimestamp = 3, kLineEvents = 4;
inline constexpr int kPlaneStatMetadata = 5;
inline constexpr int kEventMetadataId = 1, kEventOffset = 2, kEventDuration = 3, kEventStats = 4;
inline constexpr int kStatMetadataId = 1, kStatInteger = 4;
inline constexpr int kMetadataId = 1, kMetadataName = 2, kMapKey = 1, kMapValue = 2;
inline constexpr uint64_t kPicoseconds = 1000;  ///< of a nanosecond
inline constexpr uint64_t kFirstLine = 1000;  ///< viewers add lines of their own with small numbers
}  // namespace xplane

/// Numbers for names of events or stats, and a plane's table of them.
class EventNames {
 public:
  uint64_t of(const std::string& name) { return ids_.emplace(name, ids_.size() + 1).first->second; }
  void write(Message& plane, int field = xplane::kPlaneEventMetadata) const {
    for (const auto& [name, id] : ids_) {
      Message metadata;
      metadata.number(xplane::kMetadataId, id);
      metadata.text(xplane::kMetadataName, name);
      Message entry;
      entry.number(xplane::kMapKey, id);
      entry.message(xplane::kMapValue, metadata);
      plane.message(field, entry);
    }
  }

 private:
  std::map<std::string, uint64_t> ids_;
};

}  // namespace tracefire::report
