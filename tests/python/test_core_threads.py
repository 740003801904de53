# SPDX-License-Identifier: Apache-2.0
"""Several Python threads at once: the GIL is released where work is done."""

import threading
import time

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")
ops = core.ops


def in_threads(count, body):
    failures = []

    def run(i):
        try:
            body(i)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(t.is_alive() for t in threads)
    if failures:
        raise failures[0]


def test_eager_work_in_four_threads():
    def body(seed):
        random = np.random.default_rng(seed)
        for _ in range(50):
            a, b = random.standard_normal((2, 8, 8)).astype("float32")
            x, y = core.tensor(a), core.tensor(b)
            got = ops.add(ops.matmul(x, y), x).numpy()
            np.testing.assert_allclose(got, a @ b + a, rtol=1e-4, atol=1e-4)

    in_threads(4, body)


def test_one_tensor_observed_by_four_threads():
    x = core.tensor(np.ones((64, 64), "float32"))
    y = x
    for _ in range(20):
        y = ops.mul(ops.matmul(y, x), core.tensor(1 / 64))
    in_threads(4, lambda i: np.testing.assert_allclose(y.numpy(), 1.0, rtol=1e-4))


def test_one_function_called_by_four_threads():
    with core.TraceScope() as scope:
        x = scope.parameter((None,), "float32")
        function = scope.finish([ops.mul(x, x)])

    def body(i):
        for n in range(1, 60):
            given = np.arange(n, dtype="float32") + i
            np.testing.assert_array_equal(function(given)[0].numpy(), given**2)

    in_threads(4, body)


def test_traces_of_different_threads_do_not_meet():
    barrier = threading.Barrier(4)

    def body(i):
        with core.TraceScope() as scope:
            barrier.wait(30)
            x = scope.parameter((), "float32")
            y = x
            for _ in range(50):
                y = ops.add(y, core.tensor(float(i)))
            barrier.wait(30)
            function = scope.finish([y])
        assert function(0.0)[0].item() == 50.0 * i
        assert not core.is_tracing()

    in_threads(4, body)


def test_a_host_call_may_wait_for_another_python_thread():
    """With the GIL held by the caller this would never end."""
    ready = threading.Event()

    def wait_for_it(x):
        assert ready.wait(30)
        return x

    (out,) = core.host_call(wait_for_it, [core.tensor(1.0)], [((), "float32")])
    other = threading.Thread(target=lambda: (time.sleep(0.05), ready.set()))
    other.start()
    assert out.numpy() == 1.0
    other.join()


def test_other_threads_run_while_one_waits():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    def slow(x):
        # Sleeps without the interpreter's help, as a long kernel does.
        end = time.monotonic() + 30
        while len(ticks) <= 10 and time.monotonic() < end:
            stop.wait(0.01)
        return x

    thread = threading.Thread(target=tick)
    thread.start()
    (out,) = core.host_call(slow, [core.tensor(1.0)], [((), "float32")])
    out.wait()
    stop.set()
    thread.join()
    assert len(ticks) > 10


def test_variables_are_shared_between_threads():
    v = core.Variable(0.0)
    lock = threading.Lock()

    def body(i):
        for _ in range(25):
            with lock:
                v.assign(ops.add(v.read(), core.tensor(1.0)))

    in_threads(4, body)
    assert v.numpy() == 100.0
