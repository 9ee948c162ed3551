"""Random programs: the bodies of kernels, of statements that docs/python.md says run.

All variables have values from the start. `a b c` are i32, `u w` f64; `t` is a list that is changed
in place, `p` an object that is, `s` a tuple and `q` an object that are assigned anew. The
operators, properties and other methods of `g`, which is changed in place, and of `h`, which is
assigned anew, have dynamic control flow.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

INTS = ("a", "b", "c", "t[0]", "t[1]", "p.x", "p.y", "s[0]", "q.x", "s[1][0]", "g.v", "h.v")
FLOATS = ("u", "w", "t[2]")
HEAD = """\
c = fx.Int32(4)
w = fx.Float64(0.5)
t = [a + 0, b + 0, u + 0.0]
p = Pair(b + 1, a + 2)
s = (a + 3, (b + 1, 5))
q = Pair(c + 0, c + 1)
s = (fx.Int32(s[0]), (fx.Int32(s[1][0]), fx.Int32(5)))
k = fx.Int32(0)
g = Gauge(a + 1)
h = Wide(b)
d = [a + 0, b + 1, a - b]
y, z = 0, 1
"""
TAIL = """\
I[0] = a
I[1] = c
I[2] = t[0] ^ t[1]
I[3] = p.x - p.y
I[4] = s[0] + s[1][0] * 3
I[5] = q.x - q.y * 5
I[6] = k ^ g.v - h.v
I[7] = d[0] ^ d[1] - d[2] ^ fx.Int32(z)
F[0] = w + y
F[1] = t[2]
"""
TOP = """
import functools

class Gauge:
    def __init__(self, v):
        if v > 30:
            self.v = fx.Int32(v - 30)
            return
        self.v = fx.Int32(v)

    def __add__(self, other):
        if other > 3:
            return Gauge(self.v ^ other)
        return Gauge(self.v - 1)

    def __iadd__(self, other):
        if other > 2:
            self.v = fx.Int32(self.v + other)
        return self

    def __lt__(self, other):
        for i in range(self.v & 3):
            if i + self.v > other.v:
                return False
        return self.v < other.v

    def __getitem__(self, i):
        if i > 1:
            return self.v
        return fx.Int32(self.v + i)

    def __setitem__(self, i, value):
        if i > 1:
            self.v = fx.Int32(value)
        else:
            self.v = fx.Int32(self.v ^ value)

    def __call__(self, limit):
        n = fx.Int32(1)
        while n * n < (limit & 63):
            if n > self.v & 7:
                return fx.Int32(-n)
            n = n + 2
        return n

    def __bool__(self):
        if self.v > 2:
            return True
        return False

    def __contains__(self, x):
        if x > 2:
            return self.v > x
        return self.v == x

    def __iter__(self):
        for k in range(2):
            yield fx.Int32(self.v + k) if self.v > k else fx.Int32(k)

    def __enter__(self):
        if self.v > 1:
            return self.v
        return fx.Int32(self.v ^ 5)

    def __exit__(self, *_):
        if self.v > 1:
            self.v = fx.Int32(self.v - 1)
        return False

    @property
    def size(self):
        if self.v > 4:
            return fx.Int32(self.v & 31)
        return fx.Int32(self.v + 1)

    @size.setter
    def size(self, value):
        if value > 4:
            self.v = fx.Int32(value)
        else:
            self.v = fx.Int32(value - 1)

class Wide(Gauge):
    def __add__(self, other):
        if other > self.v:
            return super().__add__(other - 1)
        return super().__add__(other)

    @property
    def size(self):
        return super().size ^ 1 if self.v > 3 else super().size

def larger(x, y):
    if x > y:
        return fx.Int32(x)
    return fx.Int32(y)

class Pair:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Pair(self.x + other, self.y)

    @property
    def sum(self):
        return self.x + self.y

class Scaled:
    def __init__(self, by):
        self.by = by

    def __enter__(self):
        return self.by + 1

    def __exit__(self, *_):
        return False

def sign(v):
    if v > 2:
        return fx.Int32(1)
    if v < -2:
        return fx.Int32(-1)
    return v

def find(I, wanted, n):
    for i in range(n):
        if I[i] == wanted:
            return fx.Int32(i)
        elif i == 6:
            continue
        for j in range(3):
            if I[j] + i > wanted + 9:
                return fx.Int32(-j)
            if j > i:
                break
    return fx.Int32(-1)

def steps(v):
    n = fx.Int32(0)
    while True:
        n = n + 1
        if v == 1 or n > 12:
            return n
        v = v // 2 if v % 2 == 0 else v + 1

def bump(t, v):
    if v > 1:
        t[0] = t[0] + v
        return t[0]
    t[1] = v
    return t[1]

def numbers(v, n):
    s = fx.Int32(v)
    for k in range(n):
        if s > 7:
            s = s - v
        yield s
        s = s * 3 + k
    yield fx.Int32(n)

def nested(v):
    yield from numbers(v, 1)
    for w in numbers(v ^ 5, 2):
        if w < 0:
            w = w + 1
        yield w - v

