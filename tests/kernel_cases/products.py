"""Calls of matrix products."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from fly import kernels
from kernel_cases.case import Case
from kernel_cases.choice import FLOATS, SMALL_FLOATS, Choice

FLOAT8 = {
    "gfx942": (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    "gfx950": (torch.float8_e4m3fn, torch.float8_e5m2),
    "gfx1201": (torch.float8_e4m3fn, torch.float8_e5m2),
}
ACTIVATIONS = (None, None, "relu", "gelu", "silu")


def wide(x: Any) -> Any:
    """A tensor in the type of sums."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def activated(x: Any, activation: str | None) -> Any:
    return x if activation is None else getattr(F, activation)(x)


def matmul(choice: Choice) -> Case:
    dtype = choice.one(FLOATS)
    m, n, k = (choice.extent(150) for _ in range(3))
    batch = [choice.whole(0, 3) for _ in range(choice.one((0, 0, 1, 2)))]
    shapes = []
    for rows, columns in ((m, k), (k, n)):
        own = [1 if choice.chance(0.3) else one for one in batch[choice.whole(0, len(batch)) :]]
        shapes.append([*own, rows, columns])
    if choice.chance(0.1):
        shapes[0] = [k]
    if choice.chance(0.1):
        shapes[1] = [k]
    operands = [choice.normal(shape, dtype, 1.0) for shape in shapes]
    shape = torch.matmul(*(torch.zeros(one) for one in shapes)).shape
    columns = shapes[1][-1] if len(shapes[1]) > 1 else 1
    bias = choice.chance(0.3)
    addend = choice.chance(0.3)
    if bias:
        operands.append(choice.normal([columns], choice.one((dtype, torch.float32)), 1.0))
    if addend:
        some = [1 if choice.chance(0.3) else one for one in shape]
        operands.append(choice.normal(some, choice.one((dtype, torch.float32)), 1.0))
    activation = choice.one(ACTIVATIONS)
    alpha, beta = choice.one((1.0, 0.5)), choice.one((1.0, -2.0))
    split, out = choice.one((None, None, 1, 2, 5)), choice.one((None, None, torch.float32))

    def parts(given: Any) -> tuple[Any, ...]:
        a, b, *more = given
        own_bias = more.pop(0) if bias else None
        return a, b, own_bias, more.pop(0) if addend else None

    def call(*given: Any) -> Any:
        import numpy as np

        kind = out if out is None or isinstance(given[0], torch.Tensor) else np.float32
        options = {"activation": activation, "alpha": alpha, "beta": beta, "split_k": split}
        return kernels.matmul(*parts(given), out_dtype=kind, **options)

    def exact(*given: Any) -> Any:
        a, b, own_bias, c = parts(given)
        made = alpha * (wide(a) @ wide(b))
        if c is not None:
            made = made + beta * wide(c)
        if own_bias is not None:
            made = made + (wide(own_bias) if len(shapes[1]) > 1 else wide(own_bias)[0])
        return activated(made, activation).to(out if a.dtype != torch.float64 and out else a.dtype)

    text = f"matmul({activation}, {alpha}, {beta}, split_k={split}, out_dtype={out}, bias={bias})"
    differentiable = [*range(len(operands))]
    options = {"roundings": 8.0, "same_type": False}
    return Case(call, exact, operands, text, differentiable=differentiable, options=options)


def eight_bits(choice: Choice, target: str) -> Case:
    """Products of integers and floats of 8 bits, whose sums are exact."""
    dtype = choice.one((torch.int8, *FLOAT8.get(target, ())))
    m, n, k = (choice.extent(150) for _ in range(3))
    exact = [choice.integers(one, torch.int8, -8, 8) for one in ((m, k), (k, n))]
    operands = [choice.placed(one.contiguous().to(torch.float32).to(dtype)) for one in exact]
    shuffled = choice.chance(0.4)

    def call(a: Any, b: Any) -> Any:
        return (
            kernels.matmul_preshuffled(a, kernels.preshuffle(b), n)
            if shuffled
            else kernels.matmul(a, b)
        )

    def check(found: Any, given: Any) -> None:
        a, b = (one.double() for one in given)
        torch.testing.assert_close(found.double(), a @ b, rtol=0, atol=0)

    text = "preshuffled of 8 bits" if shuffled else "matmul of 8 bits"
    return Case(call, call, operands, text, check)


def preshuffled(choice: Choice) -> Case:
    dtype, activation = choice.one(FLOATS), choice.one(ACTIVATIONS)
    outer = [choice.extent(40) for _ in range(choice.whole(0, 2))]
    k, n, bias = choice.extent(300), choice.extent(200), choice.chance(0.4)
    operands = [choice.normal([*outer, k], dtype, 1.0), choice.normal([k, n], dtype, 1.0)]
    operands += [choice.normal([n], choice.one((dtype, torch.float32)), 1.0)] if bias else []
    plain, is_ready = operands[1], choice.chance(0.4)
    if is_ready:  # shuffled before, and anywhere in memory
        operands[1] = choice.placed(kernels.preshuffle(plain))

    def call(a: Any, b: Any, *more: Any) -> Any:
        b = b if is_ready else kernels.preshuffle(b)
        return kernels.matmul_preshuffled(a, b, n, *more, activation=activation)

    def exact(a: Any, b: Any, bias: Any = None) -> Any:
        made = wide(a) @ wide(plain.to(a.dtype))
        made = made if bias is None else made + wide(bias)
        return activated(made, activation).to(a.dtype)

    text = f"matmul_preshuffled({activation})"
    return Case(call, exact, operands, text, options={"roundings": 8.0})


