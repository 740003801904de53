# SPDX-License-Identifier: Apache-2.0
"""Conditionals and loops.

Outside a traced function they are Python's own. Inside one they become regions of the graph, which
hold no hidden writes: a branch that assigns variables gives their new values as extra results.
"""

from keras.src import tree
from keras.src.backend.common import KerasVariable
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.stateless_scope import get_stateless_scope
from keras_tracefire.src import missing
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops._tensor import Tensor
from keras_tracefire.src.ops._tensor import computes_now
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import unstack
from tracefire import _core
from tracefire import _ops



class _UpdateScope(StatelessScope):
    """Collects the variables assigned inside it; reads fall through to the enclosing scope."""

    def __init__(self):
        super().__init__(initialize_variables=False)
        self.outer = get_stateless_scope()
        self.variables = {}
        if self.outer is not None:
            self.collect_losses = self.outer.collect_losses

    def add_loss(self, loss):
        self.outer.add_loss(loss)

    def add_update(self, update):
        super().add_update(update)
        self.variables[id(update[0])] = update[0]

    def get_current_value(self, variable):
        value = super().get_current_value(variable)
        if value is None and self.outer is not None:
            value = self.outer.get_current_value(variable)
        return value


def _run_branch(branch):
    """The flat results of `branch`, their structure, and the variables it assigns with values."""
    with _UpdateScope() as scope:
        out = branch()
    leaves = [convert_to_tensor(x) for x in tree.flatten(out) if x is not None]
    return out, leaves, [(v, scope.state_mapping[k]) for k, v in scope.variables.items()]


def _as_bool(pred):
    pred = convert_to_tensor(pred)
    if pred.dtype != "bool":
        pred = _ops.not_equal(pred, _core.tensor(0, pred.dtype))
    return _ops.reshape(pred, shape=()) if pred.shape else pred


def cond(pred, true_fn, false_fn):
    if computes_now():
        return true_fn() if bool(convert_to_tensor(pred)) else false_fn()
    return _traced_cond(_as_bool(pred), [true_fn, false_fn])


def _traced_cond(pred, branches):
    # A first look at both branches, which records nothing, tells the variables they assign and
    # the dtypes they meet in.
    with _core.abstract():
        looks = [_run_branch(b) for b in branches]
    variables = {id(v): v for _, _, updates in looks for v, _ in updates}
    sizes = [len(leaves) for _, leaves, _ in looks]
    if sizes[0] != sizes[1]:
        raise argument_error(
            "true_fn and false_fn of `cond` must return the same structure. "
            f"Received: {looks[0][0]} and {looks[1][0]}"
        )
    structure = looks[0][0]

    def flat(branch):
        def run():
            _, leaves, updates = _run_branch(branch)
            new = {id(v): value for v, value in updates}
            state = [
                convert_to_tensor(new.get(k, v.value) if k in new else v.value, v.dtype)
                for k, v in variables.items()
            ]
            return leaves + state

        return run

    results = _core.cond(pred, flat(branches[0]), flat(branches[1]), [])
    for variable, value in zip(variables.values(), results[sizes[0] :]):
        variable.assign(value)
    rest = iter(results)
    return tree.map_structure(lambda x: None if x is None else next(rest), structure)


def switch(index, branches, *operands):
    if computes_now():
        at = min(max(int(convert_to_tensor(index)), 0), len(branches) - 1)
        return branches[at](*operands)
    index = convert_to_tensor(index, "int32")

    def choose(first):
        if first == len(branches) - 1:
            return branches[first](*operands)
        is_this = _ops.less_equal(index, _core.tensor(first, "int32"))
        return cond(is_this, lambda: branches[first](*operands), lambda: choose(first + 1))

    return choose(0)


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    is_sequence = isinstance(loop_vars, (tuple, list))
    loop_vars = tuple(loop_vars) if is_sequence else (loop_vars,)
    loop_vars = tree.map_structure(convert_to_tensor, loop_vars)

    def step(*values):
        out = body(*values)
        return tuple(out) if isinstance(out, (tuple, list)) and is_sequence else (out,)

    if computes_now():
        count = 0
        while (maximum_iterations is None or count < maximum_iterations) and bool(
            convert_to_tensor(cond(*loop_vars))
        ):
            loop_vars, count = step(*loop_vars), count + 1
    else:
        loop_vars = _traced_while(cond, step, loop_vars, maximum_iterations)
    return loop_vars if is_sequence else loop_vars[0]


