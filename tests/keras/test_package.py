# SPDX-License-Identifier: Apache-2.0
"""The thin Python package: import, operators, indexing, tape, errors, devices."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tracefire
from tracefire import errors

ROOT = pathlib.Path(__file__).parents[2]
A = np.arange(24, dtype="float32").reshape(2, 3, 4)


def t(x, dtype=None):
    return tracefire.tensor(np.asarray(x, dtype))


def test_import_brings_no_numpy():
    """The Python files are imported over a module that defines names only."""
    code = f"""
import sys, types
sys.path.insert(0, {str(ROOT / "python")!r})
core = types.ModuleType("tracefire._core")
core.Tensor, core.Variable, core.Tape = (type(n, (), {{}}) for n in ("Tensor", "Variable", "Tape"))
core.ops, core.__version__ = types.ModuleType("ops"), "0"
core.__getattr__ = lambda name: None  # functions
sys.modules["tracefire._core"] = core
import tracefire
assert "numpy" not in sys.modules and "keras" not in sys.modules, sorted(sys.modules)
print(tracefire.__version__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "0", done.stderr


def test_version():
    assert tracefire.__version__.count(".") >= 2


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        slice(1, None),
        (slice(None), slice(None, None, -1)),
        (Ellipsis, 1),
        (0, Ellipsis, slice(3, 0, -2)),
        (slice(None), None, 1),
        (None, 1, None, slice(0, 2)),
        (slice(None), [2, 0]),
        ([1, 0], slice(1, 3)),
        ([0, 1], [2, -1]),
        (0, [2, 0], slice(None), None),
        ([1, 0], slice(None), [3, 1]),
        (slice(None), [[0, 1], [2, 2]], [[1], [3]]),
        (slice(5, 9),),
        A[:, :, 0] > 6,
        (slice(None), np.array([True, False, True])),
    ],
    ids=str,
)
def test_index(key):
    np.testing.assert_array_equal(t(A)[key].numpy(), A[key])


def test_index_with_a_tensor():
    np.testing.assert_array_equal(t(A)[:, t([2, 1], "int32")].numpy(), A[:, [2, 1]])


def test_index_out_of_range_names_axis_and_size():
    with pytest.raises(IndexError, match=r"TF-E0301.*index 5 was used on axis 1 of size 3"):
        t(A)[0, 5]
    with pytest.raises(IndexError, match="rank 3"):
        t(A)[0, 0, 0, 0]