def grouped(choice: Choice) -> Case:
    dtype, activation = choice.one(FLOATS), choice.one(ACTIVATIONS)
    rows, groups = choice.extent(200), choice.whole(1, 9)
    k, n = choice.extent(100), choice.extent(150)
    sizes = choice.split(rows, groups)
    ends = torch.tensor(sizes).cumsum(0).int()
    operands = [
        choice.normal([rows, k], dtype, 1.0),
        choice.normal([groups, k, n], dtype, 1.0),
        choice.placed(ends),
    ]

    def exact(a: Any, b: Any, ends: Any) -> Any:
        parts = [wide(part) @ wide(one) for part, one in zip(a.split(sizes), b, strict=True)]
        return activated(torch.cat(parts), activation).to(a.dtype)

    return Case(
        lambda a, b, ends: kernels.grouped_matmul(a, b, ends, activation=activation),
        exact,
        operands,
        f"grouped_matmul({activation}, {sizes})",
        differentiable=[0, 1],
        options={"roundings": 8.0},
    )


def route(choice: Choice) -> Case:
    tokens, experts = choice.extent(70), choice.extent(300, 1)
    k, dtype = choice.whole(1, min(experts, 10)), choice.one(SMALL_FLOATS)
    logits = choice.normal([tokens, experts], dtype)

    def check(found: Any, given: Any) -> None:
        weights, chosen = found
        best, places = given[0].double().sort(dim=1, descending=True, stable=True)
        assert torch.equal(chosen.long(), places[:, :k])
        torch.testing.assert_close(weights.double(), best[:, :k].softmax(1), rtol=1e-5, atol=1e-6)

    return Case(lambda x: kernels.moe_route(x, k), lambda x: x, [logits], f"moe_route({k})", check)


def mixture(choice: Choice) -> Case:
    tokens, d, h = choice.extent(40), choice.extent(70, 1), choice.extent(70, 1)
    experts = choice.whole(1, 20)
    k = choice.whole(1, min(3, experts))
    shapes = ([tokens, d], [d, experts], [experts, d, h], [experts, h, d])
    operands = [choice.normal(one, torch.float32, 0.5) for one in shapes]

    def exact(x: Any, gate: Any, w1: Any, w2: Any) -> Any:
        logits, places = (x @ gate).sort(dim=1, descending=True, stable=True)
        best, chosen = logits[:, :k], places[:, :k]
        weights = torch.zeros(tokens, experts, dtype=x.dtype).scatter(1, chosen, best.softmax(1))
        hidden = F.silu(torch.einsum("td,edh->teh", x, w1))
        return torch.einsum("teh,ehd,te->td", hidden, w2, weights)

    return Case(
        lambda *given: kernels.moe(*given, k),
        exact,
        operands,
        f"moe({k})",
        differentiable=[0, 1, 2, 3],
        options={"roundings": 16.0},
    )


def sort(choice: Choice) -> Case:
    shape = [choice.extent(90) for _ in range(choice.whole(1, 2))]
    count = choice.one((1, 2, 8, 64, 1000))
    experts = choice.integers(shape, torch.int32, 0, choice.one((count - 1, 0)))

    def check(found: Any, given: Any) -> None:
        flat = given[0].reshape(-1)
        order = flat.argsort(stable=True)
        assert torch.equal(found[0].long(), order)
        assert torch.equal(found[1].long(), order.argsort())
        assert torch.equal(found[2].long(), torch.bincount(flat, minlength=count).cumsum(0))

    return Case(
        lambda x: kernels.moe_sort(x, count), lambda x: x, [experts], f"moe_sort({count})", check
    )


def convolution(choice: Choice) -> Case:
    dtype, groups = choice.one(FLOATS), choice.one((1, 1, 1, 2, 4))
    channels, outputs = groups * choice.whole(1, 12), groups * choice.whole(1, 12)
    window = [choice.whole(1, 4) for _ in range(2)]
    stride, dilation = ([choice.whole(1, 3) for _ in range(2)] for _ in range(2))
    padding = [choice.whole(0, 3) for _ in range(2)]
    image = [
        max(1, dilation[i] * (window[i] - 1) + 1 - 2 * padding[i]) + choice.whole(0, 9)
        for i in range(2)
    ]
    x = choice.normal([choice.whole(0, 2), channels, *image], dtype, 1.0)
    if choice.chance(0.4):
        x = x.contiguous(memory_format=torch.channels_last)
    weight = choice.normal([outputs, channels // groups, *window], dtype, 1.0)
    bias = [choice.normal([outputs], dtype, 1.0)] if choice.chance(0.5) else []
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}

    def exact(x: Any, weight: Any, bias: Any = None) -> Any:
        more = None if bias is None else wide(bias)
        return F.conv2d(wide(x), wide(weight), more, **options).to(x.dtype)

    operands = [x, weight, *bias]
    return Case(
        lambda *given: kernels.conv2d(*given, **options),
        exact,
        operands,
        f"conv2d({options})",
        differentiable=[*range(len(operands))],
        options={"roundings": 16.0},
    )
