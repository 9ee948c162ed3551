"""Matrix instructions of RDNA and gfx1250: WMMA, and WMMA with block scales (gfx1250).

A wave of 32 threads holds the tile. Sources: the RDNA3 and RDNA4 ISA manuals, "Wave Matrix Multiply
Accumulate"; `tests/fly_dialect/test_atom_layouts.py` compares the layouts of gfx11 and gfx120x with
the behavior of the instructions. The layouts of gfx1250 are FlyDSL's.
"""

from __future__ import annotations

from itertools import product
from typing import ClassVar

from fly_common.record import record

from fly_dialect.atoms.amd.mfma import OCP8, SCALED_ELEMENTS, check_scaled
from fly_dialect.atoms.interface import StateField
from fly_dialect.atoms.matrix import Form, WaveMma, option
from fly_dialect.atoms.registry import register
from fly_dialect.layouts.layout import Layout
from fly_dialect.types import bits

RDNA3 = ("RDNA3",)
RDNA4 = ("RDNA4",)
GFX1250 = ("gfx1250",)


def halves_layout(k: int, element: str) -> Layout:
    """A or B on gfx12: threads 0–15 and 16–31 both hold rows 0–15. Blocks of eight values along K
    alternate between the two halves. Values of 32 bits form one block per half."""
    values = k // 2
    if bits(element) == 32:
        return Layout(((16, 2), values), ((1, 16 * values), 16))
    blocks = values // 8
    if blocks == 1:
        return Layout(((16, 2), 8), ((1, 128), 16))
    return Layout(((16, 2), (8, blocks)), ((1, 128), (16, 256)))


def rows_layout(rows: int = 8) -> Layout:
    """C or D on gfx12: thread t holds column t mod 16 and consecutive rows, starting at
    `rows`·(t div 16). A 16-bit accumulator packs two rows into a register, in the same order."""
    return Layout(((16, 2), rows), ((16, rows), 1))


@record
class Wave32(WaveMma):
    """Base of the WMMA families: a wave of 32, and signedness of integer operands.

    `sign_a` and `sign_b` make the integers of A and B signed; `clamp` saturates the sum.
    """

    sign_a: bool = option("signA", False)
    sign_b: bool = option("signB", False)
    clamp: bool = option("clamp", False)

    @property
    def thr_layout(self) -> Layout:
        return Layout(32, 1)

    @property
    def has_integers(self) -> bool:
        return self.acc == "i32"

    def _signs_refused(self, family: str) -> ValueError:
        """Floats have no such modifiers, so a type that sets them would be silently wrong."""
        flags = (("signA", self.sign_a), ("signB", self.sign_b), ("clamp", self.clamp))
        given = ", ".join(f"{name}={int(value)}" for name, value in flags)
        return ValueError(
            f"{family} WMMA fp16/bf16 path does not accept signA/signB/clamp (the ROCDL fp WMMA "
            f"intrinsics have no such operands); got {given}"
        )

    def _unsupported(self, family: str) -> ValueError:
        return ValueError(
            f"unsupported {family} WMMA configuration: {self.shape} with A='{self.a}', "
            f"B='{self.b}', Acc='{self.acc}'; {self.nearest()}"
        )


GFX11_FORMS = (
    Form(16, 16, 16, "f16", "f16", "f32", RDNA3),
    Form(16, 16, 16, "bf16", "bf16", "f32", RDNA3),
    Form(16, 16, 16, "i8", "i8", "i32", RDNA3),
    Form(16, 16, 16, "i4", "i4", "i32", RDNA3),
)


