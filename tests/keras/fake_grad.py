# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode differentiation over recorded nodes, for the test double of `tracefire._core`."""


def gradients(ops, tensor, outputs, sources, output_grads):
    """Vector-Jacobian product; None where a source does not influence any output."""
    order, seen = [], set()
    for out in outputs:
        _visit(out, order, seen)
    grads = {}
    for i, out in enumerate(outputs):
        seed = None if output_grads is None else output_grads[i]
        if seed is None:
            seed = ops.broadcast_to(tensor(1, out.dtype), shape=out.shape)
        grads[id(out)] = seed if id(out) not in grads else ops.add(grads[id(out)], seed)
    for node in reversed(order):
        out_grads = [grads.get(id(o)) for o in node.outputs]
        if node.op not in RULES or all(g is None for g in out_grads):
            continue
        rule = RULES[node.op]
        in_grads = rule(_Context(ops, tensor, node), *out_grads)
        for value, grad in zip(node.inputs, in_grads):
            if grad is not None and value.dtype.lstrip("b").startswith("float"):
                old = grads.get(id(value))
                grads[id(value)] = grad if old is None else ops.add(old, grad)
    return [grads.get(id(s)) for s in sources]


def _visit(value, order, seen):
    stack = [(value._node, False)]
    while stack:
        node, done = stack.pop()
        if node is None:
            continue
        if done:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        stack.extend((i._node, False) for i in node.inputs)


class _Context:
    def __init__(self, ops, tensor, node):
        self.ops, self.node, self._tensor = ops, node, tensor
        self.x, self.y, self.attrs = node.inputs, node.outputs, node.attrs

    def const(self, value, like):
        return self._tensor(value, like.dtype)

    def fit(self, grad, like):
        """Sums `grad` over the axes along which `like` was broadcast."""
        extra = len(grad.shape) - len(like.shape)
        axes = list(range(extra)) + [
            i + extra for i, n in enumerate(like.shape) if n == 1 and grad.shape[i + extra] != 1
        ]
        if axes:
            grad = self.ops.reduce_sum(grad, axes=axes, keepdims=False)
        return grad if grad.shape == like.shape else self.ops.reshape(grad, shape=like.shape)

    def spread(self, value):
        """A reduction's result, broadcast back over the reduced axes."""
        shape, axes = self.x[0].shape, self.attrs.get("axes")
        axes = range(len(shape)) if axes is None else [a % len(shape) for a in axes]
        kept = [1 if i in axes else n for i, n in enumerate(shape)]
        return self.ops.broadcast_to(self.ops.reshape(value, shape=kept), shape=shape)


def _add(c, g):
    return c.fit(g, c.x[0]), c.fit(g, c.x[1])


def _sub(c, g):
    return c.fit(g, c.x[0]), c.fit(c.ops.neg(g), c.x[1])


def _mul(c, g):
    a, b = c.x
    return c.fit(c.ops.mul(g, b), a), c.fit(c.ops.mul(g, a), b)


def _div(c, g):
    a, b = c.x
    ga = c.ops.div(g, b)
    return c.fit(ga, a), c.fit(c.ops.neg(c.ops.mul(ga, c.ops.div(a, b))), b)


def _pow(c, g):
    a, b = c.x
    o = c.ops
    ga = o.mul(g, o.mul(b, o.pow(a, o.sub(b, c.const(1, b)))))
    positive = o.greater(a, c.const(0, a))
    log = o.log(o.select(positive, a, o.broadcast_to(c.const(1, a), shape=a.shape)))
    return c.fit(ga, a), c.fit(o.mul(g, o.mul(c.y[0], log)), b)


def _extremum(c, g):
    """Ties share the gradient."""
    a, b = c.x
    o = c.ops
    half = c.const(0.5, g)
    wins = (o.greater if c.node.op == "maximum" else o.less)(a, b)
    share = o.add(
        o.cast(wins, dtype=g.dtype), o.mul(half, o.cast(o.equal(a, b), dtype=g.dtype))
    )
    ga = o.mul(g, share)
    return c.fit(ga, a), c.fit(o.sub(g, ga), b)


