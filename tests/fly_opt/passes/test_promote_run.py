"""Random programs on registers, through loops and branches: promoted, run, compared with Python.

A program works on six registers. Which branches it takes, and how often its loops run, depend on
the lane, so that one launch takes 64 ways through it.
"""

import random
from collections.abc import Iterator

import numpy as np
from atom_kernels import Held, fragment, module

import fly
from fly.chains.chain import results

REGISTERS, LANES, PROGRAMS = 6, 64, 12
OUT = Held("i32", REGISTERS)
POINTER = "!fly.ptr<i32, register>"
VECTOR = "vector<2xi32>"


def program(draw: random.Random, depth: int = 3) -> list[tuple]:
    """A list of statements, some of which hold lists."""
    made = []
    for _ in range(draw.randint(1, 4)):
        kind = draw.choice(("add", "add", "pair", "local", *("if", "for", "while") * (depth > 0)))
        at, other = draw.randrange(REGISTERS - 1), draw.randrange(REGISTERS - 1)
        if kind in ("add", "pair", "local"):
            made.append((kind, at, other, draw.randint(-5, 5)))
        else:
            bodies = [program(draw, depth - 1), program(draw, depth - 1)]
            made.append((kind, draw.randrange(5), bodies[: draw.randint(1, 2)]))
    return made


def interpret(statements: list[tuple], registers: list[int], lane: int) -> None:
    for kind, *parts in statements:
        if kind == "add":
            at, other, number = parts
            registers[at] = wrapped(registers[at] * 3 + registers[other] + number)
        elif kind == "pair":
            at, other, _ = parts
            registers[at : at + 2] = registers[other : other + 2]
        elif kind == "local":
            at, other, number = parts
            registers[at] = wrapped(registers[other] + number)
        else:
            bit, bodies = parts
            if kind == "if":
                chosen = bodies[0] if lane >> bit & 1 else bodies[-1] if len(bodies) > 1 else []
                interpret(chosen, registers, lane)
                continue
            for _ in range(lane >> bit & 3):
                interpret(bodies[0], registers, lane)


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


