# SPDX-License-Identifier: Apache-2.0
"""Whole processes: what importing costs, Ctrl-C, and the end of the interpreter."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

core = pytest.importorskip("tracefire._core")


def run(program, check=True, **options):
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, **options
    )
    if check:
        assert result.returncode == 0, result.stderr
    return result


def test_importing_and_computing_need_no_numpy():
    run(
        "import sys, tracefire\n"
        "from tracefire import _core as core\n"
        "x = core.tensor([[1.0, 2.0]])\n"
        "assert core.ops.add(x, x).tolist() == [[2.0, 4.0]]\n"
        "assert core.ops.reduce_sum(x, axes=[0, 1]).item() == 3.0\n"
        "with core.Tape() as tape:\n"
        "    y = core.ops.square(x)\n"
        "assert tape.gradients([y], [x])[0].tolist() == [[2.0, 4.0]]\n"
        "repr(x), len(x), float(x.to('/CPU:0').tolist()[0][0])\n"
        "loaded = {'numpy', 'ml_dtypes', 'keras'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )


def test_importing_is_quick():
    program = (
        "import time; start = time.process_time(); import tracefire; "
        "print(time.process_time() - start)"
    )
    best = min(float(run(program).stdout) for _ in range(3))
    assert best < 0.3  # seconds of the processor; waiting for it is not the module's fault


def test_importing_looks_for_no_gpu():
    """A process that only imports must not pay for opening NVIDIA's libraries."""
    program = (
        "import atexit\n"
        "atexit.register(lambda: print('libcuda' in open('/proc/self/maps').read()))\n"
        "import tracefire\n"  # whose exit functions run before
    )
    if not pathlib.Path("/proc/self/maps").exists():
        pytest.skip("no /proc on this system")
    assert run(program).stdout == "False\n"


def test_pending_effects_happen_at_exit():
    result = run(
        "import tracefire\n"
        "from tracefire import _core as core\n"
        "x = core.tensor([1.0, 2.0])\n"
        "core.print('sum {}', core.ops.reduce_sum(x, axes=[0]))\n"
        "core.host_call(lambda v: print('called', v), [x], [])\n"
    )
    assert "sum 3" in result.stderr
    assert "called [1. 2.]" in result.stdout


def test_a_failure_at_exit_is_said_and_is_no_crash():
    result = run(
        "import tracefire\n"
        "from tracefire import _core as core\n"
        "def fail(): raise ValueError('too late')\n"
        "core.host_call(fail, [], [])\n"
        "core.apply('assert', [core.tensor(False)], {'message': 'and wrong'})\n",
        check=False,
    )
    assert result.returncode == 0
    assert "too late" in result.stderr and "and wrong" in result.stderr


@pytest.mark.parametrize(
    "leftover",
    [
        "keep = core.tensor([1.0]).numpy()",
        "keep = core.Variable([1.0])",
        "keep = core.ops.add(core.tensor(1.0), core.tensor(2.0))",
        "scope = core.TraceScope(); scope.__enter__(); keep = scope.parameter((), 'float32')",
        "scope = core.device_scope('/CPU:0'); scope.__enter__()",
        "tape = core.Tape(); tape.__enter__(); keep = core.ops.exp(core.tensor(1.0))",
        "keep = core.host_call(lambda x: x, [core.tensor(1.0)], [((), 'float32')])",
        "import builtins; builtins.keep = core.tensor([2.0]); builtins.view = keep.__dlpack__()",
        "import threading, time\n"
        "def work():\n"
        "    while True: core.ops.add(core.tensor(1.0), core.tensor(2.0)).numpy()\n"
        "threading.Thread(target=work, daemon=True).start(); time.sleep(0.2)",
    ],
)
def test_the_interpreter_ends_quietly(leftover):
    result = run(f"import tracefire\nfrom tracefire import _core as core\n{leftover}\n")
    assert result.stderr == ""


INTERRUPTED = """
import sys, time
import numpy as np
from tracefire import _core as core
ops = core.ops
v = core.Variable(0.0)
steps = core.Variable(0)
with core.TraceScope() as scope:
    x = scope.parameter((4, 256), "float32")
    y = x
    for _ in range(20):
        y = ops.tanh(ops.add(y, x))
    v.assign(ops.add(v.read(), ops.mul(ops.reduce_sum(y, axes=[0, 1]), core.tensor(0.0))))
    v.assign(ops.add(v.read(), core.tensor(1.0)))
    steps.assign(ops.add(steps.read(), core.tensor(1)))
    step = scope.finish([])
data = core.tensor(np.ones((4, 256), "float32"))
count = 4_000_000
order = core.tensor(np.zeros(4 * count, "int32"))
step.run_epoch([data], order, 4, 0, 1)  # all that takes time is done, but the steps
v.assign(0.0)
steps.assign(0)
start = time.perf_counter()
try:
    print("ready", flush=True)
    step.run_epoch([data], order, 4, 0, count)
except KeyboardInterrupt:
    done = steps.numpy()
    assert done < count, done
    assert v.numpy() == done, (v.numpy(), done)
    step.run_epoch([data], order, 4, 0, 3)
    assert steps.numpy() == done + 3
    print("interrupted" if done else "interrupted before the first step", flush=True)
    sys.exit(0)
sys.exit(f"not interrupted in {time.perf_counter() - start} s")
"""


def test_control_c_stops_an_epoch_between_steps():
    for pause in (0.5, 2, 8):  # a machine under load takes its time before the first step
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(pause)
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
        assert process.returncode == 0, err
        if "before" not in out:
            break
    assert out == "interrupted\n"
