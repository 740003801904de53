#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes _core.pyi, the types of the Python module: a template, and the rows of the op table.

usage: generate_stubs.py MODULE TEMPLATE OUT     MODULE: the built file tracefire/_core.*.so
"""
import importlib.machinery
import importlib.util
import keyword
import pathlib
import sys
import textwrap

TYPES = {
    "flag": "bool",
    "integer": "SupportsIndex",
    "real": "SupportsFloat",
    "text": "str | bytes",
    "dtype": "DTypeLike",
    "ints": "Sequence[SupportsIndex] | SupportsIndex",
    "shape": "ShapeLike",
}


def load(path):
    """The module alone: the package around it need not be there."""
    loader = importlib.machinery.ExtensionFileLoader("tracefire._core", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def parameters(row):
    """The parameters of a row's function, as Python writes them."""
    out = []
    if row["max_inputs"] < 0:
        names = [n for n in row["inputs"] if n != "token"]
        out.append(f"*{names[-1] if names else 'tensors'}: Operand | Sequence[Operand]")
    else:
        for i, name in enumerate(row["inputs"][: row["max_inputs"]]):
            out.append(f"{name}: Operand" + (" = ..." if i >= row["min_inputs"] else ""))
        if out:
            out.append("/")
        if row["attrs"]:
            out.append("*")
    given = [a for a in row["attrs"] if a["default"] is None]
    others = [a for a in row["attrs"] if a["default"] is not None]
    out += [f"{a['name']}: {TYPES[a['type']]}" for a in given]
    out += [f"{a['name']}: {TYPES[a['type']]} | None = {a['default']}" for a in others]
    return out


def result(row):
    count = len(row["outputs"]) - (1 if row["ordered"] else 0)
    return {0: "None", 1: "Tensor"}.get(count, f"tuple[{', '.join(['Tensor'] * count)}]")


def method(row):
    head = f"def {row['name']}({', '.join(parameters(row))}) -> {result(row)}:"
    if len(head) > 92:
        inner = ",\n    ".join(parameters(row))
        head = f"def {row['name']}(\n    {inner},\n) -> {result(row)}:"
    doc = "\n".join(textwrap.wrap(row["doc"], 84))
    return f'@staticmethod\n{head}\n    """{textwrap.indent(doc, "    ").strip()}"""\n'


def stub(template, rows):
    # "assert" is a word of Python's own: getattr(ops, "assert") is how it is called.
    methods = [method(r) for r in rows if r["bound"] and not keyword.iskeyword(r["name"])]
    text = template + "class _Operations:\n" + textwrap.indent("\n".join(methods), "    ")
    return text + "\nops: _Operations\nstop_gradient = _Operations.stop_gradient\n"


def main(module, template, out):
    text = stub(pathlib.Path(template).read_text(encoding="utf-8"), load(module).op_specs())
    path = pathlib.Path(out)
    if path.is_symlink() or not path.exists() or path.read_text(encoding="utf-8") != text:
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
