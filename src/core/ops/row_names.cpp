// SPDX-License-Identifier: Apache-2.0
#include "core/ops/row_names.h"

namespace tracefire {

const char* op_class_name(OpClass op_class) {
  switch (op_class) {
    case OpClass::kElementwise:
      return "elementwise";
    case OpClass::kReduction:
      return "reduction";
    case OpClass::kMovement:
      return "movement";
    case OpClass::kProduct:
      return "product";
    case OpClass::kRandom:
      return "random";
    case OpClass::kComposite:
      return "composite";
    case OpClass::kControl:
      return "control";
    case OpClass::kHost:
      return "host";
  }
  return "";
}

const char* attr_type_name(AttrType type) {
  switch (type) {
    case AttrType::kFlag:
      return "flag";
    case AttrType::kInteger:
      return "integer";
    case AttrType::kReal:
      return "real";
    case AttrType::kText:
      return "text";
    case AttrType::kDType:
      return "dtype";
    case AttrType::kInts:
      return "ints";
    case AttrType::kShape:
      return "shape";
  }
  return "";
}

}  // namespace tracefire
