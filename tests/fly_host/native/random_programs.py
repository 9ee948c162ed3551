"""Random programs with arguments that fit them, for readers to agree on. A number tells which: they
have no structure that could be shrunk, so that all kinds of steps are as likely."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from fly_host import program as host
from fly_host.program import BINARY, Operand, Program, Word
from fly_host.validation import validate
from fly_numerics.element_types import ELEMENT_TYPES

DTYPES = ("f32", "i8", "f64", "i32", "bf16", "u8")
SCALARS = ("i32", "i64", "u64", "u8", "bool", "f32", "f16", "bf16", "f64")
EDGES = (
    0,
    1,
    2,
    3,
    4,
    7,
    -1,
    -2,
    63,
    64,
    256,
    1 << 31,
    1 << 32,
    1 << 62,
    -(1 << 63),
    (1 << 63) - 1,
)


@dataclass(frozen=True)
class Case:
    """A program and how to make its arguments: for tensors shape, strides and whether they are
    reversed, for other parameters their values."""

    program: Program
    arguments: tuple[Any, ...]
    kind: str


@dataclass(frozen=True)
class Layout:
    """An array's extents, and the order of its dimensions in memory from the outermost in; `gap`
    elements lie between those of the innermost."""

    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...]
    gap: int = 0
    reversed: bool = False

    def strides(self) -> tuple[int, ...]:
        found, step = [0] * len(self.shape), 1 + self.gap
        for dimension in reversed(self.order):
            found[dimension] = step
            step *= max(self.shape[dimension], 1)
        return tuple(found)

    def make(self, kind: str) -> Any:
        """A new array: NumPy's or torch's."""
        import numpy

        row = ELEMENT_TYPES[self.dtype]
        size = (1 + self.gap) * max(1, int(numpy.prod([max(n, 1) for n in self.shape])))
        strides = self.strides()
        if kind == "torch":
            import torch

            memory = torch.zeros(size, dtype=getattr(torch, row.long_name))
            return memory.as_strided(self.shape, strides)
        memory = numpy.zeros(size, row.numpy)
        steps = tuple(stride * memory.itemsize for stride in strides)
        array = numpy.ndarray(self.shape, memory.dtype, memory, 0, steps)
        return array[::-1] if self.reversed and self.shape else array


class Maker:
    """Makes one program."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.kind = self.random.choice(("numpy", "torch"))
        self.expressions: list[Any] = []
        self.parameters: list[Any] = []
        self.arguments: list[Any] = []
        self.declared: list[Any] = []
        self.tensors: dict[str, tuple[str, int]] = {}  # visible: dtype, rank
        self.variables: list[int] = []
        self.count = 0
        self.outside: set[str] = set()  # what the block that is being made must not free

    def one_of(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def often(self, times: int = 4) -> bool:
        """True but for once in `times`."""
        return self.number(1, times) > 1

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    # -- parameters
    def make_parameters(self) -> None:
        symbols: dict[str, int] = {}
        for _ in range(self.number(0, 3)):
            self.tensor_parameter(symbols)
        for _ in range(self.number(0, 3)):
            self.scalar_parameter()
        if self.number(0, 3) == 0:
            self.parameters.append(host.Stream("stream"))
            self.arguments.append(self.one_of(None, 5))

    def tensor_parameter(self, symbols: dict[str, int]) -> None:
        name, dtype = self.name(), self.one_of(*DTYPES)
        rank = self.number(0, 3)
        stated: list[Any] = []
        shape: list[int] = []
        for _ in range(rank):
            extent = self.one_of(0, 1, 1, 2, 3, 4) if self.often() else 2
            how = self.one_of("any", "number", "symbol")
            if how == "symbol":
                symbol = self.one_of("n", "m")
                extent = symbols.setdefault(symbol, extent)
                stated.append(symbol)
            else:
                stated.append(extent if how == "number" else None)
            shape.append(extent)
        access = self.one_of("r", "w", "rw")
        contiguous = self.one_of(False, False, True)
        order = tuple(range(rank))
        gap = 0
        flipped = False
        if not contiguous:
            turned = tuple(reversed(order))
            order = self.one_of(order, turned)
            if rank == 3:
                order = self.one_of(order, (1, 0, 2), (0, 2, 1))
            gap = self.one_of(0, 0, 1)
            flipped = self.kind == "numpy" and self.number(0, 3) == 0
        layout = Layout(dtype, tuple(shape), order, gap, flipped)
        strides = list(layout.strides())
        if flipped and rank:
            strides[0] = -strides[0]
        known = [stride if self.one_of(False, False, True) else None for stride in strides]
        multiples: tuple[int, ...] = ()
        if self.number(0, 2) == 0:
            seen = [
                s if n > 1 and 0 not in shape else 0 for n, s in zip(shape, strides, strict=True)
            ]
            multiples = tuple(
                self.one_of(*(d for d in (1, 2, 3) if value % d == 0)) for value in (*shape, *seen)
            )
        self.parameters.append(
            host.Tensor(
                name,
                dtype,
                tuple(stated),
                (None,) * rank if contiguous else tuple(known),
                access,
                contiguous,
                multiples,
            )
        )
        self.arguments.append(layout)
        self.tensors[name] = dtype, rank

    def scalar_parameter(self) -> None:
        name, dtype = self.name(), self.one_of(*SCALARS)
        row = ELEMENT_TYPES[dtype]
        if row.kind == "float":
            value: Any = self.one_of(0.0, 1.5, -2.25, 3, 1e-8, float("inf"), float("nan"), 0.1)
        elif dtype == "bool":
            value = self.one_of(True, False)
        else:
            bits = row.bits - (row.kind == "int")
            low = -(1 << bits) if row.kind == "int" else 0
            value = self.one_of(low, (1 << bits) - 1, 0, 1, 2, 3)
        self.parameters.append(host.Scalar(name, dtype))
        self.arguments.append(value)

    # -- expressions
    def add(self, *expression: Any) -> int:
        if expression in self.expressions:
            found = self.expressions.index(expression)
            if [type(x) for x in self.expressions[found]] == [type(x) for x in expression]:
                return found
        self.expressions.append(expression)
        return len(self.expressions) - 1

    def leaf(self) -> int:
        kinds = ["const", "const"]
        ranked = [name for name, (_, rank) in self.tensors.items() if rank]
        scalars = [p.name for p in self.parameters if isinstance(p, host.Scalar)]
        kinds += ["extent", "stride"] * bool(ranked) + ["scalar"] * bool(scalars)
        kinds += ["variable"] * 2 * bool(self.variables)
        kind = self.one_of(*kinds)
        if kind == "const":
            return self.add(
                "const", self.one_of(*EDGES) if not self.often(3) else self.number(0, 9)
            )
        if kind == "scalar":
            return self.add("scalar", self.one_of(*scalars))
        if kind == "variable":
            return self.add("variable", self.one_of(*self.variables))
        name = self.one_of(*ranked)
        return self.add(kind, name, self.number(0, self.tensors[name][1] - 1))

    def expression(self, depth: int = 3) -> int:
        if depth == 0 or not self.often(3):
            return self.leaf()
        if self.number(0, 4) == 0:
            return self.add("select", *(self.expression(depth - 1) for _ in range(3)))
        op = self.one_of(*sorted(BINARY))
        return self.add(op, self.expression(depth - 1), self.expression(depth - 1))

    def small(self, most: int = 4, least: int = 0) -> int:
        """An integer from `least` to `most`, mostly."""
        if not self.often(40):
            return self.expression(2)
        if self.often(2):
            return self.add("const", self.number(least, most))
        any_ = self.leaf() if self.often(3) else self.expression(1)
        held = self.add("min", any_, self.add("const", most))
        return self.add("max", held, self.add("const", least))

    def extent(self) -> int:
        """An extent of what is allocated: never large, once in a while negative."""
        return self.add("min", self.small(), self.add("const", 5))

    # -- steps
    def steps(self, depth: int) -> list[Any]:
        found: list[Any] = []
        for _ in range(self.number(1 if depth else 0, 3)):
            kinds = ["check", "allocate", "launch", "launch", "call", "free"]
            kinds += ["loop", "branch"] if depth < 2 else []
            found += getattr(self, self.one_of(*kinds))(depth)
        return found

    def check(self, depth: int) -> list[Any]:
        value = self.expression()
        if self.often(8):
            condition = self.add("le", self.small(4), self.add("const", 9))
        else:
            condition = self.add("lt", value, self.expression(2))
        return [host.Check(condition, ("no: ", self.leaf(), " and ", condition))]

    def allocate(self, depth: int) -> list[Any]:
        name, rank = self.name(), self.number(0, 3)
        shape = [self.extent() for _ in range(rank)]
        strides, step = [], self.add("const", self.one_of(1, 1, 1, 2))
        for extent in reversed(shape):
            strides.append(step)
            step = self.add("mul", step, extent)
        if self.often(3):
            elements = step
        else:
            elements = self.add("add", step, self.extent())
        dtype = self.one_of(*DTYPES)
        self.declared.append(
            host.Buffer(name, dtype, tuple(shape), tuple(reversed(strides)), elements)
        )
        self.tensors[name] = dtype, rank
        return [host.Allocate(name)]

    def free(self, depth: int) -> list[Any]:
        """A tensor that this block has made is freed; bodies free none from outside."""
        made = [t.name for t in self.declared if isinstance(t, host.Buffer)]
        mine = [name for name in made if name in self.tensors and name not in self.outside]
        if not mine:
            return []
        name = self.one_of(*mine)
        del self.tensors[name]
        return [host.Free(name)]

    def launch(self, depth: int, every: bool = False) -> list[Any]:
        words: list[Any] = []
        names = list(self.tensors)
        chosen = (
            names if every else [self.one_of(*names) for _ in range(self.number(0, 2)) if names]
        )
        for name in chosen:
            offset = self.small(64) if self.number(0, 2) == 0 else None
            words.append((Word("pointer", name, offset),))
        scalars = [p.name for p in self.parameters if isinstance(p, host.Scalar)]
        for _ in range(self.number(0, 3)):
            if scalars and self.number(0, 1):
                words.append((Word("scalar", self.one_of(*scalars)),))
            else:
                size = self.one_of(8, 4, 2, 1)
                value = self.small(100) if size < 8 else self.leaf()
                words.append((Word("integer", None, value, size),))
        if len(words) > 1 and self.number(0, 3) == 0:
            words[0] = (*words[0], *words.pop())
        one = self.add("const", 1)
        if every:  # its launch is never empty: it writes what is compared
            return [host.Launch("all", (one,) * 3, (one,) * 3, self.add("const", 0), tuple(words))]
        stream = "stream" if any(isinstance(p, host.Stream) for p in self.parameters) else None
        return [
            host.Launch(
                f"k{self.count}",
                (self.small(5, 0 if self.number(0, 3) == 0 else 1), self.small(3, 1), one),
                (self.small(64, 1), one, one),
                self.small(1024),
                tuple(words),
                stream if self.number(0, 1) else None,
            )
        ]

    def call(self, depth: int) -> list[Any]:
        name = self.name()
        extent = self.extent()
        dtype = self.one_of("f32", "i32")
        operands = [Operand("integer", extent), Operand("constant", dtype)]
        if self.tensors and self.number(0, 1):
            operands.append(Operand("tensor", self.one_of(*self.tensors)))
        keywords = (("scale", Operand("constant", (1, 2.0, True))),) if self.number(0, 1) else ()
        one = self.add("const", 1)
        # Once in a while the function breaks its shape rule.
        said = extent if self.often(12) else self.add("add", extent, one)
        self.declared.append(host.Buffer(name, dtype, (said,), (one,), said))
        self.tensors[name] = dtype, 1
        return [host.Call("make", tuple(operands), keywords, (name,))]

    def loop(self, depth: int) -> list[Any]:
        counter, limit = self.fresh(), self.add("const", self.number(0, 3))
        carried = [(counter, self.add("const", 0))]
        if self.number(0, 1):
            carried.append((self.fresh(), self.expression(2)))
        tensors = []
        if self.tensors and self.number(0, 1):
            initial = self.one_of(*self.tensors)
            tensors.append((self.assigned(initial), initial))
        before, outside = (dict(self.tensors), list(self.variables)), self.outside
        self.outside = set(self.tensors)
        for name, initial in tensors:
            self.tensors[name] = self.tensors[initial]
        self.variables += [variable for variable, _ in carried]
        condition = self.add("lt", self.add("variable", counter), limit)
        self.outside |= set(self.tensors)
        body = self.steps(depth + 1)
        nexts = [self.add("add", self.add("variable", counter), self.add("const", 1))]
        nexts += [self.small(50) for _ in carried[1:]]
        following = [self.alike(initial) for _, initial in tensors]
        (self.tensors, self.variables), self.outside = before, outside
        results = [self.fresh() for _ in carried]
        items = tuple(
            host.Carried(variable, initial, after, result)
            for (variable, initial), after, result in zip(carried, nexts, results, strict=True)
        )
        made = []
        for (name, initial), after in zip(tensors, following, strict=True):
            made.append(host.CarriedTensor(name, initial, after, self.assigned(initial)))
        for item in made:
            self.tensors[item.result] = self.tensors[item.initial]
        self.variables += results
        return [host.Loop(items, tuple(made), condition, tuple(body))]

    def branch(self, depth: int) -> list[Any]:
        condition = self.add("lt", self.small(4), self.small(4))
        like = self.one_of(*self.tensors) if self.tensors and self.number(0, 1) else None
        sides, integers, tensors = [], [], []
        for _ in range(2):
            before, outside = (dict(self.tensors), list(self.variables)), self.outside
            self.outside = set(self.tensors)
            sides.append(tuple(self.steps(depth + 1)))
            integers.append(self.small(20))
            tensors.append(self.alike(like) if like else None)
            (self.tensors, self.variables), self.outside = before, outside
        variable = self.fresh()
        self.variables.append(variable)
        chosen = ()
        if like:
            name = self.assigned(like)
            chosen = (host.ChosenTensor(name, tensors[0], tensors[1]),)
            self.tensors[name] = self.tensors[like]
        return [host.Branch(condition, *sides, (host.Chosen(variable, *integers),), chosen)]

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def assigned(self, like: str) -> str:
        name = self.name()
        dtype, rank = self.tensors[like]
        self.declared.append(host.Assigned(name, dtype, rank))
        return name

    def alike(self, like: str) -> str:
        return self.one_of(*(n for n, kind in self.tensors.items() if kind == self.tensors[like]))

    def result(self, depth: int = 0) -> Any:
        kinds = ["integer", "none", "constant"] + ["tensor"] * 3 * bool(self.tensors)
        kinds += ["scalar"] if any(isinstance(p, host.Scalar) for p in self.parameters) else []
        kinds += ["tuple"] * 2 * (depth < 2) + ["view"] * bool(self.tensors)
        kind = self.one_of(*kinds)
        if kind == "none":
            return None
        if kind == "tuple":
            return tuple(self.result(depth + 1) for _ in range(self.number(0, 3)))
        if kind == "tensor":
            return Operand("tensor", self.one_of(*self.tensors))
        if kind == "scalar":
            scalars = [p.name for p in self.parameters if isinstance(p, host.Scalar)]
            return Operand("scalar", self.one_of(*scalars))
        if kind == "constant":
            return Operand("constant", self.one_of(1, 1.0, True, "text", None, (1, (True, 2.5))))
        if kind == "view":
            zero, one = self.add("const", 0), self.add("const", 1)
            view = host.View(self.one_of(*self.tensors), (zero, one), (one, zero), zero)
            return Operand("view", view)
        return Operand("integer", self.leaf())


def case(seed: int) -> Case:
    """The case of a number."""
    maker = Maker(seed)
    maker.make_parameters()
    maker.outside = set(maker.tensors)
    steps = (*maker.steps(0), *maker.launch(0, every=True))
    results = maker.result()
    names = tuple(f"r{number}" for number, _ in enumerate(host.leaves(results)))
    program = Program(
        *("f", "gfx942", tuple(maker.parameters), tuple(maker.expressions), steps),
        *(tuple(maker.declared), results, names),
    )
    validate(program)
    return Case(program, tuple(maker.arguments), maker.kind)
