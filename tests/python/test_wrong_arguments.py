# SPDX-License-Identifier: Apache-2.0
"""Arguments that a function does not take: an error of the catalogue, which names the argument."""

import os
import pathlib
import subprocess
import sys

import pytest

import tracefire
import tracefire.profiler.experimental
from tracefire import errors

core = pytest.importorskip("tracefire._core")


def function():
    with core.TraceScope() as scope:
        return scope.finish([scope.parameter((2,), "float32")])


# What is called, and what the message says.
CALLS = {
    "missing": (lambda: core.tensor(), "tensor: argument 'value' is missing"),
    "too many": (lambda: core.tensor(1, 2, 3, 4), "tensor: it was given 4 arguments, and takes 3"),
    "unknown": (lambda: core.tensor(1, foo=2), "tensor: it has no argument 'foo'.*value, dtype, device"),
    "twice": (lambda: core.tensor(1, value=2), "tensor: argument 'value' was given twice"),
    "a text": (lambda: tracefire.Variable(1.0, name=3), "Variable: argument 'name' is int 3.*a text or None"),
    "a number": (lambda: core.set_cpu_devices("2"), "set_cpu_devices: argument 'count' is str '2'.*whole number"),
    "a fraction": (lambda: core.set_cpu_devices(1.5), "argument 'count' is float 1.5.*whole number"),
    "too large": (lambda: core.set_cpu_devices(2**70), "argument 'count' is int 1180591620717411303424"),
    "None": (lambda: core.get_setting(None), "get_setting: argument 'name' is None.*a text"),
    "of a method": (lambda: core.tensor([1.0]).item(3), "Tensor.item: it was given 1 arguments, and takes 0"),
    "keyword of a method": (
        lambda: function().run_epoch([], None, batch="x", lo=0, hi=1),
        "Function.run_epoch: argument 'batch' is str 'x'.*whole number",
    ),
    "within a list": (
        lambda: function().run_epoch([core.tensor([1.0, 2.0])], None, 1, 0, 1, collect=["x"]),
        "run_epoch: argument 'collect' holds str",
    ),
    "a class": (lambda: tracefire.Tensor(3), "Tensor was called.*Call tracefire.tensor"),
    "no function": (lambda: core.cond(True, 1, 2), "cond: argument 'true_fn' is int 1.*a function"),
    "a loop": (lambda: core.while_loop(print, print, [], "x"), "argument 'max_iterations' is str"),
    "no list": (lambda: core.host_call(print, [], 3), "host_call: argument 'out_specs' is int 3.*a list"),
    "a variable": (lambda: tracefire.Variable(1.0).assign_add(None), "Variable.assign_add was given NoneType"),
    "a writer": (lambda: tracefire.summary.flush(3), "summary.flush: argument 'writer' is int 3"),
    "a folder": (lambda: tracefire.summary.create_file_writer(True), "argument 'logdir' is bool True"),
    "options": (lambda: tracefire.profiler.experimental.start("", "x"), "profiler.start was given str 'x' as its options"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_argument_is_named_with_what_came_and_what_is_expected(name):
    call, message = CALLS[name]
    with pytest.raises(TypeError, match=rf"\[TF-E0502\] .*{message}") as raised:
        call()
    assert isinstance(raised.value, errors.Error) and "Expected:" in str(raised.value)


class Unshowable:
    def __repr__(self):
        raise RuntimeError("not to be shown")


def test_a_value_that_cannot_be_shown_is_named_by_its_type():
    with pytest.raises(TypeError, match="argument 'name' is Unshowable"):
        core.get_setting(Unshowable())


def test_errors_of_what_is_called_within_come_through():
    def branch():
        raise TypeError("of the user's own")

    with pytest.raises(TypeError, match="^of the user's own$"):
        core.cond(core.tensor(True), branch, branch)


# Every public function with every kind of value that it may not expect. Python's own words on a
# wrong number of arguments are as good; what must not come is an exception from within, or no code.
EVERY = '''
import re, types
import tracefire
import tracefire.profiler.experimental
import tracefire.profiler.experimental, tracefire.summary.experimental
from tracefire import _core, errors

class Odd: pass
VALUES = [Odd(), "text", 1.5, None, [Odd()], {}, b"x", -1, 2**70, (), True]
PYTHON = re.compile("missing [0-9]+ required|takes .* positional arg|unexpected keyword")
LEFT_OUT = {"truth", "NamedTuple"}  # no part of the interface

def attempt(label, make, count):
    for value in VALUES if count else [None]:
        try:
            make()(*[value] * count)
        except Exception as error:
            if not errors.code_of(error) and not PYTHON.search(str(error)):
                print(label, type(error).__name__, str(error)[:120], repr(value)[:40], sep=" | ")

with _core.TraceScope() as scope:
    function = scope.finish([scope.parameter((2,), "float32")])
modules = [tracefire, _core, tracefire.config, tracefire.debugging, tracefire.profiler,
           tracefire.profiler.experimental, tracefire.summary, tracefire.summary.experimental]
objects = [_core.tensor([1.0, 2.0]), _core.Variable(1.0), _core.Tape(), _core.TraceScope(), _core.proof(),
           tracefire.GradientTape(), function, _core.Savepoint([])]
tried = 0
for owner in modules + objects:
    for name in dir(owner):
        member = getattr(owner, name)
        if name[0] == "_" or name in LEFT_OUT or isinstance(member, types.ModuleType) or not callable(member):
            continue
        for count in range(4):
            attempt(f"{getattr(owner, '__name__', type(owner).__name__)}.{name}", lambda: getattr(owner, name), count)
        tried += 1
print("tried", tried)
'''


def test_every_public_function_refuses_with_a_code(tmp_path):
    packages = str(pathlib.Path(tracefire.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EVERY],
        capture_output=True, text=True, cwd=tmp_path, timeout=120,
        env={**os.environ, "PYTHONPATH": packages},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *found, last = done.stdout.strip().splitlines()
    assert found == [] and int(last.split()[1]) > 90
