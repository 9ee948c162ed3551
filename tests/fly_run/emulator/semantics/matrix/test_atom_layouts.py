"""The layouts of matrix atoms against the instructions: small whole numbers are put into registers
as an atom's `thr_val_layout_a`, `_b` and `_c` say, the emulator executes the instruction, and what
`thr_val_layout_c` finds in its registers must be A·B + C.

Where AMD's own tables are written down (`test_matrix_layout.LAYOUTS`), the layouts must be these:
a product alone can't see K in another order, if A and B have the same one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_support.matrix import LANES, execute, registers
from fly_dialect import algebra
from fly_dialect.atoms.amd import mfma, wmma
from fly_dialect.atoms.matrix import WaveMma
from fly_dialect.layouts.layout import Layout
from fly_target.registry import with_trait
from oracle.launching import build
from oracle.launching.device import on_emulator
from oracle.probes import try_wmma

from . import test_matrix_layout as tables
from .test_matrix_narrow import CODES, bits_of

RNG = np.random.default_rng(4)
# Element types as the other tests name them.
NAMES = {
    "f8E4M3FNUZ": "fp8 fnuz",
    "f8E5M2FNUZ": "bf8 fnuz",
    "f8E4M3FN": "fp8",
    "f8E5M2": "bf8",
    "f6E2M3FN": "fp6",
    "f6E3M2FN": "bf6",
    "f4E2M1FN": "fp4",
}
WIDTHS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i8": 8, "i4": 4, "i32": 32} | {
    name: int(name[1]) for name in NAMES
}


KINDS = {"f32": np.float32, "i32": np.int32, "f64": np.float64}


def offsets(layout: Layout) -> np.ndarray:
    """[thread, value]: the layout's offsets, counted with the first of the nested modes fastest."""

    def along(shape, stride) -> np.ndarray:
        total = np.zeros(1, int)
        for extent, step in zip(algebra.flatten(shape), algebra.flatten(stride), strict=True):
            steps = np.arange(extent.value) * step.value
            total = (steps[:, None] + total[None, :]).ravel()
        return total

    threads, values = (along(layout.shape[i], layout.stride[i]) for i in (0, 1))
    return threads[:, None] + values[None, :]


def held(layout: Layout, matrix: np.ndarray) -> np.ndarray:
    """[thread, value] of a matrix [row, column] whose offset is row + rows·column."""
    return matrix.T.ravel()[offsets(layout)]