@register
@record
class Gfx11Wmma(Wave32):
    """`!fly_rocdl.gfx11.wmma<16x16x16, (f16, f16) -> f32, signA = false, signB = false,
    clamp = false>`: v_wmma_f32_16x16x16_f16.

    Both halves of the wave hold the same A and B. Rows of C alternate between the halves: row 2v is
    in the lower half, row 2v + 1 in the upper.
    """

    NAME: ClassVar[str] = "fly_rocdl.gfx11.wmma"
    FAMILIES: ClassVar[tuple[str, ...]] = RDNA3
    FORMS: ClassVar[tuple[Form, ...]] = GFX11_FORMS

    def __post_init__(self) -> None:
        if self.shape != "16x16x16":
            raise ValueError(f"GFX11 WMMA requires M=N=K=16, got {self.shape}")
        if not self.is_known:
            raise self._unsupported("GFX11")
        if not self.has_integers and (self.sign_a or self.sign_b or self.clamp):
            raise self._signs_refused("GFX11")

    @property
    def thr_val_layout_a(self) -> Layout:
        return Layout(((16, 2), self.k), ((1, 0), 16))

    @property
    def thr_val_layout_b(self) -> Layout:
        return Layout(((16, 2), self.k), ((1, 0), 16))

    @property
    def thr_val_layout_c(self) -> Layout:
        return Layout(((16, 2), 8), ((16, 1), 2))


GFX120X_FORMS = (
    Form(16, 16, 16, "f16", "f16", "f32", RDNA4),
    Form(16, 16, 16, "bf16", "bf16", "f32", RDNA4),
    *(Form(16, 16, 16, a, b, "f32", RDNA4) for a, b in product(OCP8, OCP8)),
    Form(16, 16, 16, "i8", "i8", "i32", RDNA4),
    Form(16, 16, 16, "i4", "i4", "i32", RDNA4),
    Form(16, 16, 32, "i4", "i4", "i32", RDNA4),
)


@record
class Gfx12(Wave32):
    """Base of the WMMA of gfx120x and gfx1250, which have the same layouts."""

    @property
    def thr_val_layout_a(self) -> Layout:
        return halves_layout(self.k, self.a)

    @property
    def thr_val_layout_b(self) -> Layout:
        return halves_layout(self.k, self.b)

    @property
    def thr_val_layout_c(self) -> Layout:
        return rows_layout()


@register
@record
class Gfx120xWmma(Gfx12):
    """`!fly_rocdl.gfx120x.wmma<16x16x16, (bf16, bf16) -> f32, signA = false, signB = false,
    clamp = false>`: v_wmma_f32_16x16x16_bf16 of RDNA4."""

    NAME: ClassVar[str] = "fly_rocdl.gfx120x.wmma"
    FAMILIES: ClassVar[tuple[str, ...]] = RDNA4
    FORMS: ClassVar[tuple[Form, ...]] = GFX120X_FORMS

    def __post_init__(self) -> None:
        if self.shape != "16x16x16" and self.a != "i4":
            raise ValueError(
                f"GFX120X WMMA requires M=N=K=16, got {self.shape} (the 16x16x32 shapes are "
                "gfx1250-only but for i4; use gfx1250.wmma there)"
            )
        if not self.is_known:
            raise self._unsupported("GFX120X")
        if not self.has_integers and (self.sign_a or self.sign_b or self.clamp):
            raise self._signs_refused("GFX120X")


GFX1250_FORMS = (
    Form(16, 16, 4, "f32", "f32", "f32", GFX1250),
    *(
        Form(16, 16, 32, element, element, acc, GFX1250)
        for element in ("f16", "bf16")
        for acc in ("f32", element)
    ),
    *(
        Form(16, 16, k, a, b, acc, GFX1250)
        for k in (64, 128)
        for a, b in product(OCP8, OCP8)
        for acc in ("f32", "f16")
    ),
    Form(16, 16, 64, "i8", "i8", "i32", GFX1250),
    Form(16, 16, 32, "i4", "i4", "i32", GFX1250),
)


@register
@record
class Gfx1250Wmma(Gfx12):
    """`!fly_rocdl.gfx1250.wmma<16x16x32, (f16, f16) -> f32, signA = false, signB = false,
    clamp = false>`: v_wmma_f32_16x16x32_f16."""

    NAME: ClassVar[str] = "fly_rocdl.gfx1250.wmma"
    FAMILIES: ClassVar[tuple[str, ...]] = GFX1250
    FORMS: ClassVar[tuple[Form, ...]] = GFX1250_FORMS

    def __post_init__(self) -> None:
        if (self.m, self.n) != (16, 16):
            raise ValueError(f"GFX1250 WMMA requires M=N=16, got {self.m}x{self.n}")
        if not self.has_integers and (self.sign_a or self.sign_b or self.clamp):
            raise ValueError(
                f"signA/signB/clamp are only valid for integer (iu4/iu8) WMMA, got A='{self.a}'"
            )
        if not self.is_known:
            raise self._unsupported("GFX1250")


