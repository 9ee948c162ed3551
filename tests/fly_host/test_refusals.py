"""The texts that Python and C libraries share, word by word: callers read them."""

from __future__ import annotations

import pytest
from fly_host import refusals
from fly_host.program import Scalar, Stream, Tensor

ARRAY = Tensor("A", "f32", ("n", 4, None), (None, None, 1), access="rw")


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        (Stream("s"), "a stream, the current one by default"),
        (Scalar("n", "i32", None), "i32"),
        (Scalar("n", "i32", 7), "i32, 7 by default"),
        (Scalar("b", "bool", True), "bool, true by default"),
        (Scalar("x", "f32", 1e-05), "f32, 1e-05 by default"),
        (Scalar("x", "f32", 0.10000000149011612), "f32, 0.1 by default"),
        (Scalar("x", "f32", 1234567.0), "f32, 1234567 by default"),
        (ARRAY, "f32[n,4,?], read and written"),
        (Tensor("A", "f16", (), (), access="r"), "f16[], read"),
        (Tensor("A", "bf16", (2,), (1,), access="w"), "bf16[2], written"),
    ],
)
def test_a_parameter(parameter, text):
    assert refusals.describe(parameter) == text


TEXTS = [
    (refusals.dtype("A", "f32", "f64"), "A must be f32, but the array is f64"),
    (
        refusals.rank("A", 2, 3, (1, 2, 3)),
        "A must have 2 dimensions, but the array has 3: shape (1, 2, 3)",
    ),
    (
        refusals.extent("A", 1, 4, (2, 5)),
        "extent 1 of A must be 4, but the array's shape is (2, 5)",
    ),
    (
        refusals.stride("A", True, 0, 4, 8),
        "A must be contiguous in C order: stride 0 must be 4 elements, but the array's is 8",
    ),
    (
        refusals.stride("A", False, 1, 2, 3),
        "A has fixed strides: stride 1 must be 2 elements, but the array's is 3",
    ),
    (
        refusals.multiple("A", "stride", 0, 16, 20),
        "A: stride 0 must be a multiple of 16 elements, but is 20",
    ),
    (
        refusals.multiple("A", "extent", 1, 4, 6),
        "A: extent 1 must be a multiple of 4, but is 6",
    ),
    (
        refusals.overlap("A", "written", (2, 2), (1, 1)),
        "A is written, but elements of the array overlap in memory: shape (2, 2), strides (1, 1)",
    ),
    (refusals.alignment("A"), "the elements of A are not aligned in memory"),
    (refusals.symbol("n", "A", 3, "B", 4), "extent n is 3 in A, but 4 in B"),
    (
        refusals.places("A", "on cuda:0", "B", "in host memory"),
        "A is on cuda:0, but B is in host memory",
    ),
    (refusals.scalar("n", 300, "i8"), "n=300 does not fit in i8"),
    (
        refusals.value("n // m", "division by zero"),
        "the host program can't be evaluated: n // m: division by zero",
    ),
    (refusals.DIVISION, "division by zero"),
    (refusals.WIDTH, "the value does not fit in 64 bits"),
    (refusals.shift(64), "a shift by 64"),
    (refusals.endless("f"), "a loop of f does not end"),
    (refusals.made_shape("B", (-1, 2), -2), "B would have the shape (-1, 2), -2 elements"),
    (
        refusals.made_strides("B", (2, 2), (2, 1), 3),
        "B: shape (2, 2) with strides (2, 1) does not fit 3 elements",
    ),
    (refusals.no_items("k", "0"), "k: a block of 0 work items"),
    (
        refusals.many_items("k", "64×32", 2048, 1024),
        "k: a block of 64×32 is 2048 work items, but the kernel was compiled for at most 1024",
    ),
    (
        refusals.other_block("k", "64", "128"),
        "k: a block of 64, but the kernel was compiled for 128",
    ),
    (refusals.negative_grid("k", "-1"), "k: a grid of -1 workgroups"),
    (
        refusals.wide_grid("k", 65536, "y", "sm_90a", 65535),
        "k: 65536 workgroups in y; sm_90a has 65535",
    ),
    (
        refusals.many_workgroups("k", 9, 512, "x", 4294967295),
        "k: 9 workgroups of 512 in x are more than 4294967295 work items",
    ),
    (
        refusals.shared("k", 16, 65536, "gfx942", 65536),
        "k: 16 bytes of static and 65536 of dynamic LDS; gfx942 has 65536",
    ),
    (refusals.narrow(300, 8, "k"), "300 does not fit in a 8-bit argument of k"),
]


@pytest.mark.parametrize(("made", "text"), TEXTS)
def test_a_text(made, text):
    assert made == text


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((64, 1, 1), "64"),
        ((8, 8, 1), "8×8"),
        ((8, 1, 2), "8×1×2"),
        ((1, 1, 1), "1"),
        ((1, 2, 1), "1×2"),
    ],
)
def test_sizes(sizes, text):
    assert refusals.show(sizes) == text
