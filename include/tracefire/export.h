// SPDX-License-Identifier: Apache-2.0
//
// Which symbols libtracefire.so shows. The library is compiled with hidden visibility: only what a
// public header marks with TRACEFIRE_API can be called from outside.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
/// Marks a class, function or variable of a public header as part of the library's interface.
#define TRACEFIRE_API __attribute__((visibility("default")))
#else
#error "Tracefire is compiled with GCC 11 or newer, or Clang 14 or newer."
#endif
