// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"

#include <cstdio>
#include <string_view>

namespace tracefire {
namespace {

std::string code_text(unsigned number) {
  char text[16];
  std::snprintf(text, sizeof(text), "TF-E%04u", number);
  return text;
}

struct KindName {
  std::string_view name;
  ErrorKind kind;
};
constexpr KindName kKinds[] = {
    {"InvalidArgument", ErrorKind::kInvalidArgument},
    {"Type", ErrorKind::kType},
    {"NotFound", ErrorKind::kNotFound},
    {"Unimplemented", ErrorKind::kUnimplemented},
    {"OutOfRange", ErrorKind::kOutOfRange},
    {"ResourceExhausted", ErrorKind::kResourceExhausted},
    {"FailedPrecondition", ErrorKind::kFailedPrecondition},
    {"DataLoss", ErrorKind::kDataLoss},
    {"Unavailable", ErrorKind::kUnavailable},
    {"Cancelled", ErrorKind::kCancelled},
    {"Internal", ErrorKind::kInternal},
};

constexpr bool all_kinds_known() {
  for (const CatalogueEntry& entry : kErrorCatalogue) {
    bool known = false;
    for (const KindName& row : kKinds) known = known || row.name == entry.kind;
    if (!known) return false;
  }
  return true;
}
static_assert(all_kinds_known(), "schema/errors.json has a kind that ErrorKind lacks");

}  // namespace

const CatalogueEntry* find_catalogue_entry(uint16_t number) {
  for (const CatalogueEntry& entry : kErrorCatalogue) {
    if (entry.number == number) return &entry;
  }
  return nullptr;
}

ErrorKind error_kind(ErrorCode code) {
  const CatalogueEntry* entry = find_catalogue_entry(static_cast<uint16_t>(code));
  for (const KindName& row : kKinds) {
    if (entry && row.name == entry->kind) return row.kind;
  }
  return ErrorKind::kInternal;
}

std::string Error::code() const { return code_text(number_); }

std::string Status::str() const {
  if (ok()) return "OK";
  return "[" + code_text(static_cast<unsigned>(code())) + "] " + message();
}

void Status::throw_if_error() const {
  if (ok()) return;
  throw Error(static_cast<uint16_t>(code()), error_kind(code()), str());
}

Status Status::prefixed(const std::string& where) const {
  return ok() ? *this : Status(code(), where + message());
}

}  // namespace tracefire
