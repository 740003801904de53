// SPDX-License-Identifier: Apache-2.0
// The examples of `tracefire explain` do what they say.
#include <doctest/doctest.h>

#include "core/base/error_texts.h"
#include "core/base/status.h"
#include "tracefire/config.h"
#include "tracefire/control.h"
#include "tracefire/function.h"
#include "tracefire/grad.h"
#include "tracefire/ops.h"

namespace tracefire {
namespace {

/// Number of the error that `example` raises, 0 for none.
template <class Example>
int error_of(const Example& example) {
  try {
    example();
    synchronize();
  } catch (const Error& failure) {
    CHECK(std::string(failure.what()).find(failure.code()) != std::string::npos);
    return failure.number();
  }
  return 0;
}

TEST_CASE("explain: every error of the catalogue has its texts") {
  for (const CatalogueEntry& entry : kErrorCatalogue) {
    CAPTURE(entry.name);
    const ErrorText* text = find_error_text(entry.number);
    REQUIRE(text != nullptr);
    for (const char* part : {text->cause, text->expected, text->wrong, text->right}) CHECK(*part);
  }
  CHECK(find_error_text(1) == nullptr);
}

#include "error_examples.h"

}  // namespace
}  // namespace tracefire