def _select(c, g):
    o = c.ops
    zero = o.broadcast_to(c.const(0, g), shape=g.shape)
    cond = c.x[0]
    return None, c.fit(o.select(cond, g, zero), c.x[1]), c.fit(o.select(cond, zero, g), c.x[2])


def _unary(derivative):
    def rule(c, g):
        return (c.ops.mul(g, derivative(c, c.x[0], c.y[0], c.ops)),)

    return rule


def _slice_grad(c, g):
    starts, limits = c.attrs["starts"], c.attrs["limits"]
    strides = c.attrs.get("strides") or [1] * len(starts)
    shape = c.x[0].shape
    high = [
        n - a - ((m - 1) * s + 1 if m else 0)
        for n, a, m, s in zip(shape, starts, g.shape, strides)
    ]
    del limits
    return (c.ops.pad(g, low=list(starts), high=high, interior=[s - 1 for s in strides]),)


def _pad_grad(c, g):
    low, shape = c.attrs["low"], c.x[0].shape
    interior = c.attrs.get("interior") or [0] * len(shape)
    limits = [a + max((n - 1) * (i + 1) + 1, 0) for a, n, i in zip(low, shape, interior)]
    strides = [i + 1 for i in interior]
    return (c.ops.slice(g, starts=list(low), limits=limits, strides=strides),)


def _concat_grad(c, g):
    axis, at, out = c.attrs["axis"] % len(g.shape), 0, []
    for x in c.x:
        starts = [at if i == axis else 0 for i in range(len(g.shape))]
        at += x.shape[axis]
        limits = [at if i == axis else n for i, n in enumerate(g.shape)]
        out.append(c.ops.slice(g, starts=starts, limits=limits))
    return out


def _gather_grad(c, g):
    x, idx = c.x
    o, axis = c.ops, c.attrs["axis"] % len(x.shape)
    n = 1
    for d in idx.shape:
        n *= d
    lead, tail = x.shape[:axis], x.shape[axis + 1 :]
    r, k = len(g.shape), len(idx.shape)
    perm = list(range(axis, axis + k)) + list(range(axis)) + list(range(axis + k, r))
    updates = o.reshape(o.transpose(g, perm=perm), shape=(n,) + lead + tail)
    zero = o.broadcast_to(c.const(0, g), shape=(x.shape[axis],) + lead + tail)
    out = o.scatter(zero, o.reshape(idx, shape=(n, 1)), updates, reduction="add")
    back = list(range(1, axis + 1)) + [0] + list(range(axis + 1, len(x.shape)))
    return o.transpose(out, perm=back), None


def _extreme_reduce(c, g):
    o = c.ops
    hits = o.cast(o.equal(c.x[0], c.spread(c.y[0])), dtype=g.dtype)
    count = o.reduce_sum(hits, axes=c.attrs.get("axes"), keepdims=c.attrs.get("keepdims", False))
    return (o.mul(hits, c.spread(o.div(g, count))),)


def _reduce_mean(c, g):
    n = 1
    for a, b in zip(c.x[0].shape, c.spread(g).shape):
        n *= a
    m = 1
    for d in g.shape:
        m *= d
    return (c.ops.div(c.spread(g), c.const(n / max(m, 1), g)),)


def _reduce_prod(c, g):
    return (c.ops.div(c.ops.mul(c.spread(g), c.spread(c.y[0])), c.x[0]),)


def _top_k_grad(c, g, _):
    x, o = c.x[0], c.ops
    hot = o.one_hot(c.y[1], depth=x.shape[-1], axis=-1, dtype=g.dtype)
    g = o.reshape(g, shape=tuple(g.shape) + (1,))
    return (o.reduce_sum(o.mul(hot, g), axes=[len(x.shape) - 1], keepdims=False),)