class Writer:
    """A program as ops of the fly dialect and scf."""

    def __init__(self) -> None:
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def place(self, at: int) -> tuple[str, list[str]]:
        offset, pointer = self.name(), self.name()
        tuple_ = f"!fly.int_tuple<{at}>"
        return pointer, [
            f"{offset} = fly.make_int_tuple() : () -> {tuple_}",
            f"{pointer} = fly.add_offset(%r, {offset}) : ({POINTER}, {tuple_}) -> {POINTER}",
        ]

    def load(self, at: int, type_: str = "i32") -> tuple[str, list[str]]:
        value, (pointer, lines) = self.name(), self.place(at)
        return value, [*lines, f"{value} = fly.ptr.load({pointer}) : ({POINTER}) -> {type_}"]

    def store(self, value: str, at: int, type_: str = "i32") -> list[str]:
        pointer, lines = self.place(at)
        return [*lines, f"fly.ptr.store({value}, {pointer}) : ({type_}, {POINTER}) -> ()"]

    def sum(self, *terms: str) -> tuple[str, list[str]]:
        total, lines = terms[0], []
        for term in terms[1:]:
            name = self.name()
            lines.append(f"{name} = arith.addi {total}, {term} : i32")
            total = name
        return total, lines

    def constant(self, number: int) -> tuple[str, list[str]]:
        name = self.name()
        return name, [f"{name} = arith.constant {number} : i32"]

    def masked(self, bit: int, mask: int) -> tuple[str, list[str]]:
        (amount, first), (ones, second) = self.constant(bit), self.constant(mask)
        moved, kept = self.name(), self.name()
        return kept, [
            *(*first, *second),
            f"{moved} = arith.shrui %lane, {amount} : i32",
            f"{kept} = arith.andi {moved}, {ones} : i32",
        ]

    def statements(self, statements: list[tuple]) -> Iterator[str]:
        for kind, *parts in statements:
            yield from getattr(self, f"write_{kind}")(*parts)

    def write_add(self, at: int, other: int, number: int) -> Iterator[str]:
        own, lines = self.load(at)
        yield from lines
        value, lines = self.load(other)
        yield from lines
        constant, lines = self.constant(number)
        yield from lines
        total, lines = self.sum(own, own, own, value, constant)
        yield from lines
        yield from self.store(total, at)

    def write_pair(self, at: int, other: int, _: int) -> Iterator[str]:
        value, lines = self.load(other, VECTOR)
        yield from lines
        yield from self.store(value, at, VECTOR)

    def write_local(self, at: int, other: int, number: int) -> Iterator[str]:
        """Through registers of its own, which live where they are allocated."""
        local, value, back = self.name(), self.name(), self.name()
        yield f"{local} = fly.make_ptr() {{dictAttrs = {{allocSize = 1 : i64}}}} : () -> {POINTER}"
        source, lines = self.load(other)
        yield from lines
        constant, lines = self.constant(number)
        yield from lines
        yield f"{value} = arith.addi {source}, {constant} : i32"
        yield f"fly.ptr.store({value}, {local}) : (i32, {POINTER}) -> ()"
        yield f"{back} = fly.ptr.load({local}) : ({POINTER}) -> i32"
        yield from self.store(back, at)

    def write_if(self, bit: int, bodies: list[list[tuple]]) -> Iterator[str]:
        kept, lines = self.masked(bit, 1)
        yield from lines
        holds = self.name()
        yield f"{holds} = arith.trunci {kept} : i32 to i1"
        yield f"scf.if {holds} {{"
        yield from self.statements(bodies[0])
        if len(bodies) > 1:
            yield "} else {"
            yield from self.statements(bodies[1])
        yield "}"

    def write_for(self, bit: int, bodies: list[list[tuple]]) -> Iterator[str]:
        kept, lines = self.masked(bit, 3)
        yield from lines
        end, index = self.name(), self.name()
        yield f"{end} = arith.index_cast {kept} : i32 to index"
        yield f"scf.for {index} = %i0 to {end} step %i1 {{"
        yield from self.statements(bodies[0])
        yield "}"

    def write_while(self, bit: int, bodies: list[list[tuple]]) -> Iterator[str]:
        kept, lines = self.masked(bit, 3)
        yield from lines
        left, more, inside, next_ = (self.name() for _ in range(4))
        yield f"scf.while ({left} = {kept}) : (i32) -> (i32) {{"
        yield f"{more} = arith.cmpi sgt, {left}, %zero : i32"
        yield f"scf.condition({more}) {left} : i32"
        yield f"}} do {{\n^bb0({inside}: i32):"
        yield from self.statements(bodies[0])
        yield f"{next_} = arith.addi {inside}, %minus : i32"
        yield f"scf.yield {next_} : i32\n}}"


def kernel(name: str, statements: list[tuple]) -> str:
    writer = Writer()
    lines = [
        f"gpu.func @{name}(%A: {OUT.memref}) kernel {{",
        "%t = gpu.thread_id x",
        "%lane = arith.index_cast %t : index to i32",
        "%i0 = arith.constant 0 : index",
        "%i1 = arith.constant 1 : index",
        "%zero = arith.constant 0 : i32",
        "%minus = arith.constant -1 : i32",
        *fragment("A", OUT),
        f"%r = fly.make_ptr() {{dictAttrs = {{allocSize = {REGISTERS} : i64}}}} : () -> {POINTER}",
    ]
    for at in range(REGISTERS):
        constant, made = writer.constant(at)
        value, added = writer.sum("%lane", constant)
        lines += [*made, *added, *writer.store(value, at)]
    lines += writer.statements(statements)
    value, loaded = writer.load(0, f"vector<{REGISTERS}xi32>")
    lines += loaded
    lines.append(
        f"fly.ptr.store({value}, %pA) : (vector<{REGISTERS}xi32>, !fly.ptr<i32, global>) -> ()"
    )
    return "\n  ".join([*lines, "gpu.return"]) + "\n}"


def test_promoted_programs_compute_what_memory_would():
    draw = random.Random(7)
    programs = [program(draw) for _ in range(PROGRAMS)]
    source = module(*(kernel(f"k{i}", body) for i, body in enumerate(programs)))
    made = [data for _, data in results(fly.chain("gfx942"), source)]
    assert b"alloca" not in made[0]
    code = fly.load(made[-1])
    for number, body in enumerate(programs):
        result = np.zeros((LANES, REGISTERS), np.int32)
        code.launch(f"k{number}", 1, LANES, [result])
        for lane in range(LANES):
            registers = [lane + at for at in range(REGISTERS)]
            interpret(body, registers, lane)
            assert list(result[lane]) == registers, (number, lane, body)
