# SPDX-License-Identifier: Apache-2.0
"""Objects that raise, lie or hold themselves: an error with a code, never an end of the process."""

import warnings

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")


def nested(depth):
    value = 1.0
    for _ in range(depth):
        value = [value]
    return value


def itself():
    value = []
    value.append(value)
    return value


def itself_twice():
    value = [1.0]
    for _ in range(60):
        value = [value, value]
    return value


def nothing_twice():
    value = []
    for _ in range(60):
        value = [value, value]
    return value


def itself_in_a_tuple():
    value = []
    value.append((1.0, value))
    return value


@pytest.mark.parametrize("value", [itself(), itself_twice(), nothing_twice(), itself_in_a_tuple(), nested(100_000)])
def test_lists_without_an_end(value):
    with pytest.raises(ValueError, match="TF-E0101"):
        core.tensor(value)
    with pytest.raises(ValueError, match="TF-E0101"):
        core.tensor([core.tensor(1.0), value])
    # Taken apart from outside: the destructor of so deep a list is Python's own affair.
    while isinstance(value, list) and value and isinstance(value[0], list) and value[0] is not value:
        value = value[0]


def test_as_many_axes_as_numpy_has():
    assert core.tensor(nested(64)).shape == (1,) * 64
    with pytest.raises(ValueError, match="TF-E0101.*64"):
        core.tensor(nested(65))
    holder = nested(70)
    with pytest.raises(ValueError, match="TF-E0101.*64"):
        core.tensor([holder, core.tensor(1.0)])


def test_long_ways_that_are_found_from_their_short_end():
    parts = [[core.tensor(1.0)]]
    for _ in range(50_000):
        parts.append([parts[-1]])
    with pytest.raises(ValueError, match="TF-E0101"):
        core.tensor(parts)


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2], [3]],
        [[1], 2],
        [1, [2]],
        [[[1]], [[1, 2]]],
        [[], [1]],
        [1, "a"],
        ["a", 1],
        [None],
        [object()],
        [{1: 2}],
        [1, b"x"],
        [2**64],
        [-(2**63) - 1],
        [2**63, -1],
        {1, 2},
        object(),
        None,
        lambda: 1,
    ],
    ids=str,
)
def test_what_is_no_array_of_numbers(value):
    with pytest.raises((ValueError, TypeError), match=r"\[TF-E01\d\d\]"):
        core.tensor(value)


def raising(method, **others):
    def fail(self, *args, **kwargs):
        raise KeyError("on purpose")

    return type("Raising", (), {method: fail, **others})()


@pytest.mark.parametrize("method", ["__index__", "__float__", "__array__", "__len__"])
def test_what_an_object_raises_comes_out(method):
    others = {"__getitem__": lambda self, i: 1} if method == "__len__" else {}
    value = raising(method, **others)
    with pytest.raises(KeyError, match="on purpose"):
        core.tensor(value)
    if method != "__len__":
        with pytest.raises((KeyError, TypeError)):
            core.tensor([1, value])


def lying(method, answer, **others):
    return type("Lying", (), {method: lambda self, *a, **k: answer, **others})()


@pytest.mark.parametrize(
    "value",
    [
        lying("__index__", "text"),
        lying("__index__", 2**100),
        lying("__float__", "text"),
        lying("__array__", None),
        lying("__array__", 3),
        lying("__len__", -1, __getitem__=lambda self, i: 1),
        lying("__len__", "three", __getitem__=lambda self, i: 1),
        lying("__len__", 2**40, __getitem__=lambda self, i: 1),
    ],
    ids=range(8),
)
def test_answers_of_the_wrong_kind(value):
    with pytest.raises((TypeError, ValueError)):
        core.tensor(value)


def test_an_object_whose_array_is_itself():
    class Mirror:
        def __array__(self, dtype=None, copy=None):
            return self

    with pytest.raises(TypeError, match="TF-E0102.*__array__"):
        core.tensor(Mirror())


def test_a_list_is_read_as_it_is_stored():
    class Longer(list):
        def __len__(self):
            return 1000

        def __iter__(self):
            while True:
                yield 7

    assert core.tensor(Longer([1, 2])).tolist() == [1, 2]
    assert core.tensor([Longer([1, 2]), [3, 4]]).tolist() == [[1, 2], [3, 4]]


def test_a_list_that_changes_while_it_is_read():
    values = []

    class Shrinks:
        def __getattr__(self, name):
            if name == "dtype":
                values.clear()
            raise AttributeError(name)

        def __float__(self):
            return 1.0

    values += [Shrinks() for _ in range(1000)]
    with pytest.raises(ValueError, match="TF-E0502.*changed"):
        core.tensor(values)


def test_sequences_that_end_early_or_have_no_end():
    class Short:
        def __len__(self):
            return 5

        def __getitem__(self, i):
            if i > 2:
                raise IndexError(i)
            return i

    with pytest.raises(IndexError):
        core.tensor(Short())

    class Endless:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return i

    assert core.tensor(Endless()).tolist() == [0, 1, 2]
    assert core.tensor(range(4)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("interface", [{}, {"typestr": "<f4"}, {"typestr": "<fx"}, {"typestr": 3}])
def test_an_array_interface_that_says_too_little(interface):
    value = type("Interface", (), {"__array_interface__": interface})()
    with pytest.raises(Exception) as raised:
        core.tensor(value)
    assert isinstance(raised.value, (KeyError, TypeError, ValueError, RuntimeError))


def test_a_number_beyond_float32_is_told():
    with pytest.warns(RuntimeWarning, match="TF-E0103.*float64"):
        assert core.tensor(1e300).tolist() == float("inf")
    with pytest.warns(RuntimeWarning, match="TF-E0103"):
        core.tensor([[1.0, -1e39]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert core.tensor(1e300, "float64").item() == 1e300
        assert core.tensor(float("inf")).item() == float("inf")
        assert core.tensor(3.4e38).item() == float(np.float32(3.4e38))
        with pytest.raises(RuntimeWarning):
            core.tensor(1e300)


def test_an_array_that_fits_into_no_memory():
    huge = np.broadcast_to(np.float32(1), (2**20, 2**20, 2**10))
    with pytest.raises(MemoryError, match="TF-E"):
        core.tensor(huge)
