# SPDX-License-Identifier: Apache-2.0
"""What a run that fails on its data leaves, and how a savepoint gives it back (docs/cpp-program.md)."""

import pytest

core = pytest.importorskip("tracefire._core")
import tracefire as tf  # noqa: E402
from tracefire import errors  # noqa: E402

TABLE = [0.0, 1.0, 2.0]
ops = core.ops


def look_up(index):
    return ops.reshape(ops.gather(tf.tensor(TABLE), index, axis=0), shape=[])


def in_branch(index, count):
    positive = ops.less(tf.tensor(0.0), count)
    return core.cond(positive, lambda i: [look_up(i)], lambda i: [tf.tensor(0.0)], [index])[0]


def in_loop(index, count):
    start = [tf.tensor(0.0), index, tf.tensor(0.0)]
    return core.while_loop(
        lambda k, i, found: ops.less(k, tf.tensor(2.0)),
        lambda k, i, found: [k + 1, i, look_up(i)],
        start,
    )[2]


def in_host_code(index, count):
    def host(i):
        return [TABLE[i[0]]]  # raises IndexError

    return core.host_call(host, [index], [((), "float32")])[0]


@pytest.mark.parametrize(
    "find, ends, code",
    [
        (lambda index, count: look_up(index), False, "TF-E0301"),
        (in_branch, True, "TF-E0301"),
        (in_loop, True, "TF-E0301"),
        (in_host_code, True, "TF-E0304"),
    ],
    ids=["step", "branch", "loop", "host code"],
)
def test_what_a_failed_run_leaves(find, ends, code):
    count, last = (core.Variable(tf.tensor(0.0), name=name) for name in ("count", "last"))
    with core.TraceScope("step") as scope:
        index = scope.parameter([1], "int32")
        count.assign(count.read() + 1)
        found = find(index, count.read())
        last.assign(found)
        step = scope.finish([count.read(), found])
    assert step.can_fail
    step(tf.tensor([1]))
    point = core.Savepoint(step.assigned)
    point.keep()
    if ends:  # the whole run, and with it what it had assigned
        with pytest.raises(errors.Error, match=code):
            step(tf.tensor([9]))[1].numpy()
        for variable in (count, last):
            with pytest.raises(errors.DataLossError, match=f"TF-E0206.*Cause: .{code}"):
                variable.numpy()
    else:  # only what depends on it
        counted, lost = step(tf.tensor([9]))
        assert counted.numpy() == 2 and count.numpy() == 2
        for value in (lost, last):
            with pytest.raises(errors.Error, match=code):
                value.numpy()
    point.restore()
    assert (count.numpy(), last.numpy()) == (1, 1)
    step(tf.tensor([2]))
    assert (count.numpy(), last.numpy()) == (2, 2)
