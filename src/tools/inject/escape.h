// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/report/escape.h"

namespace tracefire::inject {

using report::html_text;
using report::names_a_secret;
using report::printable;
using report::redacted;
using report::redacted_words;

}  // namespace tracefire::inject