def _traced_while(cond, step, loop_vars, maximum_iterations):
    flat = tree.flatten(loop_vars)

    def pack(values):
        return tree.pack_sequence_as(loop_vars, list(values))

    def flat_cond(*values):
        return _as_bool(cond(*pack(values)))

    def flat_body(*values):
        out, leaves, updates = _run_branch(lambda: step(*pack(values)))
        if updates:
            raise missing.unsupported(
                f"the body of `while_loop` assigns the variable {updates[0][0].path!r} in a "
                "function that is being traced",
                "a body that changes its loop variables only",
                "Carry the value as a loop variable and assign it after the loop",
            )
        return [convert_to_tensor(x, v.dtype) for x, v in zip(leaves, flat)]

    out = _core.while_loop(flat_cond, flat_body, flat, maximum_iterations)
    return pack(out)


def fori_loop(lower, upper, body_fun, init_val):
    if isinstance(lower, int) and isinstance(upper, int) or computes_now():
        value = init_val
        for i in range(int(lower), int(upper)):
            value = body_fun(convert_to_tensor(i, "int32"), value)
        return value
    upper = convert_to_tensor(upper, "int32")
    _, value = while_loop(
        lambda i, _: _ops.less(i, upper),
        lambda i, v: (_ops.add(i, _core.tensor(1, "int32")), body_fun(i, v)),
        (convert_to_tensor(lower, "int32"), init_val),
    )
    return value


def _rows(xs, length):
    """Per step, the structure of the elements of `xs` at that step."""
    columns = [unstack(convert_to_tensor(x)) for x in tree.flatten(xs) if x is not None]
    for column in columns:
        if length is None:
            length = len(column)
        elif len(column) != length:
            raise argument_error(
                "All inputs must have the same size along the first axis. "
                f"Received sizes {length} and {len(column)}"
            )
    for i in range(length):
        rest = iter(columns)
        yield tree.map_structure(lambda x: None if x is None else next(rest)[i], xs)


def _stack(parts):
    parts = [convert_to_tensor(p) for p in parts]
    rows = [_ops.reshape(p, shape=(1,) + tuple(p.shape)) for p in parts]
    return rows[0] if len(rows) == 1 else _ops.concat(*rows, axis=0)


def _stack_structures(outputs):
    return tree.map_structure(lambda *parts: None if parts[0] is None else _stack(parts), *outputs)


def map(f, xs):
    return _stack_structures([f(x) for x in _rows(xs, None)])


def vectorized_map(function, elements):
    return map(function, elements)


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise argument_error(
            f"`unroll` must be a positive integer or a boolean. Received: unroll={unroll}"
        )
    if xs is None and length is None:
        raise argument_error("Got no `xs` to scan over and `length` not provided.")
    steps = list(_rows(xs, length)) if xs is not None else [None] * int(length)
    carry, outputs = tree.map_structure(_as_tensor, init), []
    for x in reversed(steps) if reverse else steps:
        carry, y = f(carry, x)
        outputs.append(y)
    if reverse:
        outputs.reverse()
    return carry, _stack_structures(outputs) if outputs else None


def _as_tensor(x):
    return convert_to_tensor(x) if isinstance(x, (Tensor, KerasVariable, _core.Variable)) else x


def associative_scan(f, elems, reverse=False, axis=0):
    flat = [convert_to_tensor(e) for e in tree.flatten(elems)]
    if not flat:
        return elems
    columns = [unstack(e, axis=axis) for e in flat]
    steps = [
        tree.pack_sequence_as(elems, [_ops_expand(c[i], axis) for c in columns])
        for i in range(len(columns[0]))
    ]
    if reverse:
        steps.reverse()
    results = steps[:1]
    for step in steps[1:]:
        results.append(f(results[-1], step))
    if reverse:
        results.reverse()
    leaves = [tree.flatten(r) for r in results]
    joined = [_ops.concat(*parts, axis=axis % len(parts[0].shape)) for parts in zip(*leaves)]
    return tree.pack_sequence_as(elems, joined)


def _ops_expand(x, axis):
    axis = axis % (len(x.shape) + 1)
    return _ops.reshape(x, shape=tuple(x.shape[:axis]) + (1,) + tuple(x.shape[axis:]))
