"""Random expressions over the variables of `surroundings`: integers, numbers, conditions.

`random` is a `random.Random`, which may be hypothesis's.
"""

from __future__ import annotations

from random import Random

LISTS = ("t[:2]", "d", "m[0]", "m[1]", "o.items", "f", "l[0]")  # of i32
IN_PLACE = ("t[:2]", "d", "m[0]", "m[1]", "o.items")
INTS = ("a", "b", "c", "t[0]", "t[1]", "p.x", "p.y", "s[0]", "q.x", "s[1][0]", "g.v", "h.v")
KEPT = (
    *("d[0]", "d[-1]", "m[0][0]", "m[0][-1]", "m[1][1]", 'e["x"]', 'e["y"]', "e[3]", "o.count"),
    *(
        "o.items[1]",
        "o[2]",
        "j.pair[1]",
        "f[0]",
        "l[1][0]",
        'n["y"]',
        "j.low",
        "r.x",
        "r.rest[0]",
        "len(o)",
    ),
)
FLOATS = ("u", "w", "t[2]")


def operand(random: Random) -> str:
    """A variable or a part of one."""
    return random.choice(INTS if random.random() < 0.6 else KEPT)


def integer(random: Random, depth: int = 2) -> str:
    if depth == 0:
        if random.random() < 0.8:
            return operand(random)
        return random.choice(("I[3]", "fx.Int32(7)", "fx.Int32(-5)", "k"))
    x, y = integer(random, depth - 1), integer(random, depth - 1)
    family = random.choice((_arithmetic, _arithmetic, _calls, _objects, _lists, _lists))
    return random.choice(family(random, x, y))


def _arithmetic(random: Random, x: str, y: str) -> list[str]:
    return [
        f"({x} + {y})",
        f"({x} - {y})",
        f"({x} * 3)",
        f"({x} // 4)",
        f"({x} % 5)",
        f"({x} ^ {y})",
        f"({x} & 31)",
        f"(-{x})",
        f"(~{x})",
        f"({x} if {condition(random, 0)} else {y})",
        f"abs({x} & 255)",
        f"sum(divmod({x}, 7))",
        f"(({x} & 255) << 2)",
        f"({x} >> 1)",
    ]


def _calls(random: Random, x: str, y: str) -> list[str]:
    return [
        f"min({x}, {y})",
        f"max({x}, {y}, 3)",
        f"sum([{x}, {y}])",
        f"sum(z * 2 for z in ({x}, {y}))",
        f"sign({x})",
        f"find(I, {x} & 7, {y} & 7)",
        f"steps({x} & 15)",
        f"power({x} & 7, 3)",
        f"(lambda z, by=2: z * by + c)({x})",
        f"sorted([{x}, {y}, 2, c])[{random.randint(0, 3)}]",
        f"sorted([({x} & 1, {y}), ({y} & 1, 3), (0, a)], key=lambda z: z[0])[1][1]",
        f"sum(numbers({x}, 2))",
        f"[z ^ 1 for z in nested({x})][2]",
        f"sum(map(sign, ({x}, {y})))",
        f"functools.reduce(larger, ({x}, {y}, 3))",
        f"functools.partial(larger, {x})({y})",
        f"fibonacci({random.randint(1, 6)}, {x} & 15)",
        f"fibonacci({x} & 7, {y} & 31)",
        f"digits({x})",
        f"sum(z for z in ({x}, {y}, 5) if z > {random.randint(-3, 6)})",
        f"sum((z ^ i for i, z in enumerate(({x}, {y})) if z & 1 == 0 if i < 2), c)",
        f"sum(digits(z) for row in m for z in row if z > {x})",
        f"fx.Int32(int({condition(random, 0)}) + int({x}))",
        f"max((z for z in ({x}, {y}, 5) if z > {random.randint(-3, 6)}), default={y})",
        f"min((z * 3 for row in m for z in row if z & 1), default={x})",
        f"max((z for z in ({x}, c, {y}) if z != a), key=lambda z: z & 7, default=b)",
        f"max(((z, i) for i, z in enumerate(({x}, {y})) if z > 1), default=(0, -1))[1]",
        f"functools.reduce(max, ({x}, {y}, 3))",
        f"sum(map(min, ({x}, a), ({y}, 4)))",
        f"math.prod([{x} & 7, {y} & 3, 2])",
        f"fx.Int32(bool({x} & 3))",
    ]


