"""Compares type inference with FlyDSL's on random layouts, for each op that computes.

    python benchmarks/flydsl_algebra.py --peer PYTHON [--cases 2000] [--seed 1]

PYTHON is an interpreter with FlyDSL 0.4.2 (`pip install flydsl==0.4.2 torch`). Each case is an op
on random operands: layouts that are compact in some order, with gaps, with broadcasts, nested, with
dynamic leaves of either width and a divisor, with basis strides, composed with a swizzle. Our
inference gives the result type; FlyDSL's verifier infers it again and reports whether it is equal.
If one of the two rejects the case or they differ, the case is printed with its reason, if it has
one of those below; the exit status is 1 if any has none.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

from fly_dialect import algebra
from fly_dialect.inference.computation import COMPUTATIONS
from fly_dialect.inference.rules import layout_of
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import AnyLayout
from fly_dialect.layouts.scanner import parse_any_layout
from fly_dialect.op_table import OPS
from fly_dialect.type_text import parse_type

HERE = Path(__file__).parent
# Result types that no case has: FlyDSL then reports the type that it infers.
DUMMIES = {
    "int_tuple": "!fly.int_tuple<(1,2,3,4,5,6,7,8,9)>",
    "layout": "!fly.layout<77:77>",
    "composed_layout": "!fly.composed_layout<S<7,7,7> o 7 o 77:77>",
    "memref": "!fly.memref<f64, global, 77:77>",
    "coord_tensor": "!fly.coord_tensor<7, 77:77>",
}
OF_TUPLES = ("crd2idx", "idx2crd", "get_flat_coord", "get_1d_coord", "size", "cosize", "coshape")
_INFERRED = re.compile(r"inferred type\(s\) '(.*?)' are incompatible")


@dataclass(frozen=True)
class Case:
    op: str
    operands: tuple[str, ...]
    attributes: str = ""

    def module(self, result: str) -> str:
        names = [f"%a{index}" for index in range(len(self.operands))]
        arguments = ", ".join(map(": ".join, zip(names, self.operands, strict=True)))
        types = ", ".join(self.operands)
        op = f'"fly.{self.op}"({", ".join(names)}) {self.attributes} : ({types}) -> {result}'
        return f"func.func @f({arguments}) {{\n  %r = {op}\n  return\n}}\n"

    @property
    def dummy(self) -> str:
        """Returns a wrong result type of the right kind."""
        kind = self.operands[0].split("<")[0].removeprefix("!fly.")
        return DUMMIES["int_tuple" if self.op in OF_TUPLES else kind]

    def __str__(self) -> str:
        return f"{self.op}({', '.join(self.operands)}) {self.attributes}".rstrip()


# -- random operands ------------------------------------------------------------------------------
def text(tree: object) -> str:
    return f"({','.join(map(text, tree))})" if isinstance(tree, tuple) else str(tree)


def flat(tree: object) -> list:
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, tuple) else [tree]


class Maker:
    """Generates operands; `loose` in ten leaves are dynamic."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loose = 0

    def shape(self, depth: int = 2, most: int = 3) -> object:
        count = self.random.choice([1, 2, 2, 3][: most + 1])
        if depth == 0 or count == 1:
            return self.random.choice([1, 2, 2, 3, 4, 4, 6, 8, 16])
        return tuple(self.shape(depth - 1, most) for _ in range(count))

    def filled(self, tree: object, leaves: list) -> object:
        """Returns a tree of the same structure with leaves taken from `leaves`."""
        if isinstance(tree, tuple):
            return tuple(self.filled(part, leaves) for part in tree)
        return leaves.pop(0)

    def stride(self, shape: object) -> object:
        """Returns strides that are compact in some order, possibly with gaps or broadcasts."""
        extents = flat(shape)
        steps, step = [0] * len(extents), 1
        order = list(range(len(extents)))
        if self.random.random() < 0.6:
            self.random.shuffle(order)
        gaps = self.random.random() < 0.4
        for index in order:
            step *= self.random.choice([1, 1, 2, 3]) if gaps else 1
            steps[index] = step
            step *= extents[index]
        if self.random.random() < 0.1:
            steps[self.random.randrange(len(steps))] = 0
        return self.filled(shape, steps)

    def loosened(self, tree: object) -> object:
        if isinstance(tree, tuple):
            return tuple(map(self.loosened, tree))
        if self.random.random() * 10 >= self.loose:
            return tree
        return self.random.choice(["?", "?", "?{i64}", "?{div=4}", "?{i64 div=8}"])

    def layout(self, shape: object = None, known_strides: bool = False) -> str:
        """Returns the text between the brackets."""
        shape = self.shape() if shape is None else shape
        stride = self.stride(shape)
        extents = self.loosened(shape)
        return f"{text(extents)}:{text(stride if known_strides else self.loosened(stride))}"

    def walk(self, shape: object) -> str:
        """Returns a layout that traverses `shape` without splitting a mode."""
        extents = flat(shape)
        first = self.random.randrange(len(extents))
        step = self.divisor(extents[first])
        last = self.random.randrange(first, len(extents))
        count = extents[first] // step
        if last == first:
            return f"{self.divisor(count)}:{prod(extents[:first]) * step}"
        count *= prod(extents[first + 1 : last]) * self.divisor(extents[last])
        return f"{count}:{prod(extents[:first]) * step}"

    def divisor(self, number: int) -> int:
        return self.random.choice([d for d in range(1, number + 1) if number % d == 0])

    def narrow(self, shape: object = None, known_strides: bool = False) -> str:
        """Returns the type of a layout, or of one composed with a swizzle."""
        layout = self.layout(shape, known_strides)
        if self.random.random() < 0.85:
            return f"!fly.layout<{layout}>"
        mask, base, shift = (self.random.randrange(4) for _ in range(3))
        start = self.loosened(self.random.choice([0, 8, 16, 48]))
        return f"!fly.composed_layout<S<{mask},{base},{shift}> o {start} o {layout}>"

    def like(self, shape: object = None) -> str:
        """Like `narrow`, or the type of a view."""
        kind = self.random.random()
        if kind < 0.8:
            return self.narrow(shape)
        inside = self.narrow(shape).split("<", 1)[1][:-1]
        if kind < 0.95:
            return f"!fly.memref<f16, shared, {inside}, align<16>>"
        shape = self.shape() if shape is None else shape
        bases = text(self.bases(shape, ""))
        return f"!fly.coord_tensor<{text(self.zeros(shape))}, {text(shape)}:{bases}>"

    def bases(self, shape: object, path: str) -> object:
        if isinstance(shape, tuple):
            return tuple(self.bases(part, f"{path}E{i}") for i, part in enumerate(shape))
        return f"{self.random.choice([1, 1, 2])}{path or 'E0'}"

    def zeros(self, shape: object) -> object:
        return tuple(map(self.zeros, shape)) if isinstance(shape, tuple) else 0

    def coord(self, shape: object, free: float = 0.0) -> object:
        if self.random.random() < free:
            return "*"
        if isinstance(shape, tuple) and self.random.random() < 0.7:
            return tuple(self.coord(part, free) for part in shape)
        return self.loosened(self.random.randrange(prod(flat(shape))))

    def tile(self, shape: tuple) -> str:
        found = []
        for mode in shape:
            size = self.divisor(prod(flat(mode)))
            found.append(self.random.choice([str(size), f"{size}:1"]))
        return f"!fly.tile<[{'|'.join(found)}]>"

    def pair(self) -> tuple:
        return tuple(self.random.choice([1, 2, 3, 4, 8]) for _ in range(2))


