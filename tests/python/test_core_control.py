# SPDX-License-Identifier: Apache-2.0
"""Control flow, host calls and prints."""

import threading
import time

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")
ops = core.ops


def test_cond_eager_and_traced():
    def choose(pred, x):
        return core.cond(pred, lambda a: [ops.neg(a)], lambda a: [ops.add(a, a)], [x])[0]

    x = core.tensor([1.0, 2.0])
    assert choose(core.tensor(True), x).tolist() == [-1.0, -2.0]
    assert choose(core.tensor(False), x).tolist() == [2.0, 4.0]
    with core.TraceScope() as scope:
        p, a = scope.parameter((), "bool"), scope.parameter((2,), "float32")
        function = scope.finish([choose(p, a)])
    assert function(True, x)[0].tolist() == [-1.0, -2.0]
    assert function(False, x)[0].tolist() == [2.0, 4.0]


def test_branches_capture_tensors_and_assign_variables():
    outer = core.tensor(10.0)
    v = core.Variable(1.0)

    def grow():
        v.assign(ops.add(v.read(), outer))
        return [v.read()]

    with core.TraceScope() as scope:
        p = scope.parameter((), "bool")
        function = scope.finish(core.cond(p, grow, lambda: [v.read()]))
    assert function(True)[0].item() == 11.0
    assert function(False)[0].item() == 11.0
    assert v.numpy() == 11.0


def test_while_loop_eager_and_traced():
    def power(x, limit):
        def go_on(i, value):
            return ops.less(value, limit)

        def double(i, value):
            return [ops.add(i, core.tensor(1)), ops.add(value, value)]

        return core.while_loop(go_on, double, [core.tensor(0), x])

    count, value = power(core.tensor(1.0), core.tensor(100.0))
    assert (count.item(), value.item()) == (7, 128.0)
    with core.TraceScope() as scope:
        x, limit = scope.parameter((), "float32"), scope.parameter((), "float32")
        function = scope.finish(power(x, limit))
    assert [t.item() for t in function(3.0, 50.0)] == [5, 96.0]
    assert [t.item() for t in function(3.0, 2.0)] == [0, 3.0]
    count, _ = core.while_loop(
        lambda i, x: core.tensor(True), lambda i, x: (ops.add(i, i), x), [1, 0.0], max_iterations=3
    )
    assert count.item() == 8


def test_errors_of_regions():
    p = core.tensor(True)
    with pytest.raises(ZeroDivisionError):
        core.cond(p, lambda: 1 / 0, lambda: [])
    assert not core.is_tracing()
    with pytest.raises(ValueError, match="TF-E0101"):
        core.cond(p, lambda: [core.tensor([1.0, 2.0])], lambda: [core.tensor(1.0)])
    with pytest.raises(ValueError, match="TF-E0103.*bool"):
        core.cond(core.tensor(1.0), lambda: [], lambda: [])
    with pytest.raises(ValueError, match="one bool tensor"):
        core.while_loop(lambda x: [], lambda x: [x], [1.0])
    with pytest.raises(RuntimeError, match="TF-E0114"):
        core.while_loop(lambda x: bool(x), lambda x: [x], [True])


@pytest.mark.parametrize("traced", [False, True])
def test_host_calls(traced):
    seen = []

    def function(a, b):
        seen.append((a.dtype.name, threading.current_thread() is threading.main_thread()))
        a[0] = 7  # the arrays are the callee's own
        return a + b, np.float64(a.sum())

    def body(x, y):
        return core.host_call(function, [x, y], [((2,), "float32"), ((), "float32")])

    x, y = core.tensor([1.0, 2.0]), core.tensor([10.0, 20.0])
    if traced:
        with core.TraceScope() as scope:
            inside = scope.parameter((2,), "float32"), scope.parameter((2,), "float32")
            call = scope.finish(body(*inside))
        assert seen == []
        total, number = call(x, y)
    else:
        total, number = body(x, y)
    assert total.tolist() == [17.0, 22.0]
    assert (number.dtype, number.item()) == ("float32", 9.0)
    assert [name for name, _ in seen] == ["float32"]
    assert x.tolist() == [1.0, 2.0]


def test_host_calls_keep_program_order():
    log = []
    for i in range(20):
        core.host_call(lambda i=i: log.append(i), [], [])
    core.flush()
    core.synchronize()
    assert log == list(range(20))


def test_host_calls_with_strings_and_small_floats():
    (text,) = core.host_call(
        lambda s: [[str(s.tolist()[0], "utf8") + "!"]], [core.tensor(["hi"])], [((1,), "string")]
    )
    assert text.tolist() == [b"hi!"]
    (half,) = core.host_call(lambda x: x * 2, [core.tensor([1.5], "bfloat16")], [((1,), "bfloat16")])
    assert half.tolist() == [3.0]


def test_failures_of_host_calls_keep_their_cause():
    def fail(x):
        raise KeyError("lost")

    (out,) = core.host_call(fail, [core.tensor(1.0)], [((), "float32")])
    dependent = ops.add(out, out)
    with pytest.raises(RuntimeError, match=r"TF-E0304.*KeyError: 'lost'.*test_core_control.py") as caught:
        dependent.numpy()
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(RuntimeError, match="TF-E0304"):
        out.numpy()


def test_failures_without_results_are_raised_once_with_their_cause():
    def fail(x):
        raise KeyError("lost")

    core.host_call(fail, [core.tensor(1.0)], [])
    other = ops.add(core.tensor(1.0), core.tensor(2.0))
    with pytest.raises(RuntimeError, match=r"TF-E0304.*host_call.*test_core_control.py") as caught:
        core.flush()
    assert isinstance(caught.value.__cause__, KeyError)
    core.flush()
    assert other.item() == 3
    core.apply("assert", [core.tensor(False)], {"message": "a negative age"})
    with pytest.raises(ValueError, match=r"TF-E0303.*test_core_control.py.*a negative age"):
        other.numpy()
    core.synchronize()
    with core.TraceScope() as scope:
        core.host_call(fail, [core.tensor(1.0)], [])
        function = scope.finish([])
    with pytest.raises(RuntimeError, match="TF-E0304.*KeyError: 'lost'") as caught:
        function()
    assert isinstance(caught.value.__cause__, KeyError)
    core.synchronize()


def test_what_a_thread_leaves_behind_is_said(capfd):
    def work():
        core.host_call(lambda x: 1 / 0, [core.tensor(1.0)], [])
        core.set_log_device_placement(True)  # fires what is pending
        core.set_log_device_placement(False)
        core.print("never flushed")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    # Its thread-local state ends with the system's thread, a moment after join().
    said = ""
    for _ in range(100):
        said += capfd.readouterr().err
        if "before this was raised" in said:
            break
        time.sleep(0.05)
    assert "a thread ended before this was raised: [TF-E0304]" in said
    assert "before 1 of its prints, asserts and host calls ran" in said


@pytest.mark.parametrize(
    "result, words", [([1.0, 2.0], "expected 1"), (np.zeros(3), "shape"), ("text", "ValueError")]
)
def test_results_of_host_calls_must_fit(result, words):
    (out,) = core.host_call(lambda: result, [], [((2,), "float32")])
    with pytest.raises(RuntimeError, match=f"TF-E0304.*{words}"):
        out.numpy()


def test_print_goes_to_stderr_in_program_order(capfd):
    x = core.tensor([1.5, 2.0])
    core.print("first {} and {}", x, ops.add(x, x))
    core.print("second")
    core.flush()
    core.synchronize()
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "1.5" in lines[0] and "3" in lines[0] and lines[0].startswith("first")
    assert lines[1] == "second"
