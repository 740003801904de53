# SPDX-License-Identifier: Apache-2.0
"""fit, evaluate and predict give the figures of Keras on JAX (scripts/make_histories.py)."""

import json
import pathlib

import history_cases
import numpy as np
import pytest

DATA = pathlib.Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "histories.json").read_text())["cases"]


def test_every_case_has_figures():
    assert sorted(EXPECTED) == sorted(history_cases.CASES)


@pytest.mark.filterwarnings("ignore:.*runs batch by batch")
@pytest.mark.parametrize("name", list(history_cases.CASES))
def test_history(name):
    got = history_cases.CASES[name]()
    assert sorted(got) == sorted(EXPECTED[name])
    for key, expected in EXPECTED[name].items():
        np.testing.assert_allclose(got[key], expected, rtol=2e-5, atol=1e-6, err_msg=key)


def test_digits_history():
    """The first epoch's loss within 1e-5, the fifth's within 1e-3; the model learns."""
    x, y = pytest.importorskip("sklearn.datasets") and history_cases.digits()
    expected = json.loads((DATA / "digits_history.json").read_text())["history"]["loss"]
    got = history_cases.digits_history(x, y)
    assert got["loss"][0] == pytest.approx(expected[0], rel=1e-5)
    assert got["loss"][4] == pytest.approx(expected[4], rel=1e-3)
    assert got["accuracy"][4] > 0.9
