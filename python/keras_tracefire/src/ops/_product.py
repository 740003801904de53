# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and tensors. All of them end in `matmul`."""

import itertools
import math

from keras.src.backend.common.backend_utils import canonicalize_axis
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops._shape import broadcast_to
from keras_tracefire.src.ops._shape import expand_dims
from keras_tracefire.src.ops._shape import moveaxis
from keras_tracefire.src.ops._shape import ravel
from keras_tracefire.src.ops._shape import reshape
from keras_tracefire.src.ops._shape import stack
from keras_tracefire.src.ops._shape import transpose
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import promote
from keras_tracefire.src.ops._tensor import result_type
from tracefire import _core
from tracefire import _ops



def _factors(*xs):
    """Operands of one dtype. int8 stays: its products are int32."""
    xs = [convert_to_tensor(x) for x in xs]
    dtype = result_type(*[x.dtype for x in xs])
    return [cast(x, dtype) for x in xs]


def _wide(*xs):
    """int8 as int32."""
    return [cast(x, "int32") if x.dtype == "int8" else x for x in xs]


def _matrix_product(x1, x2):
    """matmul of operands of rank 2 or more."""
    if x1.dtype == "int8":
        return _ops.int_matmul(x1, x2)
    if x1.dtype == "bool":
        return cast(_ops.matmul(cast(x1, "float32"), cast(x2, "float32")), "bool")
    return _ops.matmul(x1, x2)


def matmul(x1, x2):
    x1, x2 = _factors(x1, x2)
    if not x1.shape or not x2.shape:
        raise argument_error(
            "`matmul` needs operands of rank 1 or more. "
            f"Received: x1.shape={x1.shape}, x2.shape={x2.shape}"
        )
    rank1, rank2 = len(x1.shape), len(x2.shape)
    x1 = expand_dims(x1, 0) if rank1 == 1 else x1
    x2 = expand_dims(x2, 1) if rank2 == 1 else x2
    out = _matrix_product(x1, x2)
    shape = list(out.shape)
    if rank2 == 1:
        del shape[-1]
    if rank1 == 1:
        del shape[-1 if rank2 == 1 else -2]
    return reshape(out, shape)


def dot(x1, x2):
    x1, x2 = _factors(x1, x2)
    if not x1.shape or not x2.shape:
        return ew.multiply(*_wide(x1, x2))
    return _tensordot(x1, x2, ([-1], [0] if len(x2.shape) == 1 else [-2]))


def vdot(x1, x2):
    x1, x2 = ravel(x1), ravel(x2)
    return tensordot(x1, x2, axes=1)


def inner(x1, x2):
    x1, x2 = _factors(x1, x2)
    if not x1.shape or not x2.shape:
        return ew.multiply(*_wide(x1, x2))
    return _tensordot(x1, x2, ([-1], [-1]))


def outer(x1, x2):
    return ew.multiply(reshape(x1, (-1, 1)), reshape(x2, (1, -1)))


def tensordot(x1, x2, axes=2):
    return _tensordot(*_factors(x1, x2), axes)


def _tensordot(x1, x2, axes):
    r1, r2 = len(x1.shape), len(x2.shape)
    if isinstance(axes, int):
        axes = (list(range(r1 - axes, r1)), list(range(axes)))
    a, b = [[s] if isinstance(s, int) else list(s) for s in axes]
    a, b = [canonicalize_axis(i, r1) for i in a], [canonicalize_axis(i, r2) for i in b]
    sizes = [[x1.shape[i] for i in a], [x2.shape[i] for i in b]]
    if sizes[0] != sizes[1]:
        raise argument_error(
            f"The summed axes must have equal sizes. Received sizes {sizes[0]} and {sizes[1]}"
        )
    rest1 = [i for i in range(r1) if i not in a]
    rest2 = [i for i in range(r2) if i not in b]
    shape = [x1.shape[i] for i in rest1] + [x2.shape[i] for i in rest2]
    left = reshape(transpose(x1, rest1 + a), (-1, math.prod(sizes[0])))
    if 0 in x1.shape or 0 in x2.shape:
        left = reshape(left, (math.prod(shape[: len(rest1)]), math.prod(sizes[0])))
    right = reshape(transpose(x2, b + rest2), (math.prod(sizes[0]), math.prod(shape[len(rest1) :])))
    return reshape(_matrix_product(left, right), shape)