def cases(maker: Maker) -> dict[str, Callable[[], Case]]:
    """Returns, for each op, a function that generates a case."""
    pick = maker.random

    def tuple_(tree: object) -> str:
        return f"!fly.int_tuple<{text(tree)}>"

    def on_layout(op: str) -> Callable[[], Case]:
        return lambda: Case(op, (maker.like(),))

    def on_narrow(op: str) -> Callable[[], Case]:
        return lambda: Case(op, (maker.narrow(),))

    def plain(op: str) -> Callable[[], Case]:
        return lambda: Case(op, (f"!fly.layout<{maker.layout()}>",))

    def complement() -> Case:
        shape = maker.shape()
        end = (
            (tuple_(pick.choice([prod(flat(shape)) * 4, 100, "?"])),) if pick.random() < 0.7 else ()
        )
        return Case("complement", (maker.narrow(shape, known_strides=True), *end))

    def composition() -> Case:
        shape = maker.shape()
        if isinstance(shape, tuple) and pick.random() < 0.3:
            return Case("composition", (maker.like(shape), maker.tile(shape)))
        return Case("composition", (maker.like(shape), f"!fly.layout<{maker.walk(shape)}>"))

    def divide(op: str) -> Callable[[], Case]:
        def make() -> Case:
            shape = maker.shape()
            if isinstance(shape, tuple) and pick.random() < 0.6:
                return Case(op, (maker.like(shape), maker.tile(shape)))
            return Case(op, (maker.like(shape), f"!fly.layout<{maker.walk(shape)}>"))

        return make

    def product(op: str) -> Callable[[], Case]:
        return lambda: Case(
            op,
            (
                maker.narrow(maker.pair(), known_strides=True),
                f"!fly.layout<{maker.layout(maker.pair())}>",
            ),
        )

    def index(op: str) -> Callable[[], Case]:
        def make() -> Case:
            shape = maker.shape()
            number = maker.loosened(pick.randrange(prod(flat(shape))))
            layout = maker.layout(shape)
            # A stride of 0 has no inverse: FlyDSL divides by it.
            while re.search(r"[:(,]0\b", layout):
                layout = maker.layout(shape)
            return Case(op, (tuple_(number), f"!fly.layout<{layout}>"))

        return make

    def crd2idx() -> Case:
        shape = maker.shape()
        return Case("crd2idx", (tuple_(maker.coord(shape)), maker.narrow(shape)))

    def cut(op: str) -> Callable[[], Case]:
        def make() -> Case:
            shape = maker.shape()
            coord = maker.coord(shape, 0.5)
            # At least one element must be given, and one free.
            while not 0 < flat(coord).count("*") < len(flat(coord)):
                shape = maker.shape()
                coord = maker.coord(shape, 0.5)
            source = maker.like(shape) if op == "slice" else f"!fly.layout<{maker.layout(shape)}>"
            return Case(op, (source, tuple_(coord)))

        return make

    def modes(op: str) -> Callable[[], Case]:
        def make() -> Case:
            shape = tuple(maker.shape(1) for _ in range(3))
            begin = pick.randrange(2)
            attributes = f"{{begin = {begin} : i32, end = {begin + 1 + pick.randrange(2)} : i32}}"
            if op == "get":
                attributes = f"{{mode = array<i32: {pick.randrange(3)}>}}"
            if op == "select":
                attributes = "{indices = array<i32: 2, 0>}"
            source = pick.choice([tuple_(maker.loosened(shape)), maker.narrow(shape)])
            return Case(op, (source,), attributes)

        return make

    def extend(op: str) -> Callable[[], Case]:
        def make() -> Case:
            n = pick.choice(["", "{n = 4 : i32}"])
            if pick.random() < 0.5:
                return Case(op, (maker.narrow(), f"!fly.layout<{maker.layout()}>"), n)
            return Case(op, tuple(tuple_(maker.loosened(maker.shape())) for _ in range(2)), n)

        return make

    def elementwise(op: str) -> Callable[[], Case]:
        def make() -> Case:
            shape = maker.shape()
            other = maker.filled(shape, [pick.choice([1, 2, 3, 4, 12]) for _ in flat(shape)])
            return Case(op, (tuple_(maker.loosened(shape)), tuple_(maker.loosened(other))))

        return make

    def divided(op: str) -> Callable[[], Case]:
        def make() -> Case:
            shape = maker.filled(maker.shape(), [pick.choice([1, 2, 4, 8, 16]) for _ in range(9)])
            return Case(op, (tuple_(maker.loosened(shape)), tuple_(pick.choice([1, 2, 4, 8]))))

        return make

    def recast() -> Case:
        shape = (pick.choice([4, 8, 16]), maker.shape(1))
        old, new = pick.choice([(8, 16), (16, 8), (32, 8), (8, 32), (16, 32)])
        attributes = f"{{new_type_bits = {new} : i32, old_type_bits = {old} : i32}}"
        return Case("recast_layout", (maker.narrow(shape),), attributes)

    def ordered() -> Case:
        shape = maker.shape()
        order = list(range(len(flat(shape))))
        pick.shuffle(order)
        return Case(
            "make_ordered_layout",
            (tuple_(maker.loosened(shape)), tuple_(maker.filled(shape, order))),
        )

    def tile_to_shape() -> Case:
        block = maker.pair()
        target = tuple(extent * pick.choice([1, 2, 3]) for extent in block)
        order = pick.choice([(0, 1), (1, 0)])
        return Case(
            "tile_to_shape",
            (maker.narrow(block, known_strides=True), tuple_(target), tuple_(order)),
        )

    def of_tuple(op: str) -> Callable[[], Case]:
        return lambda: Case(op, (tuple_(maker.loosened(maker.shape())),))

    return {
        "complement": complement,
        "composition": composition,
        "crd2idx": crd2idx,
        "recast_layout": recast,
        "make_ordered_layout": ordered,
        "tile_to_shape": tile_to_shape,
        "slice": cut("slice"),
        "dice": cut("dice"),
        **{op: on_layout(op) for op in ("coalesce", "size", "cosize", "coshape", "coprofile")},
        **{op: on_narrow(op) for op in ("right_inverse", "left_inverse", "get_shape")},
        **{op: plain(op) for op in ("make_layout_like", "make_fragment_layout_like")},
        **{
            op: divide(op)
            for op in ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide")
        },
        **{op: product(op) for op in COMPUTATIONS if op.endswith("_product") and "int_" not in op},
        **{op: index(op) for op in ("idx2crd", "get_flat_coord", "get_1d_coord")},
        **{op: modes(op) for op in ("get", "take", "select", "group")},
        **{op: extend(op) for op in ("append", "prepend")},
        **{op: elementwise(f"int_tuple_{op}") for op in ("add", "sub", "mul", "div", "mod")},
        **{op: divided(op) for op in ("shape_div", "ceil_div")},
        **{
            op: of_tuple(op)
            for op in ("int_tuple_product", "int_tuple_product_each", "make_identity_layout")
        },
    }


