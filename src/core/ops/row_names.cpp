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

namespace {

/// In the order of AttrType.
constexpr struct {
  const char* name;
  const char* words;
} kAttrTypes[] = {{"flag", "true or false"},    {"integer", "an integer"},
                  {"real", "a number"},         {"text", "a text"},
                  {"dtype", "an element type"}, {"ints", "a list of integers"},
                  {"shape", "a shape"}};
static_assert(std::size(kAttrTypes) == static_cast<size_t>(AttrType::kShape) + 1);

}  // namespace

const char* attr_type_name(AttrType type) { return kAttrTypes[static_cast<size_t>(type)].name; }

const char* attr_type_words(AttrType type) { return kAttrTypes[static_cast<size_t>(type)].words; }

}  // namespace tracefire