def found(layout: Layout, per_thread: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """[row, column] from [thread, value]. Every element is there, and only once."""
    places = offsets(layout).ravel()
    assert np.array_equal(np.sort(places), np.arange(rows * columns))
    flat = np.zeros(rows * columns)
    flat[places] = per_thread.ravel()
    return flat.reshape(columns, rows).T


def words(per_thread: np.ndarray, element: str) -> np.ndarray:
    """[register, thread]: values side by side, low bits first."""
    width = WIDTHS[element]
    if element in KINDS:
        rows = np.ascontiguousarray(per_thread.astype(KINDS[element])).view(np.uint32)
        return rows.reshape(len(per_thread), -1).T
    if element in ("i8", "i4"):
        raw = per_thread.astype(np.int64).astype(np.uint64) & np.uint64((1 << width) - 1)
    else:
        raw = bits_of(per_thread, NAMES.get(element, element))
    whole = [sum(int(bits) << width * i for i, bits in enumerate(row)) for row in raw]
    count = per_thread.shape[1] * width // 32
    rows = [[value >> 32 * register & 0xFFFFFFFF for value in whole] for register in range(count)]
    return np.array(rows, np.uint32)


def matrices(op: WaveMma) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A [m, k], B [n, k] and C [m, n] of numbers that all formats have."""
    some = np.array([0.0, 1.0, 2.0, 3.0])
    if op.a not in ("i4", "i8"):
        some = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 3.0])
    m, n, k = op.shape_mnk
    return RNG.choice(some, (m, k)), RNG.choice(some, (n, k)), RNG.integers(-8, 8, (m, n))


def mnemonic(op: mfma.Mfma, target: str) -> str:
    """The assembler's name of a form."""
    result = op.acc
    if target == "gfx90a":
        late = "_1k" if op.a == "bf16" and op.k * op.m in (256,) else ""
        return f"v_mfma_{result}_{op.shape}{op.a}{late}"
    if op.a == "f32" and op.k * op.m == 128:
        return f"v_mfma_{result}_{op.shape}_xf32"
    short = {"f8E4M3FNUZ": "fp8", "f8E5M2FNUZ": "bf8", "f8E4M3FN": "fp8", "f8E5M2": "bf8"}
    kinds = [short.get(element, element) for element in (op.a, op.b)]
    return f"v_mfma_{result}_{op.shape}_{'_'.join(kinds if op.a in short else kinds[:1])}"


def span(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def multiplied(op: WaveMma, instruction: str, target: str, modifiers: str = "", scaled: Any = None):
    """What the atom's layouts find after the emulator, and A·B + C. `scaled` are the words of v200
    and v201 and what they make of A's and B's elements."""
    a, b, c = matrices(op)
    rows_a = words(held(op.thr_val_layout_a, a), op.a)
    rows_b = words(held(op.thr_val_layout_b, b), op.b)
    rows_c = words(held(op.thr_val_layout_c, c), op.acc)
    count = len(rows_c)
    text = (
        f"{instruction} {span(64, count)}, {span(0, len(rows_a))}, "
        f"{span(16, len(rows_b))}, {span(64, count)}{modifiers}"
    )
    loaded = registers("v", 0, len(rows_a)) + registers("v", 16, len(rows_b))
    loaded += registers("v", 64, count)
    values = np.concatenate([rows_a, rows_b, rows_c])
    if scaled is not None:
        loaded += registers("v", 200, 2)
        values = np.concatenate([values, scaled[0]])
        a, b = a * scaled[1][0], b * scaled[1][1]
    raw = execute(text, target, loaded, values, registers("v", 64, count))
    numbers = np.ascontiguousarray(raw.T).view(KINDS[op.acc])
    return found(op.thr_val_layout_c, numbers, op.m, op.n), a @ b.T + c


def mfma_cases(every: bool) -> list[tuple[mfma.Mfma, str]]:
    """Each form on all its targets, or on the last."""
    return [
        (mfma.Mfma(form.m, form.n, form.k, form.a, form.b, form.acc), target)
        for form in mfma.MFMA_FORMS
        for targets in (with_trait(*form.families),)
        for target in (targets if every else targets[-1:])
    ]


@pytest.mark.parametrize(("op", "target"), mfma_cases(every=False), ids=str)
def test_mfma(op: mfma.Mfma, target: str) -> None:
    got, wanted = multiplied(op, mnemonic(op, target), target)
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize(
    ("a", "b"), [("f8E4M3FN", "f8E5M2"), ("f4E2M1FN", "f8E5M2"), ("f6E3M2FN", "f4E2M1FN")]
)
@pytest.mark.parametrize(("mn", "k"), [(16, 128), (32, 64)])
def test_scaled_mfma(mn: int, k: int, a: str, b: str) -> None:
    """Thread t has the scale of row t mod mn and of 32 values from 32·(t div mn)."""
    op = mfma.MfmaScale(mn, mn, k, a, b, "f32", runs=2)
    exponents = RNG.integers(-2, 3, (2, mn, k // 32))
    thread = np.arange(LANES)
    scales = (exponents[:, thread % mn, thread // mn] + 127).astype(np.uint32)
    codes = f"cbsz:{CODES[NAMES[a]]} blgp:{CODES[NAMES[b]]}"
    modifiers = f", v200, v201 op_sel_hi:[0,0,0] {codes}"
    name = f"v_mfma_scale_f32_{op.shape}_f8f6f4"
    whole = np.repeat(2.0**exponents, 32, axis=2)
    got, wanted = multiplied(op, name, "gfx950", modifiers, (scales, whole))
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize(("op", "target"), mfma_cases(every=True), ids=str)
def test_mfma_of_the_tables(op: mfma.Mfma, target: str) -> None:
    """Row, k, and of D row and column, as AMD's tables have them."""
    count = len(offsets(op.thr_val_layout_a)[0])
    name = f"{op.m}x{op.n}{' f64' if op.acc == 'f64' else ''}"
    case = tables.Case(target, "", name, count, op.m * op.n // LANES, "")
    a, d = tables.places(case)
    assert np.array_equal(offsets(op.thr_val_layout_a), a[..., 0] + op.m * a[..., 1])
    assert np.array_equal(offsets(op.thr_val_layout_b), a[..., 0] + op.n * a[..., 1])
    assert np.array_equal(offsets(op.thr_val_layout_c), d[..., 0] + op.m * d[..., 1])


WMMA = [
    *((wmma.Gfx11Wmma, "gfx1100", form) for form in wmma.GFX11_FORMS),
    *((wmma.Gfx120xWmma, "gfx1201", form) for form in wmma.GFX120X_FORMS),
]


@pytest.mark.parametrize("target", try_wmma.MEASURED)
def test_wmma(target: str) -> None:
    """All forms in one launch: the probe's kernel executes every instruction of its list."""
    listed = [name for name, _ in try_wmma.instructions(target)]
    inputs = try_wmma.inputs(target, 7, whole=True)
    expected: dict[int, tuple[WaveMma, np.ndarray]] = {}
    for family, where, form in WMMA:
        if where != target:
            continue
        op = family(form.m, form.n, form.k, form.a, form.b, form.acc)
        kinds = [{"f8E4M3FN": "fp8", "f8E5M2": "bf8"}.get(one) for one in (op.a, op.b)]
        kind = f"{kinds[0]}_{kinds[1]}" if all(kinds) else op.a
        integer = op.a.replace("i", "iu", 1) if op.acc == "i32" else kind
        row = listed.index(f"{op.acc}_{op.shape}_{integer}")
        a, b, c = matrices(op)
        for first, held_words in (
            (0, words(held(op.thr_val_layout_c, c), op.acc)),
            (8, words(held(op.thr_val_layout_a, a), op.a)),
            (16, words(held(op.thr_val_layout_b, b), op.b)),
        ):
            inputs[row, :, first : first + len(held_words)] = held_words.T
        expected[row] = op, a @ b.T + c
    arguments = [inputs, np.zeros((*inputs.shape[:2], 8), np.uint32)]
    data = build.assemble(try_wmma.program(target), target)
    one = ((1, 1, 1), (try_wmma.LANES, 1, 1))
    result = on_emulator(data, "probe", *one, arguments).arguments[1]
    assert expected
    for row, (op, wanted) in expected.items():
        numbers = result[row].view(np.int32 if op.acc == "i32" else np.float32)
        got = found(op.thr_val_layout_c, numbers, op.m, op.n)
        # gfx1100's sums of floats are a few units of their grid off where signs differ.
        off = 2.0**-14 if target == "gfx1100" and op.acc == "f32" else 0
        np.testing.assert_allclose(got, wanted, rtol=0, atol=off, err_msg=str(op))