def _matmul_grad(c, g):
    a, b = c.x
    o = c.ops
    ta, tb = c.attrs.get("transpose_a", False), c.attrs.get("transpose_b", False)
    one_d = [len(a.shape) == 1, len(b.shape) == 1]
    if any(one_d):
        raise NotImplementedError("matmul rows take matrices; the caller adds the axis")
    if ta:
        ga = o.matmul(b, g, transpose_a=tb, transpose_b=True)
    else:
        ga = o.matmul(g, b, transpose_b=not tb)
    if tb:
        gb = o.matmul(g, a, transpose_a=True, transpose_b=ta)
    else:
        gb = o.matmul(a, g, transpose_a=not ta)
    return c.fit(ga, a), c.fit(gb, b)


def _softmax_grad(c, g):
    o, y, axis = c.ops, c.y[0], c.attrs.get("axis", -1)
    gy = o.mul(g, y)
    return (o.sub(gy, o.mul(y, o.reduce_sum(gy, axes=[axis], keepdims=True))),)


def _log_softmax_grad(c, g):
    o, axis = c.ops, c.attrs.get("axis", -1)
    return (o.sub(g, o.mul(o.exp(c.y[0]), o.reduce_sum(g, axes=[axis], keepdims=True))),)


def _xent_grad(c, g):
    o, (logits, labels) = c.ops, c.x
    hot = o.one_hot(labels, depth=logits.shape[-1], axis=-1, dtype=logits.dtype)
    diff = o.sub(o.softmax(logits, axis=-1), hot)
    return o.mul(diff, o.reshape(g, shape=tuple(g.shape) + (1,))), None


def _inverse(perm):
    out = [0] * len(perm)
    for i, p in enumerate(perm):
        out[p] = i
    return out


def _cumsum_grad(c, g):
    a = c.attrs
    reverse = not a.get("reverse", False)
    return (c.ops.cumsum(g, axis=a["axis"], exclusive=a.get("exclusive", False), reverse=reverse),)


def _gather_along_grad(c, g):
    x, idx = c.x
    o, axis = c.ops, c.attrs["axis"] % len(x.shape)
    hot = o.one_hot(idx, depth=x.shape[axis], axis=axis, dtype=g.dtype)
    g = o.reshape(g, shape=g.shape[:axis] + (1,) + g.shape[axis:])
    return o.reduce_sum(o.mul(hot, g), axes=[axis + 1], keepdims=False), None


def _scatter_grad(c, g):
    operand, indices, updates = c.x
    o = c.ops
    if c.attrs.get("reduction", "update") not in ("add", "update"):
        raise NotImplementedError("gradient of scatter with " + c.attrs["reduction"])
    k = indices.shape[-1]
    flat, tail, rows = 1, operand.shape[k:], None
    for axis in range(k):
        part = o.slice(indices, starts=[0, axis], limits=[indices.shape[0], axis + 1])
        size = c.const(operand.shape[axis], part)
        rows = part if rows is None else o.add(o.mul(rows, size), part)
        flat *= operand.shape[axis]
    table = o.reshape(g, shape=(flat,) + tuple(tail))
    gu = o.gather(table, o.reshape(rows, shape=(indices.shape[0],)), axis=0)
    if c.attrs.get("reduction", "update") == "add":
        return g, None, gu
    zero = o.broadcast_to(c.const(0, gu), shape=gu.shape)
    return o.scatter(g, indices, zero, reduction="update"), None, gu


