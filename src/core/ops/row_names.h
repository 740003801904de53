// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_row.h"

namespace tracefire {

/// "elementwise", "reduction", … as documentation and bindings name a row's class.
const char* op_class_name(OpClass op_class);
/// "flag", "integer", … as they name an attribute's type.
const char* attr_type_name(AttrType type);
/// "true or false", "an integer", … as errors do.
const char* attr_type_words(AttrType type);

}  // namespace tracefire