def power(v, n):
    return fx.Int32(1) if n == 0 else v * power(v, n - 1)
"""


@st.composite
def integer(draw: DrawFn, depth: int = 2) -> str:
    if depth == 0:
        return draw(st.sampled_from([*INTS, *INTS, "I[3]", "fx.Int32(7)", "fx.Int32(-5)", "k"]))
    x, y = draw(integer(depth - 1)), draw(integer(depth - 1))
    forms = [
        f"({x} + {y})",
        f"({x} - {y})",
        f"({x} * 3)",
        f"({x} // 4)",
        f"({x} % 5)",
        f"({x} ^ {y})",
        f"({x} & 31)",
        f"(-{x})",
        f"(~{x})",
        f"({x} if {draw(condition(0))} else {y})",
        f"min({x}, {y})",
        f"max({x}, {y}, 3)",
        f"sum([{x}, {y}])",
        f"sum(z * 2 for z in ({x}, {y}))",
        f"sign({x})",
        f"find(I, {x} & 7, {y} & 7)",
        f"steps({x} & 15)",
        f"power({x} & 7, 3)",
        "p.sum",
        f"(q + {x}).sum",
        f"(lambda z, by=2: z * by + c)({x})",
        f"[{x}, {y}][1]",
        f"abs({x} & 255)",
        f"sorted([{x}, {y}, 2, c])[{draw(st.integers(0, 3))}]",
        f"sorted([({x} & 1, {y}), ({y} & 1, 3), (0, a)], key=lambda z: z[0])[1][1]",
        f"sum(numbers({x}, 2))",
        f"[z ^ 1 for z in nested({x})][2]",
        f"(h + {x}).v",
        f"(Wide({x}) + {y}).size",
        f"g[{x} & 3]",
        f"g({x})",
        "g.size",
        "sum(g)",
        f"sum(map(sign, ({x}, {y})))",
        f"functools.reduce(larger, ({x}, {y}, 3))",
        f"functools.partial(larger, {x})({y})",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def number(draw: DrawFn, depth: int = 1) -> str:
    if depth == 0:
        return draw(st.sampled_from([*FLOATS, "F[2]", "fx.Float64(1.5)"]))
    x, y = draw(number(depth - 1)), draw(number(depth - 1))
    forms = [f"({x} + {y})", f"({x} - {y} * 0.5)", f"({x} if {draw(condition(0))} else {y})"]
    return draw(st.sampled_from([*forms, f"max({x}, {y})"]))


@st.composite
def condition(draw: DrawFn, depth: int = 1) -> str:
    x, y = draw(st.sampled_from(INTS)), draw(st.sampled_from(INTS))
    plain = [
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
    ]
    if depth == 0:
        return draw(st.sampled_from(plain))
    one, two = draw(condition(depth - 1)), draw(condition(depth - 1))
    deep = [
        f"({one}) and ({two})",
        f"({one}) or ({two})",
        f"not ({one})",
        f"any([{one}, {two}])",
        f"all(z > 1 for z in ({x}, {y}))",
        f"any(I[z] == {x} & 7 for z in range(3))",
        one,
        f"({one}) and (c := fx.Int32({x} + 1)) > {y}",
        f"(c := fx.Int32({x} ^ 3)) < {y} or ({two})",
        f"{x} < (c := fx.Int32({y} - 2)) < 30",
    ]
    return draw(st.sampled_from(deep))


@st.composite
def block(draw: DrawFn, depth: int, loops: int = 0, returns: bool = True) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statement(depth, loops, returns))
    if loops and draw(st.integers(0, 5)) == 0:
        leave = draw(st.sampled_from(["break", "continue"]))
        lines += [f"if {draw(condition())}:", f"    {leave}"]
        lines += draw(statement(0, loops, returns))
    return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


_SIMPLE = ("int", "int", "float", "augmented", "swap", "store", "item", "attribute", "anew", "call")
_DEEP = ("if", "if", "for", "each", "while", "match", "try", "with", "leave")


@st.composite
def statement(draw: DrawFn, depth: int, loops: int, returns: bool) -> list[str]:
    kind = draw(st.sampled_from(_SIMPLE if depth == 0 else (*_SIMPLE, *_DEEP)))

    def inner(more: int = 0) -> list[str]:
        return indented(draw(block(depth - 1, loops + more, returns)))

    match kind:
        case "int":
            return [f"{draw(st.sampled_from('abc'))} = fx.Int32({draw(integer())})"]
        case "float":
            return [f"w = fx.Float64({draw(number())})"]
        case "augmented":
            where = draw(st.sampled_from(["a", "c", "t[0]", "t[1]", "p.x"]))
            return [f"{where} {draw(st.sampled_from('+-^'))}= {draw(integer(0))}"]
        case "swap":
            return ["a, (c, b) = b, (a, c)"]
        case "store":
            where = draw(st.sampled_from(["7", "c & 7"]))
            return [f"I[{where}] = {draw(integer(1))}", f"F[{where}] += {draw(number(0))}"]
        case "item":
            if draw(st.booleans()):
                return [f"t[2] = {draw(number())}"]
            return [f"t[{draw(st.integers(0, 1))}] = fx.Int32({draw(integer())})"]
        case "attribute":
            return [f"p.{draw(st.sampled_from('xy'))} = fx.Int32({draw(integer())})"]
        case "anew":
            x, y = draw(integer(1)), draw(integer(0))
            return [
                draw(
                    st.sampled_from(
                        [
                            f"q = Pair(fx.Int32({x}), fx.Int32({y}))",
                            f"q = q + {y}",
                            f"h = Wide((h + {y}).v)",
                            f"h = Wide({x})",
                            f"g += {y}",
                            f"g[{y} & 3] = {x}",
                            f"g.size = {x}",
                            f"s = (fx.Int32({x}), (fx.Int32({y}), s[1][1]))",
                        ]
                    )
                )
            ]
        case "call":
            x, y = draw(integer(0)), draw(integer(0))
            return [f"v = [{x}, {y}]", f"k = (k + bump(v, {draw(integer(0))})) ^ v[0]"]
        case "if":
            lines = [f"if {draw(condition())}:", *inner()]
            if draw(st.booleans()):
                lines += [f"elif {draw(condition())}:", *inner()]
            return [*lines, "else:", *inner()] if draw(st.booleans()) else lines
        case "for":
            bounds = draw(
                st.sampled_from(["a & 7", "3", "b & 7, -2, -2", "1, 9, (a & 3) + 1", "20", "2, 6"])
            )
            lines = [f"for i{loops} in range({bounds}):", *inner(1), f"    c = c + i{loops}"]
            if bounds == "3" and draw(st.booleans()):  # a list, indexed while the loop is traced
                lines += [f"    d[i{loops}] = d[i{loops}] ^ {draw(integer(0))} + i{loops}"]
            return [*lines, "else:", *inner()] if draw(st.booleans()) else lines
        case "each":
            items = draw(
                st.sampled_from(
                    [
                        "(a, b, 3)",
                        "[x + 1 for x in (c, 2)]",
                        "reversed([a, c])",
                        "numbers(c, 3)",
                        "nested(b)",
                        "Gauge(c)",
                        "map(lambda x: x + 1, numbers(a, 2))",
                    ]
                )
            )
            lines = [f"for e{loops} in {items}:", *inner(1), f"    c = c - e{loops}"]
            return [*lines, "else:", *inner()] if draw(st.booleans()) else lines
        case "while":
            lines = [f"n{loops} = fx.Int32(b & 7)", f"while n{loops} > 0:"]
            # Python numbers take the types that they have at the end of an iteration.
            lines += [f"    n{loops} = n{loops} - 1", *inner(1)]
            lines += [f"    y, z = y + u * 0.5, z + fx.Int64({draw(integer(0))})"]
            return [*lines, "else:", *inner()] if draw(st.booleans()) else lines
        case "match":
            subject = draw(st.sampled_from(["c & 7", "(a & 3, b)", "[c, (a & 1, b)]"]))
            if subject == "c & 7":
                cases = ["1", "2 | 3", f"x{loops} if x{loops} > 5", "_"]
            elif subject[0] == "(":
                cases = ["(1, _)", f"(2 | 3, x{loops})", f"(0, x{loops}) if x{loops} > 2"]
            else:
                cases = [f"[2, *x{loops}]", f"[_, (1, x{loops})]", f"(x{loops}, _)"]
            lines = [f"match {subject}:"]
            for case in cases:
                lines += [f"    case {case}:", *indented(inner())]
            return lines
        case "try":
            raised = draw(st.sampled_from(['{"x": a}["y"]', "[a, b][5]", "[a, b][1]"]))
            # An exception can't leave what follows a dynamic exit.
            body = indented(draw(block(depth - 1, 0, returns=False)))
            lines = ["try:", *body, f"    c = c + {raised}", "except LookupError:", *inner()]
            if draw(st.booleans()):
                lines += ["else:", *inner()]
            return [*lines, "finally:", "    k = k + 1"] if draw(st.booleans()) else lines
        case "with":
            manager = draw(st.sampled_from(["Scaled", "Gauge"]))
            return [
                f"with {manager}({draw(integer(0))}) as by{loops}:",
                *inner(),
                f"    c = c + by{loops}",
            ]
        case "leave":
            words = ["break", "continue"] * bool(loops) + ["return"] * returns
            word = draw(st.sampled_from(words or ["pass"]))
            last = indented(TAIL.splitlines()) if word == "return" else []
            return [f"if {draw(condition())}:", *inner(), *last, f"    {word}"]
    raise AssertionError(kind)


def bodies() -> SearchStrategy[str]:
    """Bodies of kernels."""
    return block(2).map(lambda lines: HEAD + "\n".join(lines) + "\n" + TAIL)


def scalars() -> SearchStrategy[tuple[int, int, float, float]]:
    integers = st.integers(-40, 40) | st.sampled_from([2**31 - 1, -(2**31), 2**30])
    reals = st.floats(-50, 50, allow_nan=False, width=32)
    return st.tuples(integers, integers, reals, reals)
