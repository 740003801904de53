# SPDX-License-Identifier: Apache-2.0
"""A NumPy test double of `tracefire._core`.

It implements the part of the extension module's interface that the Python packages call: lazy
tensors, variables as slots, trace scopes that record a graph, reverse-mode gradients over that
graph, and functions that replay it. It exists so that the Keras backend can be tested where the
compiled module is not built, and so that the recorded graphs can be read as text. It is slow and
has one thread.
"""

import collections
import contextlib
import json
import pathlib
import threading
import types

import ml_dtypes
import numpy as np

import fake_grad
import fake_rows

_NUMPY_DTYPES = {
    name: np.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
        "complex64 complex128"
    ).split()
}
_NUMPY_DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
_state = threading.local()
# How often the engine was called, for tests.
calls = collections.Counter()


_CATALOGUE = pathlib.Path(__file__).parents[2] / "schema" / "errors.json"


def error_catalogue():
    """Number and kind of every error by its name."""
    rows = json.loads(_CATALOGUE.read_text())["errors"]
    return {row["name"]: (row["number"], row["kind"]) for row in rows}


def Error(message, name):
    from tracefire import errors

    number, kind = error_catalogue()[name]
    return errors.make(kind, f"[TF-E{number:04d}] {message}")


def _numpy_dtype(dtype):
    if isinstance(dtype, str):
        return _NUMPY_DTYPES[dtype]
    return np.dtype(dtype)


def _dtype_name(dtype):
    return np.dtype(dtype).name


def _scopes():
    if not hasattr(_state, "scopes"):
        _state.scopes, _state.tapes = [], []
    return _state.scopes


class Node:
    """One recorded operation."""

    def __init__(self, op, attrs, inputs, scope):
        self.op, self.attrs, self.inputs, self.scope = op, attrs, inputs, scope
        self.outputs = []


class Tensor:
    """A value: concrete (`_data` is set) or a place in a graph that is being traced."""

    __array_priority__ = 100.0
    device = "/device:CPU:0"

    def __init__(self, shape, dtype, data=None, node=None):
        self.shape, self.dtype, self._data, self._node = tuple(shape), dtype, data, node

    def numpy(self):
        if self._data is None:
            raise Error(
                f"the value of a tensor of shape {self.shape}, dtype {self.dtype} was read while "
                "a function is being traced, where only its shape and dtype are known. Expected "
                "code that does not depend on tensor values. Use tensor operations instead, or "
                "compile(run_eagerly=True).",
                "ValueInTrace",
            )
        return self._data

    def __array__(self, dtype=None, copy=None):
        data = self.numpy()
        return np.array(data, dtype=dtype) if dtype is not None or copy else data

    def __repr__(self):
        value = "" if self._data is None else f", value={self._data}"
        return f"<Tensor shape={self.shape} dtype={self.dtype}{value}>"


class Variable:
    """A slot."""

    def __init__(self, value, name="", trainable=True):
        value = value if isinstance(value, Tensor) else tensor(value)
        if value._data is None:
            raise Error("a slot was given a traced value to start from", "ValueInTrace")
        self.name, self.trainable = name, trainable
        self.shape, self.dtype = value.shape, value.dtype
        self._value = value

    def read(self):
        scope = _tracing()
        return self._value if scope is None else scope.read(self)

    def assign(self, value):
        if value.shape != self.shape or value.dtype != self.dtype:
            raise Error(
                f"slot {self.name!r} of {self.dtype}{list(self.shape)} was assigned a value of "
                f"{value.dtype}{list(value.shape)}",
                "ShapeMismatch",
            )
        scope = _tracing()
        if scope is None:
            self._value = value
        else:
            scope.assign(self, value)


def _tracing():
    scopes = _scopes()
    return scopes[-1] if scopes and isinstance(scopes[-1], TraceScope) else None


def is_tracing():
    return _tracing() is not None


def is_abstract():
    scopes = _scopes()
    return bool(scopes) and isinstance(scopes[-1], abstract)


class abstract:
    """A scope in which operations only infer shapes and dtypes."""

    def __enter__(self):
        _scopes().append(self)
        return self

    def __exit__(self, *exc):
        _scopes().remove(self)

    def parameter(self, shape, dtype):
        return Tensor(shape, dtype)


@contextlib.contextmanager
def init_scope():
    """Runs its body eagerly, outside every trace."""
    saved, _state.scopes = _scopes(), []
    try:
        yield
    finally:
        _state.scopes = saved


