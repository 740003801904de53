# SPDX-License-Identifier: Apache-2.0
"""Wrong calls of the Python package: a code, what was received, what to do."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")

import tracefire as tf  # noqa: E402

A = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize(
    "index,code,words",
    [
        ("x", "TF-E0102", "'x'"),
        (True, "TF-E0102", "True"),
        (np.True_, "TF-E0102", "bool"),
        (1.5, "TF-E0102", "1.5"),
        ({}, "TF-E0102", "{}"),
        ([0.5, 1], "TF-E0102", "float64"),
        (np.float32([0, 1]), "TF-E0102", "float32"),
        ([[0], [1, 2]], "TF-E0102", r"\[\[0\], \[1, 2\]\]"),
        ((..., ...), "TF-E0102", "two"),
        (slice(0, 2, 0), "TF-E0103", "slice"),
        (slice(0.5, 2), "TF-E0103", "slice"),
        (7, "TF-E0301", "7.*size 3"),
        ((0, 0, 0), "TF-E0301", "rank 2"),
        ([True, False], "TF-E0301", r"mask of shape \(2,\)"),
        (np.ones((3, 3), bool), "TF-E0301", r"\(3, 3\)"),
    ],
    ids=str,
)
def test_what_is_no_index(index, code, words):
    with pytest.raises((TypeError, ValueError, IndexError), match=rf"\[{code}\].*({words})"):
        core.tensor(A)[index]


@pytest.mark.parametrize(
    "index",
    [
        1,
        np.int64(-1),
        core.tensor([2, 0]),
        core.tensor(np.array([2, 0], "int64")),
        np.array([2, 0], "uint8"),
        [2, -1],
        [],
        ([0, 2], [1, -1]),
        ([0, 2], slice(None, None, -2)),
        [True, False, True],
        A > 4,
        (slice(None), [True, False, True, False]),
        (None, ..., 1),
    ],
    ids=str,
)
def test_indices_are_numpys(index):
    def plain(item):
        return np.asarray(item) if isinstance(item, core.Tensor) else item

    expected = A[tuple(map(plain, index)) if isinstance(index, tuple) else plain(index)]
    np.testing.assert_array_equal(core.tensor(A)[index], expected)


def test_an_index_of_64_bits_is_not_cut():
    far = core.tensor(np.array([2**32 + 1], "int64"))
    with pytest.raises(IndexError, match="TF-E0301"):
        core.tensor(A)[far].numpy()


@pytest.mark.parametrize("dtype,value", [("int32", 2**40), ("int8", 300), ("uint8", -1)])
def test_arrays_beside_tensors_are_not_cut(dtype, value):
    x = core.tensor([1, 2], dtype)
    for given in (np.array([value, 0]), [value, 0], value):
        for function in (lambda: x + given, lambda: given * x, lambda: x == given):
            with pytest.raises(ValueError, match=r"\[TF-E0103\]"):
                function()
    np.testing.assert_array_equal((x + np.array([3, 4])).numpy(), np.array([4, 6], dtype))
    assert (x + np.array([3, 4])).dtype == dtype


def test_shifts_are_operators():
    x = core.tensor([8, -9])
    np.testing.assert_array_equal(x >> 1, [4, -5])
    np.testing.assert_array_equal(1 << core.tensor([3, 0]), [8, 1])
    np.testing.assert_array_equal(-256 >> core.tensor([3, 40]), [-32, -1])


def recorded():
    x = core.tensor(A)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return tape, x, y


@pytest.mark.parametrize("wrong", [None, 3.0, "loss", A, object()], ids=str)
def test_gradients_of_what_is_no_tensor(wrong):
    tape, x, y = recorded()
    for target, source, role in ((wrong, x, "target"), (y, wrong, "source"), ([y, wrong], x, "t")):
        with pytest.raises(TypeError, match=rf"\[TF-E0102\] GradientTape.gradient received.*{role}"):
            tape.gradient(target, source)
    with pytest.raises(TypeError, match="TF-E0102.*source"):
        tape.gradient(y, {"a": [x, wrong]})
    np.testing.assert_array_equal(tape.gradient(y, x), 2 * A)


def test_options_of_gradients():
    tape, x, y = recorded()
    with pytest.raises(ValueError, match="TF-E0103.*'zeros'.*'zero'"):
        tape.gradient(y, x, unconnected_gradients="zeros")
    with pytest.raises(ValueError, match="TF-E0103.*2 weights for 1"):
        tape.gradient(y, x, output_gradients=[y, y])
    other = core.tensor(A)
    assert tape.gradient(y, other) is None
    np.testing.assert_array_equal(tape.gradient(y, other, unconnected_gradients="zero"), 0 * A)


def test_a_wrong_call_leaves_the_tape_as_it_was():
    x = core.tensor(A)
    with tf.GradientTape() as tape:
        y = x * x
    with pytest.raises(TypeError):
        tape.gradient(None, x)
    np.testing.assert_array_equal(tape.gradient(y, x), 2 * A)


def test_masks_name_devices_and_operations_that_there_are():
    with pytest.raises(ValueError, match="TF-E0201.*XPU.*GPU"):
        core.mask_ops("XPU", ["sin"])
    with pytest.raises(FileNotFoundError, match="TF-E0105.*sinn.*mean"):
        core.mask_ops("GPU", ["sinn"])
    core.mask_ops("GPU", [])


def run_module(*arguments, path=None):
    environment = dict(os.environ)
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [sys.executable, "-m", "tracefire", *arguments],
        capture_output=True, text=True, timeout=60, env=environment,
    )  # fmt: skip


def test_the_module_is_the_command():
    if shutil.which("tracefire") is None:
        pytest.skip("build/bin is not on PATH")
    answer = run_module("version")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("tracefire")


@pytest.mark.parametrize("program", ["train.py", "notebook.ipynb"])
def test_the_module_says_how_programs_are_run(program):
    answer = run_module(program)
    assert answer.returncode == 2 and answer.stdout == ""
    assert "[TF-E0502]" in answer.stderr and "KERAS_BACKEND=tracefire" in answer.stderr


def test_the_module_says_where_the_command_is_missing(tmp_path):
    package = pathlib.Path(tf.__file__).parent
    if (package / "bin" / "tracefire").exists():
        pytest.skip("a wheel holds the command")
    answer = run_module("version", path=str(tmp_path))
    assert answer.returncode == 2 and "[TF-E0401]" in answer.stderr
