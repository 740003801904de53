# SPDX-License-Identifier: Apache-2.0
"""GradientTape and custom_gradient, with TensorFlow's interfaces."""

import functools
import threading

from tracefire import _core
from tracefire import errors

_open_tapes = threading.local()


def _tapes():
    if not hasattr(_open_tapes, "stack"):
        _open_tapes.stack = []
    return _open_tapes.stack


class GradientTape:
    """Remembers the operations of its scope so that gradients can be taken through them.

    Inside a function that is being traced it costs nothing: the graph is the memory.

    >>> with tracefire.GradientTape() as tape:
    ...     loss = model.compute_loss(x, y, model(x, training=True))
    >>> grads = tape.gradient(loss, model.trainable_variables)
    """

    def __init__(self, persistent=False, watch_accessed_variables=True):
        del watch_accessed_variables  # every tensor can be a source
        self._persistent = persistent
        self._tape = _core.Tape()
        self._used = False
        self._custom_calls = []

    def __enter__(self):
        self._tape.__enter__()
        _tapes().append(self)
        return self

    def __exit__(self, *exc):
        _tapes().remove(self)
        self._tape.__exit__(*exc)

    def watch(self, tensor):
        """Accepted for compatibility: gradients exist for every tensor used in the scope."""

    def stop_recording(self):
        """A scope whose operations are not recorded."""
        return _Paused(self)

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        """d target / d sources, in the structure of `sources`.

        Args:
            target: tensor, or nested list, tuple or dict of tensors, whose sum is differentiated.
            sources: tensors or variables, nested likewise.
            output_gradients: weights of the targets, in the structure of `target`.
            unconnected_gradients: "none" or "zero", the answer for a source without influence.
        """
        if self._used and not self._persistent:
            raise errors.raised_here(
                "BadUsage",
                "GradientTape.gradient was called a second time on a non-persistent tape",
                "one call",
                "Create the tape with GradientTape(persistent=True)",
                errors.FailedPreconditionError,
            )
        unconnected = str(getattr(unconnected_gradients, "value", unconnected_gradients))
        if unconnected not in ("none", "zero"):
            raise errors.raised_here(
                "BadAttribute",
                f"unconnected_gradients is {unconnected_gradients!r}",
                "'none' or 'zero'",
                "'zero' gives zeros for a source without influence, 'none' gives None",
            )
        targets = [_checked(t, "target") for t in _flatten(target)]
        flat = _flatten(sources)
        values = [_checked(s, "source") for s in flat]
        seeds = None if output_gradients is None else _flatten(output_gradients)
        if seeds is not None and len(seeds) != len(targets):
            raise errors.raised_here(
                "BadAttribute",
                f"output_gradients holds {len(seeds)} weights for {len(targets)} targets",
                "one for each target, None standing for ones",
                "Give it the structure of the targets",
            )
        self._used = True
        grads = self._pull_back(targets, seeds, values)
        if unconnected == "zero":
            grads = [_zeros(s) if g is None else g for g, s in zip(grads, flat)]
        return _pack(sources, iter(grads))

    def jacobian(self, target, sources, unconnected_gradients="none"):
        """d target / d sources, element by element: shape of the target + shape of each source.

        One sweep back for each element of the target, so it is for small ones. The tape must be
        persistent.
        """
        if not self._persistent:
            raise errors.raised_here(
                "BadUsage",
                "GradientTape.jacobian was called on a non-persistent tape",
                "a persistent one, since there is a gradient for each element of the target",
                "Create the tape with GradientTape(persistent=True)",
                errors.FailedPreconditionError,
            )
        value = _checked(target, "target")
        shape, count = tuple(value.shape), value.size
        flat = _flatten(sources)
        rows = []
        for i in range(count):
            one = _core.ops.equal(
                _core.ops.iota(shape=(count,), axis=0, dtype="int32"), _core.tensor(i, "int32")
            )
            seed = _core.ops.reshape(_core.ops.cast(one, dtype=value.dtype), shape=shape)
            rows.append(self.gradient(value, flat, [seed], unconnected_gradients))
        columns = [self._stacked(parts, shape) for parts in zip(*rows)] if rows else [None] * len(flat)
        return _pack(sources, iter(columns))

    @staticmethod
    def _stacked(parts, shape):
        if parts[0] is None:
            return None
        size = tuple(parts[0].shape)
        whole = _core.ops.concat(*[_core.ops.reshape(p, shape=(1,) + size) for p in parts], axis=0)
        return _core.ops.reshape(whole, shape=shape + size)

    def _pull_back(self, targets, seeds, sources):
        """Gradients by the engine, except where a function brings its own.

        The results of such a function are cut off from its arguments, so it ends one sweep; what
        its own gradient gives starts the next, from its arguments.
        """
        seeds = [None] * len(targets) if seeds is None else list(seeds)
        for call in reversed(self._custom_calls):
            upstream = self._tape.gradients(targets, call.outputs, seeds)
            if all(g is None for g in upstream):
                continue
            upstream = [_zeros(o) if g is None else g for g, o in zip(upstream, call.outputs)]
            grads = call.gradient(*upstream)
            grads = grads if isinstance(grads, (list, tuple)) else [grads]
            if len(grads) != len(call.arguments):
                raise errors.raised_here(
                    "BadAttribute",
                    f"the gradient of a custom_gradient function returned {len(grads)} values",
                    f"{len(call.arguments)}, one for each argument",
                    "Return None for an argument without a gradient",
                )
            for argument, grad in zip(call.arguments, grads):
                if argument is not None and grad is not None:
                    targets.append(argument)
                    seeds.append(grad)
        return self._tape.gradients(targets, sources, seeds)


