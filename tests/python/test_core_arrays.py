# SPDX-License-Identifier: Apache-2.0
"""Host data into tensors and out of them."""

import array
import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")

NUMPY_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128"
).split()
ML_DTYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
}
DTYPES = {**{name: np.dtype(name) for name in NUMPY_DTYPES}, **ML_DTYPES}


def sample(dtype):
    """A [2, 3] array with values that every dtype holds."""
    return np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_of_every_dtype_come_back_as_they_went(name):
    given = sample(DTYPES[name])
    tensor = core.tensor(given)
    assert tensor.dtype == name
    assert tensor.shape == (2, 3)
    back = tensor.numpy()
    assert back.dtype == given.dtype
    np.testing.assert_array_equal(back, given)


@pytest.mark.parametrize("name", DTYPES)
def test_numbers_take_every_dtype(name):
    given = sample(DTYPES[name])
    tensor = core.tensor([[0, 1, 2], [3, 4, 5]], dtype=name)
    assert tensor.dtype == name
    np.testing.assert_array_equal(tensor.numpy(), given)
    assert core.tensor(given).tolist() == given.tolist()


def test_fetch_reads_many_at_once():
    values = core.fetch(
        [core.tensor(sample(t)) for t in DTYPES.values()]
        + [core.tensor(["a", "b"]), core.tensor(np.zeros((2, 0), "float32")), 3]
    )
    assert len(values) == len(DTYPES) + 3
    for value, dtype in zip(values, DTYPES.values()):
        assert value.dtype == dtype and not value.flags.writeable
        np.testing.assert_array_equal(value, sample(dtype))
    assert values[-3].tolist() == [b"a", b"b"]
    assert values[-2].shape == (2, 0) and values[-1] == 3
    assert core.fetch([]) == []
    with pytest.raises(ValueError, match="fetch received"):
        core.fetch(core.tensor(1.0))


def test_fetch_raises_the_failure_of_any_tensor():
    table = core.tensor([1.0, 2.0])
    bad = core.ops.gather(table, core.tensor([5]), axis=0)
    with pytest.raises(IndexError, match="TF-E0301"):
        core.fetch([table, bad])
    np.testing.assert_array_equal(core.fetch([table])[0], [1.0, 2.0])


@pytest.mark.parametrize("index", [([0], [5]), ([0], [-7]), ([3], [0]), ([-4], [3]), ([-4],)])
def test_index_arrays_that_reach_too_far_are_reported_as_they_are(index):
    """Also where the joined number lies inside of the tensor again."""
    bad = next(i[0] for i, size in zip(index, (3, 4)) if not -size <= i[0] < size)
    with pytest.raises(IndexError, match=f"TF-E0301.*index {bad} is out of range"):
        core.tensor(np.arange(12).reshape(3, 4))[index].numpy()


@pytest.mark.parametrize("spelling", ["float32", np.float32, np.dtype("float32"), float])
def test_dtypes_have_several_spellings(spelling):
    assert core.tensor(1, dtype=spelling).dtype == "float32"


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_are_rounded_as_numpy_rounds_them(name):
    dtype = np.dtype(DTYPES[name])
    random = np.random.default_rng(7)
    values = np.concatenate(
        [
            random.standard_normal(500) * 10.0 ** random.integers(-9, 9, 500),
            [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 449, 464, 465, 480, 57344, 61440, 65504, 65519, 65520, 3.4e38],
        ]
    ).astype("float32")
    ours = core.tensor([float(v) for v in values], dtype=name).numpy()
    with np.errstate(over="ignore"):
        theirs = values.astype(dtype)
    np.testing.assert_array_equal(ours.astype("float32"), theirs.astype("float32"))
    finite = np.isfinite(theirs.astype("float32"))
    np.testing.assert_array_equal(ours.view(f"u{dtype.itemsize}")[finite], theirs.view(f"u{dtype.itemsize}")[finite])


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_every_small_float_reads_as_numpy_reads_it(name):
    dtype = np.dtype(DTYPES[name])
    patterns = np.arange(256 ** dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):
        expected = patterns.astype("float64")
    np.testing.assert_array_equal(core.tensor(patterns).tolist(), expected)


def test_numpy_sees_the_tensors_own_memory_and_cannot_write_to_it():
    tensor = core.tensor(sample("float32"), device="/CPU:0")
    first, second = tensor.numpy(), tensor.numpy()
    assert np.shares_memory(first, second)
    assert not first.flags.writeable
    with pytest.raises(ValueError):
        first[0, 0] = 7
    del tensor, second
    np.testing.assert_array_equal(first, sample("float32"))


def test_host_data_is_copied_at_the_call():
    given = sample("float32")
    tensor = core.tensor(given)
    given[:] = -1
    np.testing.assert_array_equal(tensor.numpy(), sample("float32"))


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1, ::2],
        lambda a: a[:, 1],
        lambda a: np.asfortranarray(a),
        lambda a: a[:0],
        lambda a: a[1, 2],
        lambda a: np.broadcast_to(a[0], (4, 3)),
        lambda a: a.astype(">f4"),
        lambda a: a.astype(">c8"),
        lambda a: a.astype(ml_dtypes.bfloat16).T,
    ],
)
def test_strided_and_swapped_arrays(view):
    given = view(sample("float32"))
    back = core.tensor(given).numpy()
    assert back.shape == given.shape
    np.testing.assert_array_equal(back, given)


