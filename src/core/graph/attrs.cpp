// SPDX-License-Identifier: Apache-2.0
#include "core/graph/attrs.h"

#include <algorithm>

#include "core/base/status.h"

namespace tracefire {
namespace {

bool name_before(const std::pair<std::string, Attr>& entry, std::string_view name) {
  return entry.first < name;
}

}  // namespace

void Attrs::set(std::string_view name, Attr value) {
  auto place = std::lower_bound(entries_.begin(), entries_.end(), name, name_before);
  if (place != entries_.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    entries_.emplace(place, std::string(name), std::move(value));
  }
}

const Attr* Attrs::find(std::string_view name) const {
  auto place = std::lower_bound(entries_.begin(), entries_.end(), name, name_before);
  return place != entries_.end() && place->first == name ? &place->second : nullptr;
}

void Attrs::missing(std::string_view name) {
  Status status =
      error(ErrorCode::kInternal, "the attribute '", name,
            "' was read, but the node has none of this name and type. Its row should have given "
            "it. This is a bug of Tracefire; please report it.");
  status.throw_if_error();
  throw std::logic_error("unreachable");
}

}  // namespace tracefire
