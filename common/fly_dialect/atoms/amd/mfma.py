"""Matrix instructions of CDNA: MFMA, and MFMA with block scales (CDNA4).

A wave of 64 threads holds the tile. Source: the register layout tables in the CDNA3 and CDNA4 ISA
manuals, "Matrix Arithmetic Instructions". `tests/fly_dialect/test_atom_layouts.py` compares them
with the behavior of the instructions.
"""

from __future__ import annotations

from itertools import product
from typing import ClassVar

from fly_common.record import record
from fly_target.target import FLOAT8

from fly_dialect.atoms.interface import StateField
from fly_dialect.atoms.matrix import Form, WaveMma, option
from fly_dialect.atoms.registry import register
from fly_dialect.layouts.layout import Layout
from fly_dialect.types import bits

CDNA1, CDNA2, CDNA3, CDNA4 = "CDNA1", "CDNA2", "CDNA3", "CDNA4"
SINCE_CDNA2 = (CDNA2, CDNA3, CDNA4)
ALL = (CDNA1, *SINCE_CDNA2)
# Eight-bit floats: CDNA3 has its own format without negative zero, CDNA4 the OCP format.
FNUZ, OCP8 = FLOAT8["fnuz"], FLOAT8["ocp"]


def _square(mn: int, k: int, a: str, b: str, acc: str, families: tuple[str, ...]) -> Form:
    return Form(mn, mn, k, a, b, acc, families)


# Instructions that compute one product. Those that compute 2, 4 or 16 small ones (such as
# v_mfma_f32_4x4x4_16b_f16) are not atoms: an atom is one tile of M × N × K.
MFMA_FORMS = (
    _square(32, 2, "f32", "f32", "f32", ALL),
    _square(16, 4, "f32", "f32", "f32", ALL),
    _square(32, 8, "f16", "f16", "f32", ALL),
    _square(16, 16, "f16", "f16", "f32", ALL),
    _square(32, 4, "bf16", "bf16", "f32", (CDNA1, CDNA2)),
    _square(16, 8, "bf16", "bf16", "f32", (CDNA1, CDNA2)),
    _square(32, 8, "bf16", "bf16", "f32", SINCE_CDNA2),
    _square(16, 16, "bf16", "bf16", "f32", SINCE_CDNA2),
    *(
        _square(mn, k, element, element, "f32", (CDNA4,))
        for mn, k in ((16, 32), (32, 16))
        for element in ("f16", "bf16")
    ),
    *(
        _square(mn, k, a, b, "f32", families)
        for mn, k in ((16, 32), (32, 16))
        for formats, families in ((FNUZ, (CDNA3,)), (OCP8, (CDNA4,)))
        for a, b in product(formats, formats)
    ),
    _square(32, 8, "i8", "i8", "i32", (CDNA1, CDNA2)),
    _square(16, 16, "i8", "i8", "i32", (CDNA1, CDNA2)),
    _square(16, 32, "i8", "i8", "i32", (CDNA3, CDNA4)),
    _square(32, 16, "i8", "i8", "i32", (CDNA3, CDNA4)),
    _square(16, 64, "i8", "i8", "i32", (CDNA4,)),
    _square(32, 32, "i8", "i8", "i32", (CDNA4,)),
    # XF32: f32 operands, rounded to 10 bits of fraction.
    _square(16, 8, "f32", "f32", "f32", (CDNA3,)),
    _square(32, 4, "f32", "f32", "f32", (CDNA3,)),
    _square(16, 4, "f64", "f64", "f64", SINCE_CDNA2),
)


def operand_layout(mn: int, k: int) -> Layout:
    """A or B: thread t holds row t mod mn, and k/(64/mn) consecutive values of it, starting at
    column (t div mn)·(k/(64/mn))."""
    groups = 64 // mn
    values = k // groups
    return Layout(((mn, groups), values), ((1, mn * values), mn))