def runs_layout(rows: int, k: int, element: str) -> Layout:
    """A or B with block scales on gfx1250: runs of 16 values of 8 bits, or of 32 narrower ones,
    alternate between threads 0–15 and 16–31, as the scales need it. Of 32 rows a thread has those
    of row t and then those of row t + 16."""
    run = 16 if bits(element) == 8 else 32
    threads, values = ((16, 2), (1, rows * run)), ((run, k // (2 * run)), (rows, 2 * rows * run))
    if rows == 16:
        return Layout((threads[0], values[0]), (threads[1], values[1]))
    return Layout((threads[0], (*values[0], 2)), (threads[1], (*values[1], 16)))


GFX1250_SCALED_FORMS = (
    *(
        Form(16, 16, 128, a, b, "f32", GFX1250)
        for a, b in product(SCALED_ELEMENTS, SCALED_ELEMENTS)
    ),
    Form(32, 16, 128, "f4E2M1FN", "f4E2M1FN", "f32", GFX1250),
)


@register
@record
class Gfx1250WmmaScale(WaveMma):
    """`!fly_rocdl.gfx1250.wmma_scale<16x16x128, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 0,
    opselB = 0, modC = 0, reuseA = false, reuseB = false, blockSize = 32>`.

    `block_size` values along K share a scale, an E8M0 exponent: 32 is v_wmma_scale (i32 scales), 16
    is v_wmma_scale16 (i64). `opsel_a` and `opsel_b` select the row of threads that supplies the
    scales, `mod_c` is the modifier of C, `reuse_a` and `reuse_b` are hints to the operand cache.
    """

    NAME: ClassVar[str] = "fly_rocdl.gfx1250.wmma_scale"
    FAMILIES: ClassVar[tuple[str, ...]] = GFX1250
    FORMS: ClassVar[tuple[Form, ...]] = GFX1250_SCALED_FORMS
    opsel_a: int = option("opselA", 0)
    opsel_b: int = option("opselB", 0)
    mod_c: int = option("modC", 0)
    reuse_a: bool = option("reuseA", False)
    reuse_b: bool = option("reuseB", False)
    block_size: int = option("blockSize", 32)

    def __post_init__(self) -> None:
        if self.block_size not in (16, 32):
            raise ValueError(f"blockSize must be 16 or 32, got {self.block_size}")
        if self.shape not in ("16x16x128", "32x16x128"):
            raise ValueError(
                f"unsupported MNK for GFX1250 WMMA_Scale: {self.shape} "
                "(expected 16x16x128 or 32x16x128)"
            )
        if self.m == 32 and not self.a == self.b == SCALED_ELEMENTS[-1]:
            raise ValueError(
                f"GFX1250 WMMA_Scale 32x16x128 requires {SCALED_ELEMENTS[-1]} A and B, "
                f"got A='{self.a}', B='{self.b}'"
            )
        check_scaled(self)
        for name, opsel in (("opselA", self.opsel_a), ("opselB", self.opsel_b)):
            if opsel not in (0, 1):
                raise ValueError(f"{name} must be in [0, 1] (row0/row1), got {opsel}")
        if not 0 <= self.mod_c <= 0xFFFF:
            raise ValueError(f"modC must fit the i16 intrinsic field [0, 65535], got {self.mod_c}")

    @property
    def thr_layout(self) -> Layout:
        return Layout(32, 1)

    @property
    def thr_val_layout_a(self) -> Layout:
        return runs_layout(self.m, self.k, self.a)

    @property
    def thr_val_layout_b(self) -> Layout:
        return runs_layout(self.n, self.k, self.b)

    @property
    def thr_val_layout_c(self) -> Layout:
        if self.m == 32:  # two results of 16 rows, one after the other
            return Layout(((16, 2), (8, 2)), ((32, 8), (1, 16)))
        return rows_layout(self.m // 2)

    @property
    def state(self) -> tuple[StateField, ...]:
        width = "i64" if self.block_size == 16 else "i32"
        return StateField("scale_a", width), StateField("scale_b", width)
