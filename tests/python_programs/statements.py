"""Random programs: bodies of kernels, of statements that docs/python.md says run."""

from __future__ import annotations

from random import Random

from python_programs.expressions import IN_PLACE, INTS, LISTS, condition, integer, number, operand
from python_programs.surroundings import HEAD, TAIL

SIMPLE = (
    *("int", "int", "float", "augmented", "swap", "store", "item", "attribute", "anew", "call"),
    *("list", "list", "matrix", "dictionary", "bag"),
)
DEEP = (
    *("if", "if", "for", "each", "while", "match", "try", "with", "leave"),
    *("counted", "indexed", "indexed", "table", "keys", "search", "local"),
)
BOUNDS = ("a & 7", "3", "b & 7, -2, -2", "1, 9, (a & 3) + 1", "20", "2, 6")


def program(random: Random) -> str:
    """The body of a kernel."""
    return HEAD + "\n".join(block(random, 2)) + "\n" + TAIL


def scalars(random: Random) -> tuple[int, int, float, float]:
    """The arguments of a run."""
    integers = [random.randint(-40, 40) for _ in range(2)]
    for i in range(2):
        if random.random() < 0.2:
            integers[i] = random.choice((2**31 - 1, -(2**31), 2**30, 0, 1))
    reals = [random.randint(-1600, 1600) / 32 for _ in range(2)]
    return (integers[0], integers[1], reals[0], reals[1])


def block(random: Random, depth: int, loops: int = 0, returns: bool = True) -> list[str]:
    lines: list[str] = []
    for _ in range(random.randint(1, 3)):
        lines += statement(random, depth, loops, returns)
    if loops and random.random() < 0.17:
        lines += [f"if {condition(random)}:", f"    {random.choice(('break', 'continue'))}"]
        lines += statement(random, 0, loops, returns)
    return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def statement(random: Random, depth: int, loops: int, returns: bool) -> list[str]:
    kind = random.choice(SIMPLE if depth == 0 else (*SIMPLE, *DEEP))
    if kind in SIMPLE:
        return _simple(random, kind)

    def inner(more: int = 0) -> list[str]:
        return indented(block(random, depth - 1, loops + more, returns))

    def otherwise() -> list[str]:
        return ["else:", *inner()] if random.random() < 0.5 else []

    match kind:
        case "if":
            lines = [f"if {condition(random)}:", *inner()]
            if random.random() < 0.5:
                lines += [f"elif {condition(random)}:", *inner()]
            return [*lines, *otherwise()]
        case "match":
            return _match(random, loops, inner)
        case "try":
            raised = random.choice(('{"x": a}["y"]', "[a, b][5]", "[a, b][1]"))
            # An exception can't leave what follows a dynamic exit.
            body = indented(block(random, depth - 1, 0, returns=False))
            lines = ["try:", *body, f"    c = c + {raised}", "except LookupError:", *inner()]
            if random.random() < 0.5:
                lines += ["else:", *inner()]
            return [*lines, "finally:", "    k = k + 1"] if random.random() < 0.5 else lines
        case "with":
            manager = random.choice(("Scaled", "Gauge"))
            opened = f"with {manager}({integer(random, 0)}) as by{loops}:"
            return [opened, *inner(), f"    c = c + by{loops}"]
        case "leave":
            words = ["break", "continue"] * bool(loops) + ["return"] * returns
            word = random.choice(words or ["pass"])
            last = indented(TAIL.splitlines()) if word == "return" else []
            return [f"if {condition(random)}:", *inner(), *last, f"    {word}"]
        case _:
            return [*_loop(random, kind, loops, inner), *otherwise()]


