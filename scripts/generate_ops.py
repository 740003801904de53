#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes from the op table what is derived from it.

usage: generate_ops.py TABLE.json [--docs FILE.md] [--header FILE.h] [--stubs FILE.pyi]
TABLE.json is what the program `optable` prints.
"""
import argparse
import json
import keyword
import textwrap

CLASSES = {
    "elementwise": "Element by element",
    "movement": "Making, moving and picking elements",
    "reduction": "Reductions and searches",
    "product": "Matrix products",
    "random": "Random numbers",
    "composite": "Composites",
    "control": "Control flow",
    "host": "Host: effects and strings",
}
CPP_TYPES = {"flag": "bool", "integer": "int64_t", "real": "double", "text": "const std::string&",
             "dtype": "DType", "ints": "const std::vector<int64_t>&", "shape": "const Shape&"}
CPP_DTYPES = {"bool": "kBool", "int8": "kI8", "int16": "kI16", "int32": "kI32", "int64": "kI64",
              "uint8": "kU8", "uint16": "kU16", "uint32": "kU32", "uint64": "kU64",
              "float16": "kF16", "bfloat16": "kBF16", "float32": "kF32", "float64": "kF64"}
PY_TYPES = {"flag": "bool", "integer": "int", "real": "float", "text": "str | bytes", "dtype": "str",
            "ints": "Sequence[int]", "shape": "Sequence[int | Dim]"}


def variadic(row):
    return row["max_inputs"] < 0


def attrs_in_order(row):
    """Required attributes first."""
    return sorted(row["attrs"], key=lambda attr: "default" in attr)


# ---- docs/ops.md ---------------------------------------------------------------------------------

def plain(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "(" + ", ".join(map(str, value)) + ")"
    return f'"{value}"' if isinstance(value, str) and not value.isidentifier() else str(value)


def signature(row):
    inputs = list(row["inputs"])
    if variadic(row):
        last = "token" if row["effect"] else None
        inputs = [name + ("" if name in ("token", "pred", "cond") else "…") for name in inputs]
        assert last is None or inputs[-1] == last
    else:
        inputs = [name + ("?" if i >= row["min_inputs"] else "") for i, name in enumerate(inputs)]
    outputs = ", ".join(row["outputs"]) or "results…"
    return f"{row['name']}({', '.join(inputs)}) → {outputs}"


def cell(text):
    return text.replace("|", "\\|")


def row_doc(row):
    lines = [f"### {row['name']}", "", f"`{signature(row)}`", "", row["doc"], ""]
    if row["attrs"]:
        lines += ["| attribute | type | default | |", "| --- | --- | --- | --- |"]
        for attr in row["attrs"]:
            default = plain(attr["default"]) if "default" in attr else "must be given"
            lines.append(f"| `{attr['name']}` | {attr['type']} | {cell(default)} | "
                         f"{cell(attr['doc'])} |")
        lines.append("")
    facts = [f"In TensorFlow's log: {row['tf_name']}."]
    if row["class"] == "control" and row["gradient"]:
        facts.append("Gradient: region by region.")
    elif row["gradient"]:
        facts.append("Has a gradient.")
    else:
        facts.append(f"No gradient: {row['why_no_gradient']}.")
    if row["decomposes"]:
        facts.append("Decomposed where no kernel accepts it.")
    if row["effect"]:
        facts.append(f"Ordered among effects of class `{row['effect']}`.")
    if row["size_output"] >= 0:
        facts.append("The size of its result may depend on data.")
    return lines + [" ".join(facts), ""]


def docs(rows):
    lines = ["# Operations", "",
             f"The {len(rows)} rows of the op table (`src/core/ops`), made by "
             "`scripts/generate_ops.py`; do not edit. Shapes broadcast as in NumPy. Operands of one "
             "operation have one element type; nothing is converted silently.", ""]
    lines += ["| | operations |", "| --- | --- |"]
    for key, title in CLASSES.items():
        names = [f"[{row['name']}](#{row['name']})" for row in rows if row["class"] == key]
        lines.append(f"| {title} | {' '.join(names)} |")
    lines.append("")
    for key, title in CLASSES.items():
        lines += [f"## {title}", ""]
        for row in rows:
            if row["class"] == key:
                lines += row_doc(row)
    return "\n".join(lines).rstrip() + "\n"


# ---- tracefire/ops.h -----------------------------------------------------------------------------

def cpp_default(attr):
    value = attr["default"]
    if attr["type"] == "flag":
        return "true" if value else "false"
    if attr["type"] == "dtype":
        return "DType::" + CPP_DTYPES[value]
    if attr["type"] in ("ints", "shape"):
        return "{" + ", ".join(map(str, value)) + "}"
    return json.dumps(value) if attr["type"] == "text" else str(value)


def has_function(row):
    """Control flow and effects have functions of their own in control.h, copy is Tensor::to."""
    return row["class"] != "control" and not row["effect"] and row["name"] != "copy"


def result_name(row):
    return "".join(part.capitalize() for part in row["name"].split("_")) + "Result"


def comment(text):
    return [f"/// {line}" for line in textwrap.wrap(text, 96)]


def parameter(attr):
    text = f"{CPP_TYPES[attr['type']]} {attr['name']}"
    return text + (f" = {cpp_default(attr)}" if "default" in attr else "")


def cpp_function(row):
    several = len(row["outputs"]) > 1
    lines = []
    if several:
        lines.append(f"struct {result_name(row)} {{")
        lines += [f"  Tensor {name};" for name in row["outputs"]]
        lines.append("};")
    lines += comment(row["doc"])
    for attr in row["attrs"]:
        lines += comment(f"`{attr['name']}`: {attr['doc']}.")
    given = row["inputs"][:row["min_inputs"]]
    optional = row["inputs"][row["min_inputs"]:]
    if variadic(row):
        params = [f"std::span<const Tensor> {row['inputs'][0]}"]
    else:
        params = [f"const Tensor& {name}" for name in given]
    params += [parameter(attr) for attr in attrs_in_order(row)]
    if not variadic(row):
        params += [f"const Tensor& {name} = {{}}" for name in optional]
    attrs = ", ".join(f'{{"{attr["name"]}", {attr["name"]}}}' for attr in row["attrs"])
    kind = result_name(row) if several else "Tensor"
    lines.append(f"inline {kind} {row['name']}({', '.join(params)}) {{")
    if variadic(row):
        inputs = row["inputs"][0]
    elif optional:
        assert len(optional) == 1
        lines.append(f"  std::vector<Tensor> inputs{{{', '.join(given)}}};")
        lines.append(f"  if ({optional[0]}.defined()) inputs.push_back({optional[0]});")
        inputs = "inputs"
    elif given:
        lines.append(f"  const Tensor inputs[] = {{{', '.join(given)}}};")
        inputs = "inputs"
    else:
        inputs = "{}"
    call = f'apply_op("{row["name"]}", {inputs}' + (f", AttrList{{{attrs}}})" if attrs else ")")
    if several:
        lines.append(f"  std::vector<Tensor> results = {call};")
        results = ", ".join(f"results[{i}]" for i in range(len(row["outputs"])))
        lines.append(f"  return {{{results}}};")
    else:
        lines.append(f"  return {call}[0];")
    lines += ["}", ""]
    if any(attr["name"] == "axes" and "default" not in attr for attr in row["attrs"]) and \
            row["class"] == "reduction":
        lines += ["/// The same over all axes.", f"inline Tensor {row['name']}(const Tensor& x) {{",
                  f"  return {row['name']}(x, all_axes(x));", "}", ""]
    return lines


def header(rows):
    lines = ["// SPDX-License-Identifier: Apache-2.0",
             "// Made from the op table by scripts/generate_ops.py; do not edit.",
             "#pragma once", "", "#include <numeric>", "#include <span>", "#include <string>",
             "#include <vector>", "",
             '#include "tracefire/apply.h"', '#include "tracefire/error.h"', "", "namespace tracefire {", "",
             "// One function an operation. All record; nothing is computed before it is needed.",
             "// Every one throws tracefire::Error with the received types where they do not fit.", "",
             "/// 0, 1, … rank - 1.", "inline std::vector<int64_t> all_axes(const Tensor& x) {",
             "  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));",
             "  std::iota(axes.begin(), axes.end(), int64_t{0});", "  return axes;", "}", ""]
    for row in rows:
        if has_function(row):
            lines += cpp_function(row)
    return "\n".join(lines + ["}  // namespace tracefire", ""])


# ---- stubs of the Python module ------------------------------------------------------------------

def py_default(attr):
    value = attr["default"]
    return repr(tuple(value)) if isinstance(value, list) else repr(value)


def stub(row):
    if variadic(row):
        params = [f"*{row['inputs'][0]}: Tensor"]
    else:
        params = []
        for i, name in enumerate(row["inputs"]):
            params.append(f"{name}: Tensor" if i < row["min_inputs"] else f"{name}: Tensor | None = None")
        if params:
            params.append("/")
        if row["attrs"]:
            params.append("*")
    for attr in attrs_in_order(row):
        text = f"{attr['name']}: {PY_TYPES[attr['type']]}"
        params.append(text + (f" = {py_default(attr)}" if "default" in attr else ""))
    several = len(row["outputs"]) > 1
    kind = f"tuple[{', '.join(['Tensor'] * len(row['outputs']))}]" if several else "Tensor"
    doc = textwrap.indent(textwrap.fill(row["doc"], 92), "    ").strip()
    return [f"def {row['name']}({', '.join(params)}) -> {kind}:", f'    """{doc}"""', "    ..."]


def stubs(rows):
    lines = ["# SPDX-License-Identifier: Apache-2.0",
             "# Made from the op table by scripts/generate_ops.py; do not edit.",
             "from collections.abc import Sequence", "", "from tracefire._core import Dim, Tensor", ""]
    for row in rows:
        # Python has no way to define a function called assert; getattr(ops, "assert") finds it.
        if row["class"] != "control" and row["name"] != "host_call" and not keyword.iskeyword(row["name"]):
            lines += stub(row)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table")
    parser.add_argument("--docs")
    parser.add_argument("--header")
    parser.add_argument("--stubs")
    args = parser.parse_args()
    with open(args.table, encoding="utf-8") as file:
        rows = json.load(file)
    for path, make in ((args.docs, docs), (args.header, header), (args.stubs, stubs)):
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(make(rows))


if __name__ == "__main__":
    main()