def kron(x1, x2):
    x1, x2 = promote(x1, x2)
    rank = max(len(x1.shape), len(x2.shape))
    s1 = (1,) * (rank - len(x1.shape)) + tuple(x1.shape)
    s2 = (1,) * (rank - len(x2.shape)) + tuple(x2.shape)
    wide1 = [d for n in s1 for d in (n, 1)]
    wide2 = [d for n in s2 for d in (1, n)]
    out = ew.multiply(reshape(x1, wide1), reshape(x2, wide2))
    return reshape(out, [n * m for n, m in zip(s1, s2)])


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    x1, x2 = promote(x1, x2)
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    if {x1.shape[-1], x2.shape[-1]} - {2, 3}:
        raise argument_error(
            "`cross` needs vectors of 2 or 3 elements. "
            f"Received sizes {x1.shape[-1]} and {x2.shape[-1]}"
        )
    a, b = [[x[..., i] for i in range(x.shape[-1])] for x in (x1, x2)]
    flat = len(a) == 2 and len(b) == 2

    def minor(i, j):
        terms = [ew.multiply(u[p], v[q]) for u, v, p, q in ((a, b, i, j), (a, b, j, i))
                 if p < len(u) and q < len(v)]  # fmt: skip
        if len(terms) == 2:
            return ew.subtract(*terms)
        if i < len(a) and j < len(b):
            return terms[0]
        return ew.negative(terms[0])

    if flat:
        return minor(0, 1)
    out = stack([minor(1, 2), minor(2, 0), minor(0, 1)], axis=-1)
    return moveaxis(out, -1, axisc)


def _parse(subscripts, operands):
    """Letters of each operand and of the result, with the ellipsis written out."""
    subscripts = subscripts.replace(" ", "")
    given, arrow, result = subscripts.partition("->")
    terms = given.split(",")
    if len(terms) != len(operands):
        raise argument_error(
            f"einsum got {len(operands)} operands for the {len(terms)} terms of {subscripts!r}"
        )
    spare = [c for c in map(chr, itertools.chain(range(65, 91), range(97, 123))) if c not in given]
    ranks = [len(x.shape) - len(t.replace("...", "")) for t, x in zip(terms, operands)]
    widest = max([r for t, r in zip(terms, ranks) if "..." in t], default=0)
    dots = "".join(spare[:widest])
    full = []
    for term, rank, x in zip(terms, ranks, operands):
        if "..." in term:
            term = term.replace("...", dots[widest - rank :])
        if len(term) != len(x.shape):
            raise argument_error(
                f"einsum term {term!r} names {len(term)} axes of an operand of shape {x.shape}"
            )
        full.append(term)
    if arrow:
        return full, result.replace("...", dots)
    letters = "".join(full)
    once = sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots)
    return full, dots + "".join(once)


def _diagonals(x, term):
    """An axis named twice in one operand is its diagonal."""
    from keras_tracefire.src.ops._index import diagonal

    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            x = diagonal(x, 0, i, j)
            term = term[:i] + term[i + 1 : j] + term[j + 1 :] + c
    return x, term


def _sum_out(x, term, keep):
    axes = [i for i, c in enumerate(term) if c not in keep]
    if axes:
        x = _ops.reduce_sum(x, axes=axes, keepdims=False)
    return x, "".join(c for c in term if c in keep)


def _contract(x1, t1, x2, t2, keep):
    """One matmul with batch axes (in both, kept), summed axes and free axes."""
    x1, t1 = _sum_out(x1, t1, keep + t2)
    x2, t2 = _sum_out(x2, t2, keep + t1)
    batch = [c for c in t1 if c in t2 and c in keep]
    summed = [c for c in t1 if c in t2 and c not in keep]
    free1, free2 = [c for c in t1 if c not in t2], [c for c in t2 if c not in t1]
    size = {}
    for x, t in ((x1, t1), (x2, t2)):
        for c, n in zip(t, x.shape):
            if size.get(c, 1) not in (1, n) and n != 1:
                raise argument_error(f"einsum axis {c!r} has sizes {size[c]} and {n}")
            size[c] = max(size.get(c, 1), n)

    def group(x, t, order):
        x = transpose(x, [t.index(c) for c in order])
        return broadcast_to(x, [size[c] for c in order])

    def total(letters):
        return math.prod(size[c] for c in letters)

    left = group(x1, t1, batch + free1 + summed)
    right = group(x2, t2, batch + summed + free2)
    left = reshape(left, [size[c] for c in batch] + [total(free1), total(summed)])
    right = reshape(right, [size[c] for c in batch] + [total(summed), total(free2)])
    out = _matrix_product(left, right)
    letters = batch + free1 + free2
    return reshape(out, [size[c] for c in letters]), "".join(letters)


def einsum(subscripts, *operands, **kwargs):
    del kwargs
    operands = _wide(*_factors(*operands))
    if operands[0].dtype == "bool":
        operands = [cast(x, "int32") for x in operands]
    terms, result = _parse(subscripts, operands)
    for c in result:
        if result.count(c) > 1 or not any(c in t for t in terms):
            raise argument_error(
                f"einsum {subscripts!r}: the result has {c!r}, which "
                + ("it names twice" if result.count(c) > 1 else "no operand has")
            )
    pairs = [_diagonals(x, t) for x, t in zip(operands, terms)]
    x, term = pairs[0]
    for i, (y, other) in enumerate(pairs[1:], 2):
        later = "".join(t for _, t in pairs[i:])
        x, term = _contract(x, term, y, other, result + later)
    x, term = _sum_out(x, term, result)
    return transpose(x, [term.index(c) for c in result])
