"""Compares type inference with FlyDSL's on random tiled copies and multiplications.

    python benchmarks/flydsl_tiles.py --peer PYTHON [--cases 1000] [--seed 1]

PYTHON is an interpreter with FlyDSL 0.4.2 (`pip install flydsl==0.4.2 torch`). Each case is one of
tiled_copy.partition_src, partition_dst and retile, tiled_mma.partition and partition_shape, and
mma.make_fragment, on a random atom, placement of threads or waves, tile and view. Our inference
gives the result type; FlyDSL's verifier infers it again and reports whether it is equal. A case
that differs is printed with its reason, if it has one of those below; the exit status is 1 if any
has none.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter

from fly_dialect import algebra, tiled
from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec
from fly_dialect.atoms.amd import mfma, wmma
from fly_dialect.atoms.amd.lds_transpose import LdsReadTranspose
from fly_dialect.atoms.matrix import WaveMma
from fly_dialect.atoms.universal import UniversalCopy
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.tile import Tile
from fly_dialect.op_table import OPS
from fly_dialect.type_text import parse_type
from flydsl_algebra import Case, Peer

ELEMENTS = {8: "i8", 16: "f16", 32: "f32"}
WAVES = [
    Layout((1, 4, 1), (0, 1, 0)),
    Layout((2, 2, 1), (1, 2, 0)),
    Layout((2, 2, 1), (2, 1, 0)),
    Layout((4, 1, 1), (1, 0, 0)),
    Layout((1, 2, 2), (0, 1, 2)),
    Layout((1, 1, 1), (0, 0, 0)),
]
FAMILIES: list[type[WaveMma]] = [
    mfma.Mfma,
    mfma.Mfma,
    mfma.MfmaScale,
    wmma.Gfx11Wmma,
    wmma.Gfx120xWmma,
    wmma.Gfx1250Wmma,
]
# Reasons for differences, as properties of the case.
REASONS = [
    (r"cdna3\.mfma<\S+ \(.*f8E5M2\b", "FlyDSL's MFMA knows CDNA4's fp8, but not its bf8"),
    (
        r"tiled_mma\.partition\(.*memref<f6E.*int_tuple<\?>",
        "FlyDSL aborts where the offset of an aligned view of six bits is unknown",
    ),
    (r"cdna3\.mfma<\S+ \(f64", "FlyDSL's MFMA has no f64"),
    (
        r"gfx120x\.wmma<16x16x32, \(i4",
        "FlyDSL has a lane's 4-bit values in one run along K, of A and B alike: the same sums",
    ),
    (r"gfx1250\.wmma<.*-> b?f16", "FlyDSL takes halves of registers after all registers"),
]


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def case(self) -> Case:
        return self.random.choice([self.copy, self.retile, self.mma, self.mma, self.fragment])()

    def view(self, rows: int, columns: int, element: str) -> str:
        """Returns the type of a view of this size."""
        pick = self.random
        layout = pick.choice(
            [
                f"({rows},{columns}):({columns},1)",
                f"({rows},{columns}):(1,{rows})",
                f"({rows},{columns}):({columns + 8},1)",
                f"({rows},{columns},3):({columns},1,{rows * columns})",
                "(?,?):(?,1)",
                f"({rows},?):(?{{i64 div=16}},1)",
            ]
        )
        if pick.random() < 0.15:
            return f"!fly.coord_tensor<(0,0), ({rows},{columns}):(1E0,1E1)>"
        if pick.random() < 0.15:
            layout = f"S<3,3,3> o 0 o {layout}"
        align = pick.choice(["", ", align<16>"])
        return f"!fly.memref<{element}, {pick.choice(['global', 'shared'])}, {layout}{align}>"

    def tiled_copy(self) -> TiledCopySpec:
        pick = self.random
        if pick.random() < 0.8:
            size = pick.choice([16, 32, 64, 128])
            atom = CopyAtomSpec(UniversalCopy(size), pick.choice([8, 16, min(32, size)]))
        else:
            bits = pick.choice([8, 16])
            atom = CopyAtomSpec(LdsReadTranspose(bits, 64), bits)
        values = tiled.count(atom.thr_val_layout_ref.shape[1])
        threads = pick.choice([(4, 8), (8, 4), (16, 4), (64, 1), (16, 16)])
        shares = pick.choice([(1, values), (values, 1), (2, values), (1, 2 * values)])
        tile, layout = algebra.make_layout_tv(self.either(threads), self.either(shares))
        return TiledCopySpec(atom, layout, Tile(tile))

    def either(self, shape: tuple[int, int]) -> Layout:
        """Returns a row-major or column-major layout."""
        return Layout(shape, self.random.choice([(shape[1], 1), (1, shape[0])]))

    def copy(self) -> Case:
        copy, pick = self.tiled_copy(), self.random
        extents = [tiled.count(part) for part in tiled.tile_extents(copy.tile)]
        rows, columns = (extent * pick.choice([1, 2, 4]) for extent in extents)
        view = self.view(rows, columns, ELEMENTS[copy.atom.bits])
        side = pick.choice(["src", "dst"])
        thread = pick.choice(["?", "0", "5"])
        return Case(f"tiled_copy.partition_{side}", (str(copy), view, f"!fly.int_tuple<{thread}>"))

    def retile(self) -> Case:
        copy = self.tiled_copy()
        values = tiled.count(copy.layout_tv.shape[1])
        fragment = self.random.choice(
            [f"({values},2,3):(1,{values},{2 * values})", f"({values},1,1):(1,0,0)"]
        )
        element = ELEMENTS[copy.atom.bits]
        return Case(
            "tiled_copy.retile", (str(copy), f"!fly.memref<{element}, register, {fragment}>")
        )

    def tiled_mma(self) -> TiledMmaSpec:
        pick = self.random
        family = pick.choice(FAMILIES)
        form = pick.choice(family.FORMS)
        op = family(form.m, form.n, form.k, form.a, form.b, form.acc)
        waves = pick.choice(WAVES)
        tiles = [
            extent * tiled.count(count)
            for extent, count in zip(op.shape_mnk, waves.shape, strict=True)
        ]
        permutation = [None if pick.random() < 0.7 else Int(2 * extent) for extent in tiles]
        return TiledMmaSpec(MmaAtomSpec(op), waves, Tile(tuple(permutation)))

    def operand(self, most: int) -> tuple[TiledMmaSpec, tiled.Operand, list[int]]:
        """Returns a tiled mma, one of its operands, and extents of a view of that operand."""
        mma = self.tiled_mma()
        operand: tiled.Operand = self.random.choice(["a", "b", "c", "d"])
        sizes = tiled.tile_size(mma)
        extents = [sizes[index] * self.random.randint(1, most) for index in tiled.MODES[operand]]
        return mma, operand, extents

    def mma(self) -> Case:
        mma, operand, extents = self.operand(3)
        attributes = f"{{operand_id = #fly<mma_operand {operand}>}}"
        if self.random.random() < 0.4:
            shape = f"!fly.int_tuple<({extents[0]},{extents[1]})>"
            return Case("tiled_mma.partition_shape", (str(mma), shape), attributes)
        element = mma.atom.op.elements["abcd".index(operand)]
        thread = f"!fly.int_tuple<{self.random.choice(['?', '0'])}>"
        view = self.view(extents[0], extents[1], element)
        return Case("tiled_mma.partition", (str(mma), view, thread), attributes)

    def fragment(self) -> Case:
        mma, operand, (rows, columns) = self.operand(3)
        element = mma.atom.op.elements["abcd".index(operand)]
        view = f"!fly.memref<{element}, shared, ({rows},{columns}):({columns},1)>"
        stages = self.random.choice(["", ", stages = 2 : i32"])
        attributes = f"{{operand_id = #fly<mma_operand {operand}>{stages}}}"
        return Case("mma.make_fragment", (str(mma), view), attributes)


def ours(case: Case) -> str:
    """Returns our result type."""
    infer = OPS[case.op].infer
    assert infer is not None
    attributes: dict[str, object] = {}
    if found := re.search(r"operand_id = (#fly<[^>]*>)", case.attributes):
        attributes["operand_id"] = found[1]
    if found := re.search(r"stages = (\d+)", case.attributes):
        attributes["stages"] = int(found[1])
    return str(infer([parse_type(operand) for operand in case.operands], attributes)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--peer", required=True, help="a Python that has FlyDSL")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    maker, peer = Maker(given.seed), Peer(given.peer)
    same, told, unexplained = Counter[str](), Counter[str](), 0
    for _ in range(given.cases):
        case = maker.case()
        own = ours(case)
        said = peer.says(case.module(own))
        if said == "ok":
            same[case.op] += 1
            continue
        why = next((text for pattern, text in REASONS if re.search(pattern, str(case))), None)
        if why is None:
            unexplained += 1
            print(f"{case}\n  ours:   {own}\n  FlyDSL: {said.strip()[:400]}")
        else:
            told[why] += 1
    for op, count in sorted(same.items()):
        print(f"{count:6} the same  {op}")
    for why, count in told.most_common():
        print(f"{count:6} differ    {why}")
    print(f"{unexplained:6} differ without a reason")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