def test_other_buffers():
    assert core.tensor(array.array("d", [1, 2])).tolist() == [1.0, 2.0]
    assert core.tensor(bytearray(b"\x01\xff")).tolist() == [1, 255]
    assert core.tensor(memoryview(b"abcdef").cast("B", [2, 3])).shape == (2, 3)
    assert core.tensor(range(4)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "given",
    [
        np.array([1, 2], dtype=np.longdouble),
        np.longdouble(1),
        np.array([1], dtype=np.clongdouble),
        np.zeros(3, dtype=[("age", "i4"), ("height", "f4")]),
        np.zeros(3, dtype=[("age", "i4"), ("height", "f4")])[0],
        np.zeros(2, dtype="V3"),
    ],
    ids=lambda a: str(a.dtype),
)
def test_elements_that_no_dtype_has_are_refused_whole(given):
    """Neither digits nor names are lost on the way: long double and records have no place here."""
    for value in (given, [given, given]):
        with pytest.raises(TypeError, match="TF-E0102.*elements, which no tensor has") as caught:
            core.tensor(value)
        assert str(given.dtype)[:100] in str(caught.value)
    field = np.zeros(3, dtype=[("age", "i4")])["age"]
    assert core.tensor(field).dtype == "int32"


@pytest.mark.parametrize("dtype", ["float64", "int64", "int8", "bool"])
def test_a_column_keeps_its_type(dtype):
    """As pandas has them: with a dtype and tolist(), but no array of NumPy's."""
    values = np.arange(3).astype(dtype)

    class Column:
        def __init__(self, values):
            self.values, self.dtype = values, values.dtype

        def __array__(self, dtype=None, copy=None):
            return self.values

        def tolist(self):
            return self.values.tolist()

    assert core.tensor(Column(values)).dtype == dtype
    words = Column(np.array(["a", "b"], dtype=object))
    assert core.tensor(words).dtype == "string"


@pytest.mark.parametrize(
    "value, dtype",
    [
        (True, "bool"),
        (1, "int32"),
        (2**31 - 1, "int32"),
        (2**31, "int64"),
        (-(2**31) - 1, "int64"),
        (2**63, "uint64"),
        (1.5, "float32"),
        (1j, "complex64"),
        ([True, 2], "int32"),
        ([1, 2.5], "float32"),
        ([1, 2.5, 1j], "complex64"),
        ([], "float32"),
        ([[], []], "float32"),
        ("text", "string"),
        (np.float64(2), "float64"),
        (np.int8(2), "int8"),
        ([np.float64(2), 1], "float64"),
        ([np.zeros(2, "int16"), np.ones(2, "int16")], "int16"),
    ],
)
def test_dtypes_that_values_get(value, dtype):
    assert core.tensor(value).dtype == dtype


def test_shapes_of_nested_lists():
    assert core.tensor([[1, 2, 3], (4, 5, 6)]).shape == (2, 3)
    assert core.tensor([[], []]).shape == (2, 0)
    assert core.tensor(3).shape == ()


def test_numbers_that_do_not_fit_are_refused():
    for value, dtype in [(300, "int8"), (-1, "uint8"), (16, "uint4"), (1e30, "int64"), (2**64, None), (float("nan"), "int32"), (-1.9, "int32")]:
        with pytest.raises(ValueError, match="TF-E0103"):
            core.tensor(value, dtype=dtype)
    assert core.tensor(-1.0, "int32").item() == -1
    assert core.tensor(2**64 - 1, "uint64").item() == 2**64 - 1
    assert core.tensor(1e19, "uint64").item() == 10**19


def test_lists_must_be_rectangular():
    for value in [[[1, 2], [3]], [[1], 2], [1, [2]]]:
        with pytest.raises(ValueError, match="TF-E0101"):
            core.tensor(value)


def test_what_is_no_data_is_refused():
    for value in [object(), {"a": 1}, None, [1, "a"], ["a", 1], np.array([1, "2020-01-01"], "M8[D]")[:1]]:
        with pytest.raises(TypeError, match="TF-E0102"):
            core.tensor(value)
    with pytest.raises(TypeError, match="real number"):
        core.tensor(1j, "float32")
    with pytest.raises(TypeError, match="string"):
        core.tensor("a", "float32")
    with pytest.raises(ValueError, match="Did you mean 'float32'"):
        core.tensor(1, "flaot32")


def test_strings():
    tensor = core.tensor([["a", b"b"], ["\u00e4", ""]])
    assert (tensor.dtype, tensor.shape) == ("string", (2, 2))
    expected = [[b"a", b"b"], ["\u00e4".encode(), b""]]
    assert tensor.tolist() == expected
    assert tensor.numpy().dtype == object
    assert tensor.numpy().tolist() == expected
    assert core.tensor("one").item() == b"one"
    assert core.tensor(np.array(["a", "bc"])).tolist() == [b"a", b"bc"]
    assert core.tensor(np.array(["a", "bc"], dtype=object)).tolist() == [b"a", b"bc"]
    assert core.tensor(np.array([b"a", b"bc"])).tolist() == [b"a", b"bc"]