def _simple(random: Random, kind: str) -> list[str]:
    x, y = integer(random, 1), integer(random, 0)
    match kind:
        case "int":
            return [f"{random.choice('abc')} = fx.Int32({integer(random)})"]
        case "float":
            return [f"w = fx.Float64({number(random)})"]
        case "augmented":
            where = random.choice(("a", "c", "t[0]", "t[1]", "p.x", "d[-1]", 'e["y"]', "o.count"))
            return [f"{where} {random.choice('+-^')}= {y}"]
        case "swap":
            swaps = (
                "a, (c, b) = b, (a, c)",
                "d[0], d[2] = d[2], d[0]",
                "m[0][0], m[1][1] = m[1][1], m[0][0]",
            )
            return [random.choice((*swaps, "(d[1], *v), c = [a, b], d[1]", "a, *d[1:] = d"))]
        case "store":
            where = random.choice(("7", "c & 7"))
            return [f"I[{where}] = {x}", f"F[{where}] += {number(random, 0)}"]
        case "item":
            if random.random() < 0.5:
                return [f"t[2] = {number(random)}"]
            return [f"t[{random.randint(0, 1)}] = fx.Int32({integer(random)})"]
        case "attribute":
            return [f"p.{random.choice('xy')} = fx.Int32({integer(random)})"]
        case "anew":
            forms = [
                f"q = Pair(fx.Int32({x}), fx.Int32({y}))",
                f"q = q + {y}",
                f"h = Wide((h + {y}).v)",
                f"h = Wide({x})",
                f"g += {y}",
                f"g[{y} & 3] = {x}",
                f"g.size = {x}",
                f"s = (fx.Int32({x}), (fx.Int32({y}), s[1][1]))",
                f"r = Point(fx.Int32({x}), (fx.Int32({y}), r.rest[0]))",
                f"r = r.moved({x})",
                f"r = dataclasses.replace(r, x=fx.Int32({x}))",
                f"f = [{x}, *f[1:]]",
                "f = f[1:] + f[:1]",
                f"f = [z + {y} for z in f]",
                f"f = ordered([{x}, {y}, f[0]])",
                "f, (a, *_) = [*f[::-1]], f",
                f"l = [[z ^ {y} for z in row] for row in l]",
                "l = flipped(flipped(l))[::-1]",
                f"l = product(l, [[1, {y}], [{x}, 0]])",
                f'n = {{**n, "x": {x}}}',
                f"n = {{key: z + {y} for key, z in n.items()}}",
                f'n = n | {{"y": {x}}}',
            ]
            return [random.choice(forms)]
        case "call":
            return [f"v = [{operand(random)}, {y}]", f"k = (k + bump(v, {y})) ^ v[0]"]
        case "list":
            return random.choice(_list_changes(random, x, y))
        case "matrix":
            return random.choice(_matrix_changes(random, x, y))
        case "dictionary":
            key, other = random.choice(('"x"', '"y"', "3")), random.choice(('"x"', '"y"', "3"))
            forms = [
                f"e[{key}] = {x}",
                f"e[{key}] = e[{key}] * 2 + {random.choice(INTS)}",
                f"e[{key}] ^= e[{other}] + {y}",
                f"e.update({{{key}: {x}, {other}: {y}}})",
                f"c = c + counted(e, {key}, {x})",
                f"e[{key}], e[{other}] = e[{other}], e[{key}]",
                f"e |= {{{key}: {x}}}",
            ]
            return [random.choice(forms)]
        case "bag":
            forms = [
                f"o.put({random.randint(0, 2)}, {x})",
                f"o.put({y} & 3, {x})",
                f"j.offer({y} & 7, {x})",
                f"k = k + j.offer({y} & 7, {x})",
                "o.turn()",
                f"o.items[{random.randint(0, 2)}] = fx.Int32({x})",
                f"j.pair = (j.pair[1], fx.Int32({x}))",
                f"j.low -= {y}",
                f"k = k ^ o[{random.randint(0, 2)}]",
            ]
            return [random.choice(forms)]
    raise AssertionError(kind)


def _list_changes(random: Random, x: str, y: str) -> list[list[str]]:
    n, one = random.randint(0, 2), random.choice(LISTS)
    return [
        [f"d[{n}] = {x}"],
        [f"d[{n}] = d[{(n + 1) % 3}] ^ {y}"],
        [f"d[:2] = [{x}, {y}]"],
        ["d[:] = d[1:] + d[:1]"],
        ["d.reverse()"],
        ["d.sort()"],
        [f"d[:] = [z + {y} for z in d]"],
        [f"k = k + spread({random.choice(IN_PLACE)}, {y} & 3)"],
        ["v = d", f"v[{n}] ^= {y}"],
        ["v = d.copy()", f"v[{n}] ^= {y}", f"k = k ^ v[{n}]"],
        [f"v = [z & 15 for z in {one}]", f"spread(v, {y})", "k = k + v[0]"],
    ]


def _matrix_changes(random: Random, x: str, y: str) -> list[list[str]]:
    i, j = random.randint(0, 1), random.randint(0, 2)
    return [
        [f"m[{i}][{j}] = {x}"],
        [f"m[{i}][{j}] += {y}"],
        [f"m[{i}][:] = [{x}, {y}, m[{i}][0]]"],
        [f"row = m[{i}]", f"row[{j}] = {x}"],
        [f"clear_row(m, {x})"],
        [f"m[{i}].sort()"],
    ]


