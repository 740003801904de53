# SPDX-License-Identifier: Apache-2.0
"""Python's numbers and texts that a tensor cannot hold: an error, or a warning, that names the element."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tracefire as tf
from tracefire import errors

HALF = "\ud800"  # half of a surrogate pair


@pytest.mark.parametrize(
    "value, dtype, said",
    [
        ([1.0, 1.5], "int32", r"element \(1\): 1.5 has a fraction"),
        (-0.25, "uint8", r"-0.25 has a fraction"),
        ([[1, 2], [3, 300]], "int8", r"element \(1, 1\): 300 does not fit"),
        ([0, -1], "uint16", r"element \(1\): -1 does not fit"),
        ([0.0, float("nan")], "int64", r"element \(1\): nan does not fit"),
        ([0.0, float("inf")], "uint64", r"element \(1\): inf does not fit"),
        ([1.0, 2.0**64], "uint64", r"element \(1\): 1.8446744073709552e\+19 does not fit"),
    ],
)
def test_an_integer_type_refuses_what_it_cannot_hold(value, dtype, said):
    with pytest.raises(errors.InvalidArgumentError, match=r"TF-E0103\] " + said):
        tf.tensor(value, dtype=dtype)


def test_whole_reals_are_integers():
    np.testing.assert_array_equal(tf.tensor([1.0, -2.0], dtype="int32").numpy(), [1, -2])
    assert tf.tensor(2.0**63, dtype="uint64").numpy() == 2**63


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(
    "value, dtype",
    [
        ([0.0, 1e40], None),
        ([0.0, -1e40], "float32"),
        ([0.0, 70000.0], "float16"),
        ([0.0, 3.5e38], "bfloat16"),
        ([0.0, 500.0], "float8_e4m3fn"),
        ([0.0, 1e40j], "complex64"),
        ([0, 70000], "float16"),
    ],
)
def test_a_floating_type_says_where_a_number_overflows(value, dtype):
    with pytest.warns(RuntimeWarning, match=r"TF-E0103\] element \(1\): .* overflows"):
        tensor = tf.tensor(value, dtype=dtype)
    if tensor.dtype in ("float32", "float16", "complex64"):
        expected = np.array(value).astype(tensor.dtype)  # with NumPy's own warning
        np.testing.assert_array_equal(tensor.numpy(), expected)


def test_what_was_infinite_before_is_no_news(recwarn):
    tf.tensor([float("inf"), float("nan"), 65504.0], dtype="float16")
    assert not recwarn.list


@pytest.mark.parametrize(
    "enter",
    [
        lambda: tf.tensor([HALF]),
        lambda: tf.tensor([1], dtype=HALF),
        lambda: tf.Variable([1.0], name=HALF),
        lambda: tf.tensor([1.0], device=HALF),
    ],
)
def test_text_that_is_no_unicode_is_refused_in_words(enter):
    with pytest.raises(errors.Error, match="half of a surrogate pair"):
        enter()


@pytest.mark.parametrize(
    "value, dtype, said",
    [
        ([["a", "b"], ["c", HALF]], None, r"element \(1, 1\): str .* holds half of a surrogate pair"),
        (["a", 1], None, r"element \(1\): a string tensor was given int 1"),
        ([1, 2**70], "float32", r"element \(1\): int 1180591620717411303424 does not fit"),
        ([[0.0], [None]], "float32", r"element \(1, 0\): a tensor cannot be made of None"),
    ],
)
def test_what_is_no_element_is_named_with_its_place(value, dtype, said):
    with pytest.raises(errors.Error, match=said):
        tf.tensor(value, dtype=dtype)


def test_texts_and_bytes_stay_what_they_are():
    assert tf.tensor(["é", b"\xff", "a\0b"]).numpy().tolist() == ["é".encode(), b"\xff", b"a\0b"]


def test_folders_of_modules_need_not_be_utf_8(tmp_path):
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    path = os.pathsep.join([os.fsdecode(folder), *filter(None, sys.path)])
    script = folder + b"/script.py"
    with open(script, "w") as file:
        file.write("import tracefire as tf\nprint((tf.tensor([1.0]) + 1).numpy())\n")
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "PYTHONPATH": path}, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == b"[2.]"
