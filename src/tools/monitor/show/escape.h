// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/text/escape.h"

namespace tracefire::monitor {

using text::ascii_only;
using text::clean;
using text::cut_to_width;
using text::display_width;
using text::escape;
using text::Sink;

}  // namespace tracefire::monitor