class TraceScope:
    """Records operations; `finish` makes a Function of them."""

    def __init__(self):
        self.nodes, self.parameters, self.captures = [], [], {}
        self.slots, self.values, self.assigned = [], {}, []

    def __enter__(self):
        _scopes().append(self)
        return self

    def __exit__(self, *exc):
        _scopes().remove(self)

    def parameter(self, shape, dtype):
        node = Node("parameter", {"index": len(self.parameters)}, [], self)
        out = Tensor(shape, dtype, node=node)
        node.outputs.append(out)
        self.parameters.append(out)
        return out

    def adopt(self, value):
        """A tensor from outside the scope becomes a captured input."""
        if value._node is not None and value._node.scope is self:
            return value
        if id(value) not in self.captures:
            node = Node("captured", {}, [], self)
            out = Tensor(value.shape, value.dtype, node=node)
            node.outputs.append(out)
            self.captures[id(value)] = (out, value)
        return self.captures[id(value)][0]

    def read(self, slot):
        if id(slot) not in self.values:
            node = Node("slot_read", {"slot": slot}, [], self)
            out = Tensor(slot.shape, slot.dtype, node=node)
            node.outputs.append(out)
            self.nodes.append(node)
            self.slots.append(slot)
            self.values[id(slot)] = out
        return self.values[id(slot)]

    def assign(self, slot, value):
        if slot not in self.slots:
            self.slots.append(slot)
        if slot not in self.assigned:
            self.assigned.append(slot)
        self.values[id(slot)] = self.adopt(value)

    def finish(self, outputs):
        return Function(self, [self.adopt(o) for o in outputs])


class Function:
    """A finished graph. Calling it reads its slots, computes, and writes the assigned slots."""

    def __init__(self, scope, outputs):
        self._scope, self.outputs = scope, outputs
        self.captured = [outer for _, outer in scope.captures.values()]

    def __call__(self, *tensors):
        calls["function"] += 1
        return self._run(tensors)

    def _run(self, tensors):
        scope = self._scope
        if len(tensors) != len(scope.parameters):
            raise Error(
                f"{len(tensors)} arguments were given to a function of {len(scope.parameters)}",
                "BadArity",
            )
        env = {}
        for parameter, value in zip(scope.parameters, tensors):
            if parameter.shape != value.shape or parameter.dtype != value.dtype:
                raise Error(
                    f"argument {value.dtype}{list(value.shape)} does not match parameter "
                    f"{parameter.dtype}{list(parameter.shape)}",
                    "BadArity",
                )
            env[id(parameter)] = value.numpy()
        for inner, outer in scope.captures.values():
            env[id(inner)] = outer.numpy()
        for node in _live(scope.nodes, self._roots()):
            if node.op == "slot_read":
                env[id(node.outputs[0])] = node.attrs["slot"]._value.numpy()
                continue
            values = fake_rows.evaluate(node.op, node.attrs, [env[id(i)] for i in node.inputs])
            for out, value in zip(node.outputs, values):
                env[id(out)] = value
        for slot in scope.assigned:
            slot._value = _concrete(env[id(scope.values[id(slot)])])
        return [_concrete(env[id(o)]) for o in self.outputs]

    def _roots(self):
        return self.outputs + [self._scope.values[id(s)] for s in self._scope.assigned]

    def run_epoch(self, data, order, batch, lo, hi, collect=False):
        calls["run_epoch"] += 1
        rows = np.arange(data[0].shape[0]) if order is None else np.asarray(order)
        outputs, parts = [], []
        for step in range(lo, hi):
            at = rows[step * batch : (step + 1) * batch]
            outputs = self._run([_concrete(d.numpy()[at]) for d in data])
            parts.append([o.numpy() for o in outputs])
        if collect:
            return [_concrete(np.concatenate(columns)) for columns in zip(*parts)]
        return outputs

    def text(self):
        """The graph, one line an operation."""
        return _print(self._scope, self.outputs, _live(self._scope.nodes, self._roots()))


def _live(nodes, roots):
    keep, wanted = [], {id(r) for r in roots}
    for node in reversed(nodes):
        if any(id(o) in wanted for o in node.outputs):
            keep.append(node)
            wanted.update(id(i) for i in node.inputs)
    return keep[::-1]


def _print(scope, outputs, nodes):
    names, lines = {}, []

    def spec(t):
        return f"{t.dtype}[{','.join(map(str, t.shape))}]"

    for i, p in enumerate(scope.parameters):
        names[id(p)] = f"%p{i}"
        lines.append(f"%p{i} = parameter : {spec(p)}")
    for i, (inner, _) in enumerate(scope.captures.values()):
        names[id(inner)] = f"%c{i}"
        lines.append(f"%c{i} = captured : {spec(inner)}")
    for count, node in enumerate(nodes):
        for j, out in enumerate(node.outputs):
            names[id(out)] = f"%{count}" if len(node.outputs) == 1 else f"%{count}.{j}"
        attrs = {k: (v.name if isinstance(v, Variable) else v) for k, v in node.attrs.items()}
        attrs = " ".join(f"{k}={v}" for k, v in attrs.items() if v is not None)
        lines.append(
            f"{', '.join(names[id(o)] for o in node.outputs)} = {node.op}"
            f"({', '.join(names[id(i)] for i in node.inputs)})"
            f"{' {' + attrs + '}' if attrs else ''} : {', '.join(map(spec, node.outputs))}"
        )
    for slot in scope.assigned:
        lines.append(f"assign {slot.name} = {names[id(scope.values[id(slot)])]}")
    lines.append("return " + ", ".join(names[id(o)] for o in outputs))
    return "\n".join(lines)