def accumulator_layout(m: int, n: int) -> Layout:
    """C or D: thread t holds column t mod n. Its values are four rows from 4·(t div n), then four
    more in each following block of rows."""
    groups = 64 // n
    return Layout(((n, groups), (4, m // 4 // groups)), ((m, 4), (1, 4 * groups)))


def accumulator_layout_f64(m: int, n: int) -> Layout:
    """C or D of f64: thread t holds column t mod n and every fourth row, starting at t div n."""
    groups = 64 // n
    return Layout(((n, groups), m // groups), ((m, 1), groups))


@record
class Cdna(WaveMma):
    """Base of MFMA and scaled MFMA: a wave of 64, square tiles."""

    @property
    def thr_layout(self) -> Layout:
        return Layout(64, 1)

    @property
    def thr_val_layout_a(self) -> Layout:
        return operand_layout(self.m, self.k)

    @property
    def thr_val_layout_b(self) -> Layout:
        return operand_layout(self.n, self.k)

    @property
    def thr_val_layout_c(self) -> Layout:
        return accumulator_layout(self.m, self.n)


@register
@record
class Mfma(Cdna):
    """`!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>`: v_mfma_f32_16x16x16_f16."""

    NAME: ClassVar[str] = "fly_rocdl.cdna3.mfma"
    FAMILIES: ClassVar[tuple[str, ...]] = ALL
    FORMS: ClassVar[tuple[Form, ...]] = MFMA_FORMS

    def __post_init__(self) -> None:
        if not self.is_known:
            raise ValueError(
                f"unsupported CDNA3 MFMA configuration: {self.shape} with {self.types}; "
                f"{self.nearest()}"
            )

    @property
    def thr_val_layout_c(self) -> Layout:
        layout = accumulator_layout_f64 if self.acc == "f64" else accumulator_layout
        return layout(self.m, self.n)


# The formats of the scaled instructions: 8, 6 and 4 bits.
SCALED_ELEMENTS = ("f8E4M3FN", "f8E5M2", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN")
SCALED_FORMS = tuple(
    _square(mn, k, a, b, "f32", (CDNA4,))
    for mn, k in ((16, 128), (32, 64))
    for a, b in product(SCALED_ELEMENTS, SCALED_ELEMENTS)
)


@register
@record
class MfmaScale(Cdna):
    """`!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E4M3FN, f4E2M1FN) -> f32, opselA = 0,
    opselB = 0>`: v_mfma_scale_f32_16x16x128_f8f6f4.

    Each 32 values along K share a scale, an E8M0 exponent. It is a byte of the state's `scale_a` or
    `scale_b`, selected by `opsel_a` or `opsel_b` (0 to 3). The scale of thread t applies to row t
    mod M (for B: column t mod N) and to the values from 32·(t div M).

    `runs` says how the 32 values of a thread lie along K where they have 8 bits: 2 is what the
    instruction does. 1 is FlyDSL's layout, and what its text means, which has no `runs`.
    """

    NAME: ClassVar[str] = "fly_rocdl.cdna4.mfma_scale"
    FAMILIES: ClassVar[tuple[str, ...]] = (CDNA4,)
    FORMS: ClassVar[tuple[Form, ...]] = SCALED_FORMS
    opsel_a: int = option("opselA", 0)
    opsel_b: int = option("opselB", 0)
    runs: int = option("runs", 1, always=False)

    def __post_init__(self) -> None:
        if self.shape not in ("16x16x128", "32x32x64"):
            raise ValueError(
                f"unsupported MNK for CDNA4 MFMA_Scale: {self.shape} "
                "(expected 16x16x128 or 32x32x64)"
            )
        check_scaled(self)
        check_range("opselA", self.opsel_a, 3)
        check_range("opselB", self.opsel_b, 3)
        if self.runs not in (1, 2):
            raise ValueError(f"runs must be 1 or 2, got {self.runs}")

    @property
    def thr_val_layout_a(self) -> Layout:
        return scaled_operand_layout(self.m, self.k, self.a, self.runs)

    @property
    def thr_val_layout_b(self) -> Layout:
        return scaled_operand_layout(self.n, self.k, self.b, self.runs)

    @property
    def state(self) -> tuple[StateField, ...]:
        return StateField("scale_a", "i32"), StateField("scale_b", "i32")


def scaled_operand_layout(mn: int, k: int, element: str, runs: int) -> Layout:
    """A or B: the 32 values of a thread are consecutive along K. With 8 bits they are two runs of
    sixteen, half of K apart (CDNA4 ISA manual, 7.1.5). One run for 8 bits, as in FlyDSL's layout,
    pairs values with the wrong scales and with the wrong values of a narrower operand; if both
    operands have it and all scales are equal, the product is the same."""
    if bits(element) != 8 or runs == 1:
        return operand_layout(mn, k)
    run = 16 * mn
    return Layout(((mn, 64 // mn), (16, 2)), ((1, run), (mn, 64 // mn * run)))


def check_scaled(op: WaveMma) -> None:
    """Raises ValueError unless the element types support block scales."""
    if op.acc != "f32":
        raise ValueError(f"elemTyAcc must be f32, got {op.acc}")
    for name, element in (("elemTyA", op.a), ("elemTyB", op.b)):
        if element not in SCALED_ELEMENTS:
            raise ValueError(f"{name} must be one of {', '.join(SCALED_ELEMENTS)}, got {element}")


def check_range(name: str, value: int, limit: int) -> None:
    """Raises ValueError unless 0 ≤ value ≤ limit."""
    if not 0 <= value <= limit:
        raise ValueError(f"{name} must be in [0, {limit}], got {value}")
