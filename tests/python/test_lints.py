# SPDX-License-Identifier: Apache-2.0
"""Each lint accepts a good tree and fails on a bad one, with a message that says what to do."""
import contextlib
import importlib
import io
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "lint"))
LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def lint(name, root):
    module = importlib.import_module(name)
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", [name, str(root)])
        code = module.main()
    assert (code == 0) == (printed.getvalue() == "")
    return printed.getvalue()


@pytest.fixture
def tree(tmp_path):
    table = (ROOT / "scripts/lint/rooms.json").read_text()
    write(tmp_path, "scripts/lint/rooms.json", table)
    return tmp_path


@pytest.mark.parametrize("path, include", [
    ("src/core/graph/a.cpp", '"core/base/status.h"'),
    ("src/core/graph/a.cpp", '"tracefire/tensor.h"'),
    ("src/core/graph/a.cpp", "<vector>"),
    ("src/core/base/a.cpp", '"tracefire/shape.h"'),
    ("src/core/base/a.cpp", '"error_codes.h"'),
    ("src/core/graph/sub/a.cpp", '"core/graph/graph.h"'),
    ("src/backends/cuda/a.cpp", "<cuda.h>"),
    ("src/backends/cuda/a.cpp", '"backends/nvidia/search.h"'),
    ("src/backends/registry.cpp", '"backends/cuda/backend.h"'),
    ("src/tools/cli/a.cpp", '"tools/doctor/doctor.h"'),
    ("python/bindings/a.cpp", "<nanobind/nanobind.h>"),
    ("tests/core/a.cpp", '"backends/cuda/backend.h"'),
])
def test_includes_accepts(tree, path, include):
    write(tree, path, LICENCE + f"#include {include}\n")
    assert lint("includes", tree) == ""


@pytest.mark.parametrize("path, include, word", [
    ("src/core/graph/a.cpp", '"core/ops/op_table.h"', "core/graph may not include core/ops"),
    ("src/core/base/a.cpp", '"tracefire/tensor.h"', "only the value types"),
    ("src/backends/cpu/a.cpp", '"backends/cuda/backend.h"', "may not include backends/cuda"),
    ("src/backends/null/a.cpp", '"backends/ref/kernels.h"', "may not include backends/ref"),
    ("src/core/compile/a.cpp", '"backends/registry.h"', "in no room"),
    ("src/core/engine/a.cpp", "<cuda.h>", "core/engine may not use cuda"),
    ("src/backends/cuda/a.cpp", "<oneapi/dnnl/dnnl.hpp>", "may not use dnnl"),
    ("include/tracefire/a.h", '"core/base/status.h"', "may not include core/base"),
    ("src/lib/nn/a.cpp", '"core/graph/graph.h"', "may not include core/graph"),
    ("src/lib/data/a.cpp", '"lib/nn/layer.h"', "may not include lib/nn"),
    ("python/bindings/a.cpp", '"core/base/status.h"', "may not include core/base"),
    ("src/core/graph/a.cpp", '"graph.h"', "names no folder"),
    ("src/core/graph/a.cpp", '"../base/status.h"', "goes up"),
    ("src/new/a.cpp", "<vector>", "lies in no room"),
])
def test_includes_refuses(tree, path, include, word):
    write(tree, path, LICENCE + f"#include {include}\n")
    assert word in lint("includes", tree)


def test_includes_knows_the_folder_of_the_ready_kernels(tree):
    write(tree, "src/backends/cuda/kernels/a.cu", LICENCE + '#include "common.cuh"\n')
    assert "names no folder" in lint("includes", tree)
    write(tree, "src/backends/cuda/kernels/common.cuh", LICENCE)
    assert lint("includes", tree) == ""


@pytest.mark.parametrize("change, word", [
    (lambda rooms: rooms["core/graph"]["uses"].append("core/ops"), "in a circle"),
    (lambda rooms: rooms["backends/cpu"]["uses"].append("backends/ref"), "a backend never includes another"),
    (lambda rooms: rooms["core/graph"]["uses"].append("core/basement"), "which is no room"),
])
def test_includes_refuses_a_bad_table(tree, change, word):
    path = tree / "scripts/lint/rooms.json"
    table = json.loads(path.read_text())
    change(table["rooms"])
    path.write_text(json.dumps(table))
    assert word in lint("includes", tree)


def cpp_function(lines):
    body = ["  x += 1;  // {", '  x += "{"[0];', "  if (x > 1) { x -= 1; }"]
    body += ["  x += 1;"] * (lines - 2 - len(body))
    return "namespace a {\nint f(int x) {\n" + "\n".join(body) + "\n}\n}\n"


def test_budgets_counts_functions_of_cpp(tree):
    write(tree, "src/core/base/good.cpp", LICENCE + cpp_function(120))
    assert lint("budgets", tree) == ""
    write(tree, "src/core/base/bad.cpp", LICENCE + cpp_function(121))
    assert "src/core/base/bad.cpp:3: a function of 121 lines" in lint("budgets", tree)


