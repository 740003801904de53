# SPDX-License-Identifier: Apache-2.0
"""Calls of the extension module with arguments that a function does not take, in words."""

from tracefire import errors

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "True or False",
    "None": "None",
}


def call_error(text, args, kwargs):
    """The TypeError (TF-E0502) for one such call.

    Args:
        text: nanobind's message; its second line is the function with its parameters and types.
        args, kwargs: what the function was called with, `self` among it.
    """
    signatures = [line.split(". ", 1)[1] for line in text.splitlines() if line[:4] == "    "]
    problems = [_problem(*_parsed(signature), list(args), kwargs) for signature in signatures]
    name, happened, expected = problems[0]
    if len(problems) > 1:
        forms = "; or ".join(_without_self(s) for s in signatures)
        given = ", ".join([described(a) for a in args] + list(kwargs))
        happened, expected = f"it was called with {given}", forms
    return errors.raised_here(
        "BadUsage",
        f"{name}: {happened}",
        expected,
        f"help({name}) says more" if name.isidentifier() else "help() of it says more",
        errors.DTypeError,
    )


def _parsed(signature):
    """(name, [(parameter, type, whether it may be left out)]) of "name(a: int, b: str = '') -> T"."""
    name, _, rest = signature.partition("(")
    parts, depth, quote = [""], 0, None
    for sign in rest:
        if quote:
            quote = None if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif sign == "," and not depth:
            parts.append("")
            continue
        parts[-1] += sign
    parameters = []
    for part in filter(None, (p.strip() for p in parts)):
        declared, has_default, _ = part.partition(" = ")
        parameter, _, kind = declared.partition(": ")
        if parameter not in ("/", "*"):
            parameters.append((parameter, kind or "object", bool(has_default)))
    return name, parameters


def _without_self(signature):
    return signature.replace("self, ", "").replace("self)", ")")


def _problem(name, parameters, args, kwargs):
    """(name of the function as it is called, what happened, what was expected)."""
    if parameters and parameters[0][0] == "self" and args:
        owner = type(args.pop(0)).__name__
        name = owner if name == "__init__" else f"{owner}.{name}"
        parameters = parameters[1:]
    names = [p for p, _, _ in parameters if not p.startswith("*")]
    takes = f"the arguments {', '.join(names)}" if names else "no arguments"
    if len(args) > len(names) and len(names) == len(parameters):
        return name, f"it was given {len(args)} arguments, and takes {len(names)}", takes
    given = dict(zip(names, args))
    for word, value in kwargs.items():
        if word not in names:
            return name, f"it has no argument {word!r}", takes
        if word in given:
            return name, f"argument {word!r} was given twice", takes
        given[word] = value
    for parameter, kind, optional in parameters:
        if parameter in given:
            if not _fits(given[parameter], kind):
                happened = f"argument {parameter!r} is {described(given[parameter])}"
                return name, happened, " or ".join(_in_words(k) for k in kind.split(" | "))
        elif not optional and not parameter.startswith("*"):
            return name, f"argument {parameter!r} is missing", takes
    for parameter, value in given.items():
        if isinstance(value, str) and not value.isascii() and not _is_text(value):
            happened = f"argument {parameter!r}, {described(value)}, holds half of a surrogate pair"
            return name, happened, "text that UTF-8 can encode"
    return name, f"it was called with {', '.join(described(v) for v in given.values())}", takes


def _is_text(value):
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(value, kind):
    kinds = kind.split(" | ")
    if value is None:
        return "None" in kinds
    return any(_fits_one(value, k) for k in kinds)


def _fits_one(value, kind):
    if kind == "int":
        return hasattr(type(value), "__index__") and -(2**63) <= value.__index__() < 2**63
    if kind == "float":
        return isinstance(value, (int, float)) or hasattr(type(value), "__float__")
    if kind in ("str", "bool"):
        return type(value).__name__ in (kind, f"{kind}_")
    if kind.rpartition(".")[2][:1].isupper():  # a class
        return type(value).__name__ == kind.rpartition(".")[2]
    return kind != "None"


def _in_words(kind):
    if kind in _WORDS:
        return _WORDS[kind]
    return f"a {kind.rpartition('.')[2]}" if kind != "object" else "a value"


def described(value):
    """The value and its type, for a message; the type alone of what cannot be shown."""
    if value is None:
        return "None"
    try:
        return f"{type(value).__name__} {value!r:.60}"
    except Exception:  # a value that cannot be shown
        return type(value).__name__