def test_dtype_of_arrays_is_changed_on_request():
    tensor = core.tensor(np.array([0.5, 2.0]), dtype="bfloat16")
    assert tensor.dtype == "bfloat16"
    assert tensor.tolist() == [0.5, 2.0]


def test_tensors_pass_through_and_stack():
    tensor = core.tensor([1.0, 2.0])
    assert core.tensor(tensor) is tensor
    assert core.tensor(tensor, dtype="float32") is tensor
    assert core.tensor(tensor, dtype="int32").tolist() == [1, 2]
    assert core.tensor([tensor, [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert core.tensor([[tensor], [tensor]]).shape == (2, 1, 2)


def test_array_protocol():
    tensor = core.tensor(sample("int32"), device="/CPU:0")
    assert np.asarray(tensor).base is not None
    assert np.array(tensor).flags.writeable
    assert np.asarray(tensor, dtype="float64").dtype == "float64"
    assert np.array(tensor, copy=False).dtype == "int32"
    with pytest.raises(ValueError, match="without a copy"):
        tensor.__array__("float64", copy=False)
    assert np.add(tensor, 1).tolist() == [[1, 2, 3], [4, 5, 6]]


DLPACK = [n for n in NUMPY_DTYPES]


@pytest.mark.parametrize("name", DLPACK)
def test_dlpack_to_numpy(name):
    given = sample(name)
    tensor = core.tensor(given, device="/CPU:0")
    back = np.from_dlpack(tensor)
    assert back.dtype == given.dtype
    np.testing.assert_array_equal(back, given)
    assert np.shares_memory(back, tensor.numpy())
    assert not back.flags.writeable


class OnlyDlpack:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("name", DLPACK)
def test_dlpack_from_numpy(name):
    given = sample(name)
    for view in (given, given.T, given[:, ::2], given[:0]):
        tensor = core.tensor(OnlyDlpack(view))
        assert tensor.dtype == name
        np.testing.assert_array_equal(tensor.numpy(), view)


def test_dlpack_from_tensors_of_every_kind():
    tensor = core.tensor(sample("float32"))
    assert core.tensor(OnlyDlpack(tensor)).tolist() == tensor.tolist()
    half = core.tensor([1.5], dtype="bfloat16")
    assert core.tensor(OnlyDlpack(half)).dtype == "bfloat16"


def test_dlpack_never_gives_writable_memory_of_a_tensor():
    tensor = core.tensor(sample("float32"), device="/CPU:0")
    assert tensor.__dlpack_device__() == (1, 0)
    old = np.from_dlpack(OldConsumer(tensor))
    assert not np.shares_memory(old, tensor.numpy())
    with pytest.raises(BufferError, match="without a copy"):
        tensor.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="another device"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="element type"):
        core.tensor("text").__dlpack__()
    copied = tensor.__dlpack__(max_version=(1, 0), copy=True)
    del copied  # an unused capsule frees its memory
    np.testing.assert_array_equal(tensor.numpy(), sample("float32"))


class OldConsumer(OnlyDlpack):
    """A tensor seen by a consumer that knows no versions of DLPack."""

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__()


def test_scalars_as_python_numbers():
    assert core.tensor(3).item() == 3
    assert core.tensor([[2.5]]).item() == 2.5
    assert float(core.tensor(2.5)) == 2.5
    assert int(core.tensor(2.5)) == 2
    assert bool(core.tensor(0.0)) is False
    assert bool(core.tensor([True])) is True
    assert complex(core.tensor(1 + 2j)) == 1 + 2j
    assert [10, 20, 30][core.tensor(1)] == 20
    with pytest.raises(TypeError, match="index"):
        [10, 20][core.tensor(1.0)]
    with pytest.raises((ValueError, TypeError), match="one"):
        float(core.tensor([1.0, 2.0]))


def test_length():
    assert len(core.tensor([[1, 2]])) == 1
    with pytest.raises(TypeError):
        len(core.tensor(1))


def test_copies_and_pickles():
    tensor = core.tensor(sample("float32"))
    assert copy.copy(tensor) is tensor
    assert copy.deepcopy(tensor) is tensor
    for value in (tensor, core.tensor(["a", "b"]), core.tensor([1.5], "bfloat16")):
        again = pickle.loads(pickle.dumps(value))
        assert (again.dtype, again.shape) == (value.dtype, value.shape)
        assert again.tolist() == value.tolist()


def test_attributes_can_be_added():
    tensor = core.tensor(1)
    tensor._keras_mask = "mask"
    assert tensor._keras_mask == "mask"
    assert repr(core.tensor([1.5])).startswith("<Tensor: shape=(1,), dtype=float32")
    assert "[1.5]" in repr(core.tensor([1.5]))
