"""Layouts of NVIDIA's instructions, compared with the formulas of the PTX ISA."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from fly_dialect import algebra
from fly_dialect.atoms.interface import MmaOp
from fly_dialect.atoms.specs import CopyAtomSpec
from fly_dialect.layouts.int_tuple import static_value
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.type_text import parse_type

Place = tuple[int, int]  # row and column of a matrix


def at(layout: Layout, thread: int, value: int) -> int:
    found = static_value(algebra.crd2idx((Int(thread), Int(value)), layout))
    assert found is not None
    return found


def matrix_op(text: str) -> MmaOp:
    op = parse_type(f"!fly_nvvm.{text}")
    assert isinstance(op, MmaOp)
    return op


def places(layout: Layout, rows: int, threads: int, values: int) -> list[list[Place]]:
    """(row, column) of each thread's values; positions count with rows fastest."""
    return [[divmod(at(layout, t, v), rows)[::-1] for v in range(values)] for t in range(threads)]


def compare(
    layout: Layout, rows: int, threads: int, values: int, rule: Callable[[int, int], Place]
) -> None:
    found = places(layout, rows, threads, values)
    assert found == [[rule(t, v) for v in range(values)] for t in range(threads)]


# PTX ISA, "Matrix Fragments for mma.m16n8k16", "…m16n8k8", "…m16n8k32": groupID is lane >> 2,
# threadID_in_group is lane % 4.
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_mma_sync_of_16_bits(element: str) -> None:
    op = matrix_op(f"sm80.mma<16x8x16, ({element}, {element}) -> f32>")

    def a(lane: int, i: int) -> Place:
        row = lane // 4 if i in (0, 1, 4, 5) else lane // 4 + 8
        return row, lane % 4 * 2 + (i & 1) + (0 if i < 4 else 8)

    def b(lane: int, i: int) -> Place:  # column n, then k
        return lane // 4, lane % 4 * 2 + (i & 1) + (0 if i < 2 else 8)

    def c(lane: int, i: int) -> Place:
        return lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)

    compare(op.thr_val_layout_a, 16, 32, 8, a)
    compare(op.thr_val_layout_b, 8, 32, 4, b)
    compare(op.thr_val_layout_c, 16, 32, 4, c)


def test_mma_sync_of_tf32() -> None:
    op = matrix_op("sm80.mma<16x8x8, (f32, f32) -> f32>")
    compare(
        op.thr_val_layout_a,
        16,
        32,
        4,
        lambda lane, i: (lane // 4 + 8 * (i & 1), lane % 4 + 4 * (i >> 1)),
    )
    compare(op.thr_val_layout_b, 8, 32, 2, lambda lane, i: (lane // 4, lane % 4 + 4 * i))


@pytest.mark.parametrize("types", ["(i8, i8) -> i32", "(f8E4M3FN, f8E5M2) -> f32"])
def test_mma_sync_of_8_bits(types: str) -> None:
    op = matrix_op(f"sm80.mma<16x8x32, {types}>")

    def a(lane: int, i: int) -> Place:
        row = lane // 4 if i < 4 or 8 <= i < 12 else lane // 4 + 8
        return row, lane % 4 * 4 + (i & 3) + (0 if i < 8 else 16)

    def b(lane: int, i: int) -> Place:
        return lane // 4, lane % 4 * 4 + (i & 3) + (0 if i < 4 else 16)

    compare(op.thr_val_layout_a, 16, 32, 16, a)
    compare(op.thr_val_layout_b, 8, 32, 8, b)


# PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", matrices D and A.
@pytest.mark.parametrize("n", [8, 64, 256])
def test_the_sums_of_wgmma(n: int) -> None:
    op = matrix_op(f"sm90.wgmma<64x{n}x16, (bf16, bf16) -> f32>")

    def d(thread: int, i: int) -> Place:
        row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
        return row, 8 * (i // 4) + thread % 4 * 2 + i % 2

    compare(op.thr_val_layout_c, 64, 128, n // 2, d)


def test_a_of_wgmma_in_registers_lies_as_its_sums() -> None:
    op = matrix_op("sm90.wgmma_rs<64x64x16, (f16, f16) -> f32>")
    sums = matrix_op("sm90.wgmma<64x16x16, (f16, f16) -> f32>")
    one = places(op.thr_val_layout_a, 64, 128, 8)
    assert one == places(sums.thr_val_layout_c, 64, 128, 8)
    assert (op.IN_SHARED, sums.IN_SHARED) == (("b",), ("a", "b"))


def test_all_threads_of_wgmma_see_the_tiles_in_shared_memory() -> None:
    op = matrix_op("sm90.wgmma<64x32x32, (f8E4M3FN, f8E5M2) -> f32>")
    first = [at(op.thr_val_layout_b, 0, v) for v in range(32 * 32)]
    assert first == list(range(32 * 32))
    assert [at(op.thr_val_layout_b, 127, v) for v in range(32 * 32)] == first


# PTX ISA, "ldmatrix": thread 8·i + r has the address of row r of matrix i, and gets of each matrix
# the pair lane % 4 of row lane / 4; with .trans rows and columns are exchanged.
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("name", ["sm75.ldmatrix", "sm90.stmatrix"])
def test_copies_of_matrices(name: str, count: int, trans: bool) -> None:
    text = f"x{count}, trans" if trans else f"x{count}"
    atom = parse_type(f"!fly.copy_atom<!fly_nvvm.{name}<{text}>, 16>")
    assert isinstance(atom, CopyAtomSpec)
    rows, registers = atom.thr_val_layout_src, atom.thr_val_layout_dst
    if name.endswith("stmatrix"):
        rows, registers = registers, rows
    for lane in range(8 * count):
        assert [at(rows, lane, v) for v in range(8)] == [8 * lane + v for v in range(8)]
    for lane in range(32):
        for v in range(2 * count):
            matrix, which = divmod(v, 2)
            row, column = lane // 4, lane % 4 * 2 + which
            row, column = (column, row) if trans else (row, column)
            assert at(registers, lane, v) == 64 * matrix + 8 * row + column


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sm90.wgmma<64x12x16, (f16, f16) -> f32>", "unsupported wgmma configuration: 64x12x16"),
        ("sm90.wgmma<64x64x16, (f32, f32) -> f32>", "unsupported wgmma configuration"),
        ("sm80.mma<16x8x8, (f16, f16) -> f32>", "the shapes of (f16, f16) -> f32 are 16x8x16"),
        ("sm75.ldmatrix<x3>", "a warp copies 1, 2 or 4 matrices at once, not 3"),
        ("sm80.cp_async<96>", "cp.async copies 32, 64 or 128 bits, not 96"),
    ],
)
def test_forms_that_do_not_exist(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_type(f"!fly_nvvm.{text}")