# -- both results ---------------------------------------------------------------------------------
def ours(case: Case) -> tuple[str | None, str]:
    """Returns the result type, or None and the reason why there is none."""
    info = OPS[case.op]
    attributes: dict[str, object] = {}
    for name, value in re.findall(r"(\w+) = (array<i32: [^>]*>|-?\d+)", case.attributes):
        array = value.startswith("array")
        attributes[name] = (
            [int(n) for n in re.findall(r"-?\d+", value[10:])] if array else int(value)
        )
    assert info.infer is not None
    try:
        return str(
            info.infer([parse_type(operand) for operand in case.operands], attributes)[0]
        ), ""
    except ValueError as error:
        return None, str(error)


class Peer:
    """FlyDSL in its own process, which is restarted after a C++ assertion has ended it."""

    def __init__(self, python: str) -> None:
        self.command = [python, str(HERE / "peers/flydsl_types.py")]
        self.process: subprocess.Popen[str] | None = None

    def says(self, module: str) -> str:
        """Returns `ok`, the verifier's message, or `aborts`."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={},
            )
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(module) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            return "aborts"
        return json.loads(line)


# Reasons for differences, as regular expressions on `op: our result | FlyDSL's result`. COUNTED
# applies if counting the offsets of FlyDSL's layout shows that it is wrong.
COUNTED = "FlyDSL's result is wrong, by counting its offsets"
REASONS = [
    (r"\| aborts$", "FlyDSL asserts, or divides by zero; we refuse or have an answer"),
    (r"^(crd2idx|slice): .*\bi64\b", "an offset is computed in 64 bits where 32 may not hold it"),
    (r"it has no inverse", "FlyDSL divides by a stride of 0 when it runs"),
    (r"can't be composed with", COUNTED),
    (r"^left_inverse: .* are not known integers", "FlyDSL leaves out modes of dynamic stride"),
    (r"^left_inverse: .*has no left inverse", COUNTED),
    (r"has no complement: it gives one", "FlyDSL's complement meets the layout's own offsets"),
    (r"^make_layout_like: .*[:(,]0[,)>]", "FlyDSL's result overlaps where a stride is 0"),
    (r"^make_fragment_layout_like: ", "FlyDSL's result overlaps where strides are equal"),
    (r"^int_tuple_sub: ", "FlyDSL takes 0 - x for x"),
    (r"\dE\d", "FlyDSL merges basis strides of different modes"),
]


def reason(case: Case, own: str, theirs: str, peer: Peer) -> str | None:
    line = f"{case.op}: {own} | {theirs}"
    for pattern, said in REASONS:
        if re.search(pattern, line):
            return said if said != COUNTED or counted_wrong(case, own, theirs, peer) else None
    return None


def counted_wrong(case: Case, own: str, theirs: str, peer: Peer) -> bool:
    """Whether FlyDSL's inverse does not undo the layout, or its composition (the one that we
    rejected as impossible) is not the composition of the functions."""
    if case.op == "left_inverse":
        given = case.operands[0]
        return [offset(theirs, place) for place in offsets(given)] != list(range(size(given)))
    outer, inner = re.findall(r"(.+) can't be composed with (.+?:.+?): ", own)[0]
    part = Case("composition", (f"!fly.layout<{outer}>", f"!fly.layout<{inner}>"))
    inferred = _INFERRED.search(peer.says(part.module(part.dummy)))
    if not inferred:
        return True
    places = [algebra.crd2idx(Int(number), layout(inner)) for number in range(size(inner))]
    return offsets(inferred[1]) != [offset(outer, place) for place in places]


def layout(spec: str) -> AnyLayout:
    """Returns the layout of a type or text, with 2 for each dynamic integer."""
    plain = re.sub(r"\?(\{[^}]*\})?", "2", spec)
    if not plain.startswith("!"):
        return parse_any_layout(plain)
    found = layout_of(parse_type(plain))
    assert found is not None
    return found.linear


def offset(spec: str, place: object) -> object:
    """Returns the offset of a coordinate, or of the coordinate of a number: a number, or for basis
    strides the non-zero numbers by their paths."""
    coord = Int(place) if isinstance(place, int) else place
    return paths(algebra.crd2idx(coord, layout(spec)), ())


def paths(tree: object, path: tuple[int, ...]) -> object:
    if isinstance(tree, Basis):
        return {tree.modes: tree.scale.value} if tree.scale.value else {}
    if not isinstance(tree, tuple):
        number = int(str(tree))
        return number if not path else {path: number} if number else {}
    found: dict[object, object] = {}
    for index, part in enumerate(tree):
        below = paths(part, (*path, index))
        found |= below if isinstance(below, dict) else {}
    return found


def size(spec: str) -> int:
    return algebra.size(layout(spec)).value


def offsets(spec: str) -> list:
    return [offset(spec, place) for place in range(size(spec))]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--peer", required=True, help="an interpreter that has FlyDSL")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print explained cases too")
    given = parser.parse_args()
    maker, peer = Maker(given.seed), Peer(given.peer)
    makers = list(cases(maker).values())
    counts: Counter[str] = Counter()
    unexplained = 0
    for number in range(given.cases):
        maker.loose = (0, 0, 3, 6)[number % 4]
        case = makers[number % len(makers)]()
        result, refusal = ours(case)
        said = peer.says(case.module(result or case.dummy))
        if said == "ok":
            counts["agree"] += 1
            continue
        inferred = _INFERRED.search(said)
        theirs = inferred[1] if inferred else said.replace("\n", " ")[:200]
        if result is None and said != "aborts" and not inferred:
            counts["both refuse"] += 1
            if given.verbose:
                print(f"{case}\n    ours    {refusal}\n    FlyDSL  {theirs}\n    both refuse")
            continue
        why = reason(case, result or refusal, theirs, peer)
        counts[why or "UNEXPLAINED"] += 1
        unexplained += why is None
        if why is None or given.verbose:
            print(
                f"{case}\n    ours    {result or refusal}\n    FlyDSL  {theirs}\n    {why or '?'}"
            )
    print(f"{given.cases} cases, seed {given.seed}")
    for what, count in counts.most_common():
        print(f"{count:6}  {what}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