def _concrete(data):
    data = np.asarray(data)
    return Tensor(data.shape, _dtype_name(data.dtype), data=data)


def tensor(value, dtype=None):
    if isinstance(value, Tensor):
        if dtype in (None, value.dtype):
            return value
        return apply("cast", [value], {"dtype": dtype})[0]
    data = np.array(value, dtype=None if dtype is None else _numpy_dtype(dtype))
    if _scopes() and data.nbytes <= 64:
        attrs = {"value": data, "shape": data.shape, "dtype": _dtype_name(data.dtype)}
        return apply("constant", [], attrs)[0]
    return _concrete(data)


def apply(op, tensors, attrs):
    """Runs or records one operation; returns its outputs as a list."""
    scopes = _scopes()
    fake_rows.check(op, tensors, attrs, Error)
    if not scopes:
        with np.errstate(all="ignore"):
            values = fake_rows.evaluate(op, attrs, [t.numpy() for t in tensors])
        outs = [_concrete(v) for v in values]
        if _state.tapes:
            node = Node(op, attrs, list(tensors), None)
            node.outputs = outs
            for out in outs:
                out._node = node
        return outs
    scope = scopes[-1]
    if isinstance(scope, abstract):
        return [Tensor(s, d) for s, d in _specs(op, attrs, tensors)]
    inputs = [scope.adopt(t) for t in tensors]
    node = Node(op, attrs, inputs, scope)
    node.outputs = [Tensor(s, d, node=node) for s, d in _specs(op, attrs, tensors)]
    scope.nodes.append(node)
    return node.outputs


def _specs(op, attrs, tensors):
    dummies = [np.zeros(t.shape, _numpy_dtype(t.dtype)) for t in tensors]
    with np.errstate(all="ignore"):
        values = fake_rows.evaluate(op, attrs, dummies, shapes_only=True)
    return [(np.shape(v), _dtype_name(v.dtype)) for v in values]


class _Ops(types.ModuleType):
    def __getattr__(self, op):
        if op.startswith("_") or op not in fake_rows.ROWS:
            raise AttributeError(op)

        def call(*tensors, **attrs):
            outs = apply(op, list(tensors), attrs)
            return outs[0] if len(outs) == 1 else tuple(outs)

        call.__name__ = op
        setattr(self, op, call)
        return call


ops = _Ops("tracefire._core.ops")


class Tape:
    """Keeps the nodes of eager operations alive so that `gradients` can walk them."""

    def __enter__(self):
        _scopes()
        _state.tapes.append(self)
        return self

    def __exit__(self, *exc):
        _state.tapes.remove(self)


def gradients(outputs, sources, output_grads=None):
    scope = _tracing()
    if scope is not None:
        outputs = [scope.adopt(o) for o in outputs]
        sources = [scope.adopt(s) for s in sources]
    return fake_grad.gradients(ops, tensor, outputs, sources, output_grads)


def stop_gradient(x):
    return ops.stop_gradient(x)


def cond(pred, true_fn, false_fn, operands=()):
    """Both branches take `operands` and return lists of tensors of equal types."""
    if pred._data is not None and not _scopes():
        return list((true_fn if bool(pred._data) else false_fn)(*operands))
    pairs = zip(true_fn(*operands), false_fn(*operands))
    return [ops.select(pred, a, b) for a, b in pairs]


def while_loop(cond_fn, body_fn, variables, max_iterations=None):
    if not _scopes():
        variables, i = list(variables), 0
        while (max_iterations is None or i < max_iterations) and bool(
            cond_fn(*variables).numpy()
        ):
            variables, i = list(body_fn(*variables)), i + 1
        return variables
    with TraceScope() as c:
        args = [c.parameter(v.shape, v.dtype) for v in variables]
        cond_graph = c.finish([cond_fn(*args)])
    with TraceScope() as b:
        args = [b.parameter(v.shape, v.dtype) for v in variables]
        body_graph = b.finish(list(body_fn(*args)))
    captured = cond_graph.captured + body_graph.captured
    attrs = {"cond": cond_graph, "body": body_graph, "max_iterations": max_iterations}
    return apply("while_loop", list(variables) + captured, attrs)


def host_call(fn, inputs, out_specs):
    attrs = {"fn": fn, "out_specs": tuple((tuple(s), d) for s, d in out_specs)}
    return apply("host_call", list(inputs), attrs)


def list_devices():
    return ["/device:CPU:0"]


_settings = {"soft_placement": True, "log_placement": False}


def get_setting(name):
    return _settings[name]


def set_setting(name, value):
    _settings[name] = value


@contextlib.contextmanager
def device_scope(name):
    if name not in ("/CPU:0", "/device:CPU:0"):
        raise Error(f"there is no device {name!r}", "UnknownDevice")
    yield


__version__ = "0.0.0+fake"
