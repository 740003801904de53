// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what libtracefire.so exports; everything else is hidden.
#define TRACEFIRE_API [[gnu::visibility("default")]]
