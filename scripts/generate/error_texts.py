#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes, from schema/errors.json, what `tracefire explain` tells (core/base/error_texts.cpp) and the
test of its examples (tests/error_examples.h).

An example is a pair of texts, `wrong` and `right`. With "language": "cpp" both are statements that
use tracefire's headers; the test runs them: the wrong one must raise the error, the right one none.

usage: error_texts.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import json
import sys

import _generator

INPUT = "schema/errors.json"
TEXTS = "core/base/error_texts.cpp"
EXAMPLES = "error_examples.h"


def fail(error, why):
    sys.exit(f"{INPUT}: {error['number']} {error['name']}: {why}")


def check(errors):
    for e in errors:
        for field in ("cause", "expected"):
            if not e.get(field):
                fail(e, f"has no '{field}'; `tracefire explain` tells it")
        example = e.get("example", {})
        if not example.get("wrong") or not example.get("right"):
            fail(e, "has no example with 'wrong' and 'right'")
        if example.get("language") not in ("cpp", "text"):
            fail(e, "its example's language is neither cpp nor text")


def lines_of(text):
    return "\n".join(text) if isinstance(text, list) else text


def render_texts(errors):
    q = json.dumps
    lines = [f"// Generated from {INPUT}; do not edit.", '#include "core/base/error_texts.h"',
             "namespace tracefire {", "namespace {", "constexpr ErrorText kTexts[] = {"]
    for e in errors:
        example = e["example"]
        lines.append(f"  {{{e['number']}, {q(e['cause'])}, {q(e['expected'])}, "
                     f"{q(lines_of(example['wrong']))}, {q(lines_of(example['right']))}}},")
    lines += ["};", "}  // namespace", "const ErrorText* find_error_text(uint16_t number) {",
              "  for (const ErrorText& text : kTexts) {", "    if (text.number == number) return &text;",
              "  }", "  return nullptr;", "}", "}  // namespace tracefire", ""]
    return lines


def render_examples(errors):
    lines = [f"// Generated from {INPUT}; do not edit. Included by tests/cli/error_examples_test.cpp."]
    for e in errors:
        example = e["example"]
        if example["language"] != "cpp":
            continue
        lines += [f'TEST_CASE("explain: the example of TF-E{e["number"]:04}") {{',
                  f"  CHECK(error_of([] {{\n{lines_of(example['wrong'])}\n  }}) == {e['number']});",
                  f"  CHECK(error_of([] {{\n{lines_of(example['right'])}\n  }}) == 0);", "}"]
    return lines + [""]


def make(root):
    errors = _generator.load(root, INPUT)["errors"]
    check(errors)
    return [render_texts(errors), render_examples(errors)]


def main():
    _generator.run(__doc__, [INPUT], [TEXTS, EXAMPLES], make)


if __name__ == "__main__":
    main()