def _objects(random: Random, x: str, y: str) -> list[str]:
    return [
        "p.sum",
        f"(q + {x}).sum",
        f"(h + {x}).v",
        f"(Wide({x}) + {y}).size",
        f"g[{x} & 3]",
        f"g({x})",
        "g.size",
        "sum(g)",
        f"fx.Int32(o.put({x} & 3, {y}))",
        f"fx.Int32(Bag({x}, {y}).total())",
        "fx.Int32(o.total())",
        "sum(o.turn().items)",
        f"r.moved({x}).x",
        f"r.moved({x}).rest[{random.randint(0, 1)}]",
        "[z.x for z in (p, q, r)][1]",
        f"counted(e, {random.choice(_KEYS)}, {x})",
        f"e.get({random.choice(_KEYS)}, {x})",
        "sum(e.values())",
        "sum(z if key != 3 else -z for key, z in e.items())",
        f"{{key: z ^ {x} for key, z in e.items()}}[3]",
        f'{{**e, "x": {x}}}["x"]',
        f'(e | {{"z": {x}}})["z"]',
    ]


_KEYS = ('"x"', '"y"', "3", '"z"')


def _lists(random: Random, x: str, y: str) -> list[str]:
    one, two = random.choice(LISTS), random.choice(LISTS)
    n = random.randint(0, 1)
    return [
        f"[{x}, {y}][1]",
        f"[*{one}, {x}][-{n + 1}]",
        f"{one}[::-1][{n}]",
        f"({one} + {two})[{n + 1}]",
        f"position({one}, {x})",
        f"position([{x}, {y} & 7], {y})",
        f"fx.Int32(largest({one})[{n}])",
        f"fx.Int32(largest([{x}, {y}, a])[{n}])",
        f"running({one})[{n}]",
        f"ordered({one})[{n}]",
        f"ordered([{x}, {y}, c])[{n + 1}]",
        f"spread({random.choice(IN_PLACE)}, {x} & 3)",
        f"flipped(m)[{n}][{n}]",
        f"product(m, flipped(m))[{n}][{random.randint(0, 1)}]",
        f"fx.Int32(clear_row(m, {x}))",
        "sum(z for row in m for z in row)",
        "sum(map(sum, m))",
        "[max(row) for row in m][1]",
        f"[z for row in m for z in row if z is not None][{n * 4}]",
        f"sum(z * at for at, z in enumerate({one}))",
        f"sum(i * j for i, j in zip({one}, {two}))",
        f"sum(i ^ j for i, j in pairs({one}))",
        f"max({one})",
        f"min({one}, key=lambda z: z & 7)",
        f"len([z for z in {one}])",
        f"[{x} if {condition(random, 0)} else z for z in {one}][{n}]",
    ]


def number(random: Random, depth: int = 1) -> str:
    if depth == 0:
        return random.choice((*FLOATS, "F[2]", "fx.Float64(1.5)"))
    x, y = number(random, depth - 1), number(random, depth - 1)
    return random.choice(
        (
            f"({x} + {y})",
            f"({x} - {y} * 0.5)",
            f"({x} if {condition(random, 0)} else {y})",
            f"max({x}, {y})",
        )
    )


def condition(random: Random, depth: int = 1) -> str:
    x, y = operand(random), operand(random)
    one = random.choice(LISTS)
    if depth == 0:
        return random.choice(
            (
                f"{x} < {y}",
                f"{x} >= {y} - 3",
                f"{x} != 2",
                f"{x} & 1 == 0",
                "u > w",
                f"-9 < {x} < {y} <= 40",
                f"{x} in (3, {y})",
                f"{x} not in [1, 2]",
                f"{x} in g",
                f"g < Gauge({x})",
                "not g",
                f"{x} in {one}",
                f"{x} in e.values()",
                f"{x} in {{1, 2, -3}}",
                f"{x} in range({random.randint(-9, 3)}, {random.randint(0, 12)})",
                f"{x} not in range(20, -20, -{random.randint(2, 5)})",
                f"r == Point({x}, r.rest)",
                f"r != r.moved({x})",
                "s != (s[0], (b, s[1][1]))",
                f"f < [{x}, {y}, 1]",
                "f == o.items",
                f"{x} not in {{4: 5, 6: 7}}",
                f"any(z > {x} for z in {one} if z != {y})",
                f"all(z > 1 for z in ({x}, {y}) if z & 1)",
                f"max({one}) > {x}",
                f"({x}, {y}) > (2, 3)",
                f"[{x}, 1] == [{y}, 1]",
            )
        )
    first, second = condition(random, depth - 1), condition(random, depth - 1)
    return random.choice(
        (
            f"({first}) and ({second})",
            f"({first}) or ({second})",
            f"not ({first})",
            f"any([{first}, {second}])",
            f"all(z > 1 for z in ({x}, {y}))",
            f"any(z == {x} for z in {one})",
            f"any(z > {x} for row in m for z in row)",
            f"any(I[z] == {x} & 7 for z in range(3))",
            first,
            f"({first}) and (c := fx.Int32({x} + 1)) > {y}",
            f"(c := fx.Int32({x} ^ 3)) < {y} or ({second})",
            f"{x} < (c := fx.Int32({y} - 2)) < 30",
        )
    )
