# SPDX-License-Identifier: Apache-2.0
"""Hand-written files have at most 1,000 lines, functions at most 120."""
import ast
import re
import sys

import _lint

FILE_LINES = 1000
FUNCTION_LINES = 120
CHECKED = _lint.CODE | {".py", ".cmake", ".sh"}

# Comments, literals and preprocessor lines hold braces that are none.
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n\\]|\\.)*', re.S | re.M)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b[^()]*$|extern\s*$|^\s*$")
# A member initialised with braces: `A(int x) : x_{x}` is not the body yet.
INITIALISER = re.compile(r"\)\s*(?:noexcept\s*)?:[^:].*[\w>]\s*$", re.S)
CONTROL = re.compile(r"\b(if|for|while|switch|catch)\s*(constexpr\s*)?\([^{}]*$")


def blank(match):
    """The noise replaced by spaces, its line ends kept."""
    return re.sub(r"[^\n]", " ", match.group())


def cpp_functions(text):
    """Yields (first line, lines) of each function body that lies in a namespace or a class."""
    text = NOISE.sub(blank, text)
    stack, start, parens = [], 0, 0
    for match in re.finditer(r"[{};()]", text):
        token, at = match.group(), match.start()
        if token in "()":
            parens += 1 if token == "(" else -1
        elif token == "{":
            head = text[start:at]
            inside = any(kind != "scope" for kind, _, _ in stack) or parens > 0
            if inside:
                kind = "block"
            elif INITIALISER.search(head):
                kind = "initialiser"
            elif "(" in head and not CONTROL.search(head):
                kind = "function"
            else:
                kind = "scope" if SCOPE.search(head) else "block"
            stack.append((kind, at, parens))
            parens = 0
            if kind != "initialiser":
                start = at + 1
        elif token == "}":
            if stack:
                kind, opened, parens = stack.pop()
                if kind == "initialiser":
                    continue
                if kind == "function":
                    first = text.count("\n", 0, opened) + 1
                    yield first, text.count("\n", opened, at) + 1
            start = at + 1
        elif parens == 0:
            start = at + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def check(path, text):
    lines = text.count("\n") + 1
    if lines > FILE_LINES:
        yield path, 1, f"{lines} lines, at most {FILE_LINES}; split it by its reasons to change"
    functions = []
    if path.suffix in _lint.CODE:
        functions = cpp_functions(text)
    elif path.suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        functions = python_functions(text)
    for first, length in functions:
        if length > FUNCTION_LINES:
            yield path, first, f"a function of {length} lines, at most {FUNCTION_LINES}; split it into its steps"


def main():
    root = _lint.root_from_arguments()
    findings = []
    for path in _lint.project_files(root):
        if path.suffix in CHECKED or (str(path).startswith("scripts/") and not path.suffix):
            text = _lint.read_text(root, path)
            if text is not None:
                findings += check(path, text)
    return _lint.finish(findings)


if __name__ == "__main__":
    sys.exit(main())
