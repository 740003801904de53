# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md is what the op table says; header and stubs are complete."""
import ast
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import generate_ops  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", ROOT / "build"))


@pytest.fixture(scope="module")
def rows():
    program = BUILD / "bin" / "optable"
    if not program.exists():
        pytest.skip("optable is not built")
    return json.loads(subprocess.run([program], check=True, capture_output=True).stdout)


def test_docs_are_current(rows):
    assert (ROOT / "docs" / "ops.md").read_text(encoding="utf-8") == generate_ops.docs(rows), \
        "docs/ops.md is not what the op table says; run `ninja -C build docs_ops` and commit it"


def test_docs_name_every_row(rows):
    docs = generate_ops.docs(rows)
    for row in rows:
        assert f"### {row['name']}\n" in docs
        assert f"(#{row['name']})" in docs


def test_header_has_every_function(rows):
    header = generate_ops.header(rows)
    for row in rows:
        assert (f" {row['name']}(" in header) == generate_ops.has_function(row), row["name"]
    assert "inline Tensor add(const Tensor& x, const Tensor& y) {" in header
    assert "inline TopKResult top_k(const Tensor& x, int64_t k, DType dtype = DType::kI32) {" in header


def test_stubs_are_python(rows):
    names = {node.name for node in ast.parse(generate_ops.stubs(rows)).body
             if isinstance(node, ast.FunctionDef)}
    assert {"add", "matmul", "concat", "random_bits", "top_k", "print"} <= names
    assert not names & {"if", "while", "call", "fused", "host_call"}
