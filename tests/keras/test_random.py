# SPDX-License-Identifier: Apache-2.0
"""keras.random gives the numbers of Keras on JAX (scripts/make_histories.py)."""

import json
import pathlib

import history_cases
import keras
import numpy as np
import pytest
from tracefire import _core
from tracefire import errors

EXPECTED = json.loads((pathlib.Path(__file__).parent / "data" / "random.json").read_text())["draws"]

# A logarithm near the end of its range, whose last bit is the library's: one number of 35.
ROUNDED = {"normal": 4}


@pytest.fixture(scope="module")
def draws():
    return history_cases.random_numbers()


@pytest.mark.parametrize("name", list(EXPECTED))
def test_draw(draws, name):
    drawn, expected = np.asarray(draws[name]), np.asarray(EXPECTED[name])
    if name in ROUNDED:
        np.testing.assert_array_max_ulp(drawn.astype("float32"), expected.astype("float32"), ROUNDED[name])
        assert (drawn != expected).sum() <= 1
    else:
        np.testing.assert_array_equal(drawn, expected)


def test_bits_of_a_known_key():
    """The test vectors of the Random123 library for key and counter zero."""
    zero = _core.tensor(np.zeros(2, "uint32"))
    words = _core.ops.random_bits(zero, shape=(1,), dtype="uint64", algorithm="threefry2x32")
    assert hex(words.numpy()[0]) == "0x6b20015999ba4efe"
    once = _core.ops.random_bits(zero, shape=(1,), algorithm="threefry2x32").numpy()
    assert once[0] == 0x6B200159 ^ 0x99BA4EFE
    philox = _core.ops.random_bits(zero, shape=(2,), algorithm="philox4x32").numpy()
    assert [hex(w) for w in philox] == ["0x6627e8d5", "0xe169c58d"]


def test_number_depends_on_its_index_alone():
    few = keras.random.uniform((10,), seed=3)
    many = keras.random.uniform((5, 4), seed=3)
    np.testing.assert_array_equal(np.asarray(few), np.asarray(many).reshape(-1)[:10])


def test_unseeded_draw_while_tracing_is_refused():
    with _core.TraceScope(), pytest.raises(errors.InvalidArgumentError, match="TF-E0111"):
        keras.random.normal((2,))


def test_seed_generator_advances_in_a_traced_function():
    generator = keras.random.SeedGenerator(5)
    with _core.TraceScope() as scope:
        function = scope.finish([keras.random.uniform((3,), seed=generator)])
    traced = [np.asarray(function()[0].numpy()) for _ in range(2)]
    again = keras.random.SeedGenerator(5)
    eager = [np.asarray(keras.random.uniform((3,), seed=again)) for _ in range(2)]
    np.testing.assert_array_equal(traced, eager)
    assert not np.array_equal(*traced)


def test_moments_of_a_large_draw():
    x = np.asarray(keras.random.normal((20000,), mean=2.0, stddev=3.0, seed=1))
    assert abs(x.mean() - 2.0) < 0.1 and abs(x.std() - 3.0) < 0.1
    t = np.asarray(keras.random.truncated_normal((20000,), seed=2))
    assert abs(t).max() < 2.0 and 0.85 < t.std() < 0.91