def _loop(random: Random, kind: str, loops: int, inner) -> list[str]:
    """A loop without its `else`."""
    i, y = f"i{loops}", integer(random, 0)
    match kind:
        case "for":
            bounds = random.choice(BOUNDS)
            header = f"range({bounds})"
            if random.random() < 0.3:
                header = f"reversed({header})"
            lines = [f"for {i} in {header}:", *inner(1), f"    c = c + {i}"]
            if bounds == "3" and random.random() < 0.5:
                lines += [f"    d[{i}] = d[{i}] ^ {y} + {i}"]
            return lines
        case "each":
            items = random.choice(
                (
                    "(a, b, 3)",
                    "[x + 1 for x in (c, 2)]",
                    "reversed([a, c])",
                    "numbers(c, 3)",
                    "nested(b)",
                    "Gauge(c)",
                    "map(lambda x: x + 1, numbers(a, 2))",
                    "d",
                    "o.items[:2]",
                    "running(d)",
                    "e.values()",
                    "[z for row in m for z in row]",
                )
            )
            return [f"for e{loops} in {items}:", *inner(1), f"    c = c - e{loops}"]
        case "while":
            lines = [f"n{loops} = fx.Int32(b & 7)", f"while n{loops} > 0:"]
            # Python numbers take the types that they have at the end of an iteration.
            lines += [f"    n{loops} = n{loops} - 1", *inner(1)]
            return [*lines, f"    y, z = y + u * 0.5, z + fx.Int64({y})"]
        case "counted":  # Python numbers that a loop carries
            bounds = random.choice(BOUNDS)
            lines = [f"l{loops}, j{loops} = 0, [0, 1]", f"for {i} in range({bounds}):"]
            lines += [f"    l{loops} += {y}", f"    j{loops}[{random.randint(0, 1)}] ^= {i}"]
            lines += [*inner(1), f"    k = k ^ l{loops} + j{loops}[0] * 3 - j{loops}[1]"]
            return lines
        case "indexed":  # lists, indexed while the loop is traced
            where = random.choice(
                (
                    *(f"d[{i}]", f"d[2 - {i}]", f"d[-1 - {i}]", f"d[({i} + 1) % 3]"),
                    *(f"d[{i} - 1]", f"o.items[{i}]", f"m[{i} & 1][{i}]", f"m[0][{i}]"),
                    f"m[{i} // 2][2 - {i}]",
                )
            )
            order = random.choice(("range(3)", "range(2, -1, -1)", "range(len(d))"))
            change = random.choice(
                (f"{where} ^= {y} + {i}", f"{where} = {where} * 3 - {random.choice(INTS)}")
            )
            return [f"for {i} in {order}:", *inner(1), f"    {change}", f"    c += {where}"]
        case "table":
            j = f"j{loops}"
            head = random.choice(
                (
                    [f"for {i} in range(2):", f"    for {j} in range(3):"],
                    [f"for {i} in range(len(m)):", f"    for {j} in range(len(m[{i}])):"],
                    [f"for {i}, row in enumerate(m):", f"    for {j}, x in enumerate(row):"],
                )
            )
            change = random.choice(
                (
                    f"m[{i}][{j}] = m[{i}][{j}] ^ {y}",
                    f"m[{i}][{j}] += m[1 - {i}][2 - {j}]",
                    f"m[{i}][{j}] = d[{j}] - {y} * {i}",
                    f"d[{j}] += m[{i}][{j}]",
                    f"d[{j}] = max(d[{j}], m[{i}][{j}])",
                )
            )
            left = random.choice(("continue", "break", "pass"))
            test = [f"if {condition(random, 0)}:", f"    {left}"]
            return [*head, *indented(indented([*test, change])), *inner(1)]
        case "keys":
            head, change = random.choice(
                (
                    ("for key in e:", f"e[key] = e[key] + {y}"),
                    ("for key, x in e.items():", f"e[key] = x ^ {y}"),
                    ('for key in ("y", "x"):', "e[key] = e[key] * 2 - e[3]"),
                    ("for key, x in zip(e, d):", "e[key] -= x"),
                    ('for l0, e["x"] in enumerate(d):', f"k = k ^ {y}"),
                )
            )
            return [head, f"    {change}", *inner(1)]
        case "search":  # a tuple that a loop carries
            lines = [f"v{loops} = (-1, {y})", f"for {i} in range({random.choice(BOUNDS)}):"]
            lines += [f"    if I[{i} & 7] + {y} > v{loops}[1]:"]
            lines += [f"        v{loops} = ({i}, I[{i} & 7])", *inner(1)]
            return [*lines, f"    c = c ^ v{loops}[0]"]
        case "local":  # a function that reads variables of the kernel
            lines = [f"def f{loops}(x, t):", f"    for {i} in range({random.choice(BOUNDS)}):"]
            lines += [f"        if x + {i} > {y}:", f"            t[0] = t[0] ^ {i} + k"]
            lines += ["            return x - c", "    t[1] += x", f"    return fx.Int32({i})"]
            if "&" in lines[1]:  # it may not run
                lines[-1] = "    return fx.Int32(x)"
            return [*lines, f"for {i} in (a, b):", *inner(1), f"    k += f{loops}({i}, d)"]
    raise AssertionError(kind)


def _match(random: Random, loops: int, inner) -> list[str]:
    x = f"x{loops}"
    subjects = {
        "c & 7": ["1", "2 | 3", f"{x} if {x} > 5", "_"],
        "(a & 3, b)": ["(1, _)", f"(2 | 3, {x})", f"(0, {x}) if {x} > 2"],
        "[c, (a & 1, b)]": [f"[2, *{x}]", f"[_, (1, {x})]", f"({x}, _)"],
        "d": [f"[1, *{x}]", f"[_, {x}, 2]", "_"],
        "e": [f'{{"x": 1, "y": {x}}}', f'{{"x": {x}}} if {x} > 3', "_"],
        "r": [f"Point(x=1, rest=({x}, _))", f"Point(x={x}) if {x} > 2", "_"],
    }
    subject, cases = random.choice(list(subjects.items()))
    lines = [f"match {subject}:"]
    for case in cases:
        lines += [f"    case {case}:", *indented(inner())]
    return lines
