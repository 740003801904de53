# SPDX-License-Identifier: Apache-2.0
"""The type stub that the build makes says what the module has."""

import ast
import inspect
import keyword
import pathlib

import pytest

core = pytest.importorskip("tracefire._core")
STUB = pathlib.Path(core.__file__).with_name("_core.pyi")
TREE = ast.parse(STUB.read_text(encoding="utf-8"))
CLASSES = {n.name: n for n in TREE.body if isinstance(n, ast.ClassDef)}
FUNCTIONS = {n.name: n for n in TREE.body if isinstance(n, ast.FunctionDef)}
VARIABLES = {t.id for n in TREE.body if isinstance(n, ast.Assign) for t in n.targets}
VARIABLES |= {n.target.id for n in TREE.body if isinstance(n, ast.AnnAssign)}


def public(names):
    return {n for n in names if not n.startswith("__")}


def members(node):
    names = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    return names | {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}


def test_the_stub_names_what_the_module_has_and_no_more():
    types_only = {"DTypeLike", "Size", "ShapeLike", "Operand", "TensorLike"}
    helpers = {"_Self", "_ExcType", "_HasName", "_Context", "_Operations"}
    stub = public(set(CLASSES) | set(FUNCTIONS) | VARIABLES) - types_only - helpers
    assert stub == public(dir(core))
    assert any(
        isinstance(n, ast.ImportFrom) and n.module == "tracefire.errors" for n in TREE.body
    )


@pytest.mark.parametrize("name", sorted(n for n in CLASSES if n in dir(core)))
def test_classes_have_the_members_of_the_stub(name):
    here = public(n for n in vars(getattr(core, name)) if n not in operators_of_the_package(name))
    assert here == public(members(CLASSES[name]))


def operators_of_the_package(name):
    """Names that Python code put on the class: they are no part of the module."""
    added = vars(getattr(core, name)).items()
    return {n for n, v in added if inspect.isfunction(getattr(v, "fget", v))}


def test_operations_have_the_parameters_of_the_stub():
    methods = {n.name: n for n in CLASSES["_Operations"].body}
    assert set(methods) == {n for n in public(dir(core.ops)) if not keyword.iskeyword(n)}
    for name, node in methods.items():
        parameters = inspect.signature(getattr(core.ops, name)).parameters.values()
        by_kind = {}
        for p in parameters:
            by_kind.setdefault(p.kind, []).append(p.name)
        assert [a.arg for a in node.args.posonlyargs] == by_kind.get(inspect.Parameter.POSITIONAL_ONLY, [])
        assert [a.arg for a in node.args.kwonlyargs] == by_kind.get(inspect.Parameter.KEYWORD_ONLY, [])
        assert ast.get_docstring(node)