class _CustomCall:
    def __init__(self, arguments, outputs, gradient):
        self.arguments, self.outputs, self.gradient = arguments, outputs, gradient


def custom_gradient(function):
    """Gives a function its own gradient.

    `function(*args)` returns its result and a function from the result's gradients to those of the
    arguments, None for an argument without one.
    """

    @functools.wraps(function)
    def call(*args, **kwargs):
        args = [a if _is_plain(a) else _value(a) for a in args]
        result, gradient = function(*args, **kwargs)
        outputs = [_core.stop_gradient(_value(r)) for r in _flatten(result)]
        arguments = [None if _is_plain(a) else a for a in args]
        for tape in _tapes():
            tape._custom_calls.append(_CustomCall(arguments, outputs, gradient))
        return _pack(result, iter(outputs))

    return call


def _is_plain(argument):
    """True for an argument that is no tensor and no variable."""
    if isinstance(argument, (_core.Tensor, _core.Variable)):
        return False
    return not hasattr(argument, "assign")


class _Paused:
    def __init__(self, tape):
        self._tape = tape

    def __enter__(self):
        self._tape.__exit__(None, None, None)

    def __exit__(self, *exc):
        self._tape.__enter__()


def _value(source):
    if isinstance(source, _core.Tensor):
        return source
    if isinstance(source, _core.Variable):
        return source.read()
    return source.value  # a Keras variable


def _checked(value, role):
    """The tensor of a target or a source of GradientTape.gradient."""
    tensor = value if isinstance(value, _core.Tensor) else None
    if tensor is None and (isinstance(value, _core.Variable) or hasattr(value, "assign")):
        tensor = _value(value)
    if not isinstance(tensor, _core.Tensor):
        raise errors.raised_here(
            "DTypeMismatch",
            f"GradientTape.gradient received {_name_of(value)} as a {role}",
            "tensors and variables, in lists, tuples and dicts",
            "A function that returned None, or a value read with numpy(), is no part of a tape",
        )
    return tensor


def _name_of(value):
    return "None" if value is None else f"an object of type {type(value).__name__}"


def _zeros(source):
    value = _value(source)
    zero = _core.tensor(0, value.dtype)
    return _core.ops.broadcast_to(zero, shape=tuple(value.shape))


def _flatten(structure):
    if isinstance(structure, dict):
        return [x for key in structure for x in _flatten(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [x for item in structure for x in _flatten(item)]
    return [structure]


def _pack(structure, leaves):
    if isinstance(structure, dict):
        return {key: _pack(value, leaves) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        return type(structure)([_pack(item, leaves) for item in structure])
    return next(leaves)