RULES = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "pow": _pow,
    "maximum": _extremum, "minimum": _extremum, "select": _select,
    "fma": lambda c, g: (
        c.fit(c.ops.mul(g, c.x[1]), c.x[0]),
        c.fit(c.ops.mul(g, c.x[0]), c.x[1]),
        c.fit(g, c.x[2]),
    ),
    "neg": lambda c, g: (c.ops.neg(g),),
    "abs": _unary(lambda c, x, y, o: o.sign(x)),
    "exp": _unary(lambda c, x, y, o: y),
    "expm1": _unary(lambda c, x, y, o: o.add(y, c.const(1, y))),
    "log": lambda c, g: (c.ops.div(g, c.x[0]),),
    "log1p": lambda c, g: (c.ops.div(g, c.ops.add(c.x[0], c.const(1, g))),),
    "sqrt": lambda c, g: (c.ops.div(g, c.ops.mul(c.const(2, g), c.y[0])),),
    "rsqrt": _unary(lambda c, x, y, o: o.mul(c.const(-0.5, y), o.div(y, x))),
    "square": _unary(lambda c, x, y, o: o.mul(c.const(2, x), x)),
    "sin": _unary(lambda c, x, y, o: o.cos(x)),
    "cos": _unary(lambda c, x, y, o: o.neg(o.sin(x))),
    "tan": _unary(lambda c, x, y, o: o.add(o.square(y), c.const(1, y))),
    "sinh": _unary(lambda c, x, y, o: o.cosh(x)),
    "cosh": _unary(lambda c, x, y, o: o.sinh(x)),
    "asin": _unary(lambda c, x, y, o: o.rsqrt(o.sub(c.const(1, x), o.square(x)))),
    "acos": _unary(lambda c, x, y, o: o.neg(o.rsqrt(o.sub(c.const(1, x), o.square(x))))),
    "asinh": _unary(lambda c, x, y, o: o.rsqrt(o.add(o.square(x), c.const(1, x)))),
    "acosh": _unary(lambda c, x, y, o: o.rsqrt(o.sub(o.square(x), c.const(1, x)))),
    "atanh": lambda c, g: (c.ops.div(g, c.ops.sub(c.const(1, g), c.ops.square(c.x[0]))),),
    "tanh": _unary(lambda c, x, y, o: o.sub(c.const(1, y), o.square(y))),
    "atan": lambda c, g: (c.ops.div(g, c.ops.add(c.ops.square(c.x[0]), c.const(1, g))),),
    "sigmoid": _unary(lambda c, x, y, o: o.mul(y, o.sub(c.const(1, y), y))),
    "softplus": _unary(lambda c, x, y, o: o.sigmoid(x)),
    "relu": _unary(lambda c, x, y, o: o.cast(o.greater(x, c.const(0, x)), dtype=x.dtype)),
    "erf": _unary(
        lambda c, x, y, o: o.mul(c.const(1.1283791670955126, x), o.exp(o.neg(o.square(x))))
    ),
    "cast": lambda c, g: (c.ops.cast(g, dtype=c.x[0].dtype),),
    "broadcast_to": lambda c, g: (c.fit(g, c.x[0]),),
    "reshape": lambda c, g: (c.ops.reshape(g, shape=c.x[0].shape),),
    "transpose": lambda c, g: (c.ops.transpose(g, perm=_inverse(c.attrs["perm"])),),
    "slice": _slice_grad, "pad": _pad_grad, "concat": _concat_grad,
    "reverse": lambda c, g: (c.ops.reverse(g, axes=c.attrs["axes"]),),
    "gather": _gather_grad, "gather_along": _gather_along_grad, "scatter": _scatter_grad,
    "reduce_sum": lambda c, g: (c.spread(g),),
    "reduce_mean": _reduce_mean, "reduce_prod": _reduce_prod,
    "reduce_max": _extreme_reduce, "reduce_min": _extreme_reduce,
    "cumsum": _cumsum_grad, "top_k": _top_k_grad, "matmul": _matmul_grad,
    "softmax": _softmax_grad, "log_softmax": _log_softmax_grad,
    "sparse_softmax_cross_entropy": _xent_grad,
}  # fmt: skip