def test_budgets_counts_a_method_but_not_its_class(tree):
    small = "  int f() { return 1; }\n"
    write(tree, "src/core/base/a.h", LICENCE + "class A : public B<int> {\n" + small * 200 + "};\n")
    assert lint("budgets", tree) == ""
    big = "  A(int x) : x_{x} {\n" + "    x_ += [] { return 1; }();\n" * 130 + "  }\n"
    write(tree, "src/core/base/b.h", LICENCE + "class A {\n" + small + big + "};\n")
    assert "b.h:4: a function of 132 lines" in lint("budgets", tree)


def test_budgets_counts_functions_of_python(tree):
    write(tree, "scripts/a.py", "def f():\n" + "    x = 1\n" * 119)
    assert lint("budgets", tree) == ""
    write(tree, "scripts/a.py", "def f():\n" + "    x = 1\n" * 120)
    assert "a function of 121 lines" in lint("budgets", tree)


def test_budgets_counts_files(tree):
    write(tree, "src/core/base/a.h", LICENCE + "\n" * 999)
    assert "1001 lines, at most 1000" in lint("budgets", tree)


@pytest.mark.parametrize("text", [
    "see build/deps and /usr/local/cuda",
    "https://example.org/home/page",
    "mkstemp(\"XXXXXX\")",
    "a session of the server",
    "// ---- Seeds",
    "// ---- bash ----",
])
def test_words_accepts(tree, text):
    write(tree, "docs/a.md", text + "\n")
    assert lint("words", tree) == ""


@pytest.mark.parametrize("text, word", [
    ("/ho" "me/ann/tree", "a path of one machine"),
    ("see /ro" "ot/.cache", "a path of one machine"),
    ("read ../sha" "red/design.md", "outside the repository"),
    ("pip install --index" "-url x", "a package mirror"),
    ("// TO" "DO: later", "a mark of unfinished work"),
    ("FIX" "ME", "a mark of unfinished work"),
    ("// -----", "a rule that a formatter broke off its heading"),
])
def test_words_refuses(tree, text, word):
    write(tree, "docs/a.md", "first line\n" + text + "\n")
    found = lint("words", tree)
    assert "docs/a.md:2" in found and word in found


def test_words_wants_the_licence_line(tree):
    write(tree, "src/core/base/a.h", "#pragma once\n")
    assert "SPDX" in lint("words", tree)


def test_lints_are_programs(tree):
    write(tree, "src/core/base/a.h", LICENCE + "#include <cuda.h>\n")
    done = subprocess.run([sys.executable, str(ROOT / "scripts/lint/includes.py"), str(tree)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "") and "may not use cuda" in done.stdout


def test_layout(tree):
    write(tree, "src/core/base/a.h", LICENCE)
    write(tree, "src/core/graph/passes/a.h", LICENCE)
    assert "is missing" in lint("layout", tree)
    write(tree, "docs/layout.md", "`src/`: `src/core/` `src/core/{base,graph}` `src/core/graph/passes` `scripts/lint/*.json`\n")
    assert lint("layout", tree) == ""
    write(tree, "src/core/ops/a.h", LICENCE)
    assert "does not name src/core/ops" in lint("layout", tree)
    write(tree, "docs/layout.md", "`src/` `src/core` `src/core/{base,graph,ops}` `src/core/graph/passes`\n\n`src/core/gone/`\n")
    assert "docs/layout.md:3: names src/core/gone, which does not exist" in lint("layout", tree)


def run_blocks(tmp_path, text):
    file = tmp_path / "a.md"
    file.write_text(text)
    done = subprocess.run([sys.executable, str(ROOT / "scripts/run_doc_blocks"), str(file)],
                          capture_output=True, text=True)
    return done.returncode, [line.split(" ")[0] + line.partition(" s")[2] for line in done.stdout.splitlines()
                             if line.startswith(("passed", "failed", "skipped"))]


def test_doc_blocks_run(tmp_path):
    text = ("```sh\ntrue\n```\n```cpp\nint f() { return 1; }\n```\n```python\nassert 1\n```\n"
            "```sh no-run: takes an hour\nfalse\n```\n```\nfalse\n```\n```text\nfalse\n```\n")
    assert run_blocks(tmp_path, text) == (0, ["passed", "passed", "passed", "skipped: takes an hour"])


@pytest.mark.parametrize("block, outcome", [
    ("```sh\nfalse\ntrue\n```\n", "failed: exit status 1"),
    ("```cpp\nint f( { return 1; }\n```\n", "failed: exit status 1"),
    ("```python\nassert 0\n```\n", "failed: exit status 1"),
    ("```sh no-run\ntrue\n```\n", "failed: no-run needs a reason: ```sh no-run: why"),
])
def test_doc_blocks_fail(tmp_path, block, outcome):
    assert run_blocks(tmp_path, block) == (1, [outcome])