def test_arithmetic():
    x, y = np.array([1.5, -2.0, 4.0], "float32"), np.array([2.0, 3.0, -0.5], "float32")
    a, b = t(x), t(y)
    pairs = [
        (a + b, x + y), (a - 1, x - 1), (1 - a, 1 - x), (2 * a, 2 * x), (a / b, x / y),
        (1 / a, 1 / x), (a // b, x // y), (a % b, x % y), (a**2, x**2), (2.0**a, 2.0**x),
        (-a, -x), (abs(a), abs(x)), (a @ b, x @ y), (y + a, y + x), (a == b, x == y),
        (a != 1.5, x != 1.5), (a < b, x < y), (a >= 1.5, x >= 1.5), (3.0 > a, 3.0 > x),
    ]  # fmt: skip
    for got, expected in pairs:
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "left, right, result",
    [
        ("float32", 2, "float32"),
        ("float32", 2.5, "float32"),
        ("float16", 2.5, "float16"),
        ("int32", 2, "int32"),
        ("int32", 2.5, "float32"),
        ("bool", 2, "int32"),
        ("int8", "int32", "int32"),
        ("uint8", "int8", "int16"),
        ("int32", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("float32", np.ones(2), "float32"),
    ],
    ids=str,
)
def test_promotion(left, right, result):
    a = t([1, 0], left)
    b = t([1, 1], right) if isinstance(right, str) else right
    assert (a + b).dtype == result and (b + a).dtype == result


def test_operators_of_booleans_and_integers():
    p, q = t([True, True, False]), t([True, False, False])
    assert (p & q).tolist() == [True, False, False] and (p | q).tolist() == [True, True, False]
    assert (p ^ q).tolist() == [False, True, False] and (~p).tolist() == [False, False, True]
    i = t([6, 3], "int32")
    assert (i & 2).tolist() == [2, 2] and (i | 1).tolist() == [7, 3]
    assert (i / 2).dtype == "float32" and (i // 4).tolist() == [1, 0]


def test_matrix_products_of_every_rank():
    m, v = np.arange(6.0, dtype="float32").reshape(2, 3), np.array([1.0, 2.0, 3.0], "float32")
    batch = np.arange(12.0, dtype="float32").reshape(2, 3, 2)
    for a, b in [(m, v), (v, m.T), (v, v), (m, m.T), (m, batch), (batch, m)]:
        np.testing.assert_allclose((t(a) @ t(b)).numpy(), a @ b)
    with pytest.raises(TypeError, match="rank 1 or more"):
        t(1.0) @ t(v)


def test_conversions():
    x = t(2.5, "float32")
    assert float(x) == 2.5 and int(x) == 2 and bool(x) and f"{x:.2f}" == "2.50" and x.item() == 2.5
    assert list(range(5))[t(3, "int32")] == 3
    assert [row.tolist() for row in t([[1, 2], [3, 4]], "int32")] == [[1, 2], [3, 4]]
    assert len(t([1.0, 2.0])) == 2 and t(A).ndim == 3 and t(A).size == 24
    np.testing.assert_array_equal(t(A).T.numpy(), A.T)
    with pytest.raises(ValueError, match="TF-E0101.*one element"):
        float(t([1.0, 2.0]))
    with pytest.raises(TypeError, match="index"):
        [1][x]


def test_tensors_are_dictionary_keys_by_identity():
    a, b = t([1.0]), t([1.0])
    assert {a: 1, b: 2}[a] == 1


def test_tape():
    x, y = t([1.0, 2.0], "float32"), t([3.0, 4.0], "float32")
    with tracefire.GradientTape() as tape:
        tape.watch(x)
        z = x * x * y
    gx, rest = tape.gradient(z, [x, {"y": y, "unused": t([1.0])}])
    np.testing.assert_allclose(gx.numpy(), [6.0, 16.0])
    np.testing.assert_allclose(rest["y"].numpy(), [1.0, 4.0])
    assert rest["unused"] is None
    with pytest.raises(errors.FailedPreconditionError, match="second time"):
        tape.gradient(z, x)


def test_persistent_tape_seeds_and_zeros():
    x, unused = t(3.0, "float32"), t([1.0, 1.0], "float32")
    with tracefire.GradientTape(persistent=True) as tape:
        y = x * x
        z = y * x
    assert float(tape.gradient(z, x)) == 27.0
    assert float(tape.gradient(y, x, output_gradients=t(2.0, "float32"))) == 12.0
    zero = tape.gradient(z, unused, unconnected_gradients="zero")
    assert zero.tolist() == [0.0, 0.0]


def test_gradient_of_a_variable():
    w = tracefire.Variable(t([1.0, -1.0], "float32"), name="w")
    with tracefire.GradientTape() as tape:
        loss = w.read() * w.read()
    np.testing.assert_allclose(tape.gradient(loss, w).numpy(), [2.0, -2.0])


def test_custom_gradient():
    seen = []

    @tracefire.custom_gradient
    def clipped(x, scale):
        def gradient(upstream):
            seen.append(upstream)
            return upstream * 10.0, None

        return x * scale, gradient

    x = t([1.0, 2.0], "float32")
    with tracefire.GradientTape() as tape:
        inner = x * 3.0
        out = clipped(inner, 5.0) + clipped(inner, 7.0)
        loss = out * out
    np.testing.assert_allclose(out.numpy(), [36.0, 72.0])
    # 2 out, times ten for each call, times three.
    np.testing.assert_allclose(tape.gradient(loss, x).numpy(), 2 * np.array([36, 72]) * 60.0)
    assert len(seen) == 2


def test_errors_carry_code_and_kind():
    error = errors.make("InvalidArgument", "[TF-E0101] shapes [2] and [3] do not go together")
    assert isinstance(error, ValueError) and error.code == "TF-E0101" and error.number == 101
    again = type(error)("while calling Dense: " + str(error))  # as Keras raises it again
    assert again.code == "TF-E0101"
    assert errors.code_of(ValueError("nothing")) is None
    assert isinstance(errors.make("Unimplemented", "[TF-E0601] x"), NotImplementedError)


def test_every_kind_of_the_catalogue_has_a_class():
    import json

    rows = json.loads((ROOT / "schema" / "errors.json").read_text())["errors"]
    kinds = {row["kind"] for row in rows}
    assert {type(errors.make(kind, "[TF-E0901] x")).kind for kind in kinds} == kinds


def test_devices():
    cpus = tracefire.config.list_physical_devices("CPU")
    assert cpus and cpus[0] == ("/physical_device:CPU:0", "CPU")
    assert tracefire.config.list_logical_devices("CPU")[0].name == "/device:CPU:0"
    assert set(cpus) <= set(tracefire.config.list_physical_devices())
    with tracefire.device("/CPU:0"):
        assert t([1.0]).device.endswith("CPU:0")
    # Where the scope begins, with the devices that there are.
    with pytest.raises(ValueError, match=r"TF-E0201.*/GPU:7 does not exist; name one of .*/CPU:0"):
        tracefire.device("/GPU:7").__enter__()


def test_placement_settings_are_kept():
    before = tracefire.config.get_soft_device_placement()
    try:
        tracefire.config.set_soft_device_placement(not before)
        assert tracefire.config.get_soft_device_placement() is not before
    finally:
        tracefire.config.set_soft_device_placement(before)


@pytest.mark.parametrize("value", ["x", "False", None, 1, 0.0, [True]])
def test_switches_take_truth_values_only(value):
    before = tracefire.config.get_soft_device_placement()
    for setter in (tracefire.config.set_soft_device_placement, tracefire.debugging.set_log_device_placement):
        with pytest.raises(TypeError, match=rf"TF-E0503\] {setter.__name__} was given .*True or False"):
            setter(value)
    assert tracefire.config.get_soft_device_placement() is before


def test_switches_take_the_truth_values_of_numpy():
    before = tracefire.config.get_soft_device_placement()
    tracefire.config.set_soft_device_placement(np.bool_(before))
    assert tracefire.config.get_soft_device_placement() is before
