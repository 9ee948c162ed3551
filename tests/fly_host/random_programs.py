"""Random host programs that are sound: every step, expression and scope, in small."""

from random import Random
from typing import Any

from fly_host import program as made
from fly_host.program import BINARY, Program, Step
from fly_host.readers.values import dependencies

NUMBERS = (0, 1, 2, 3, 4, 7, 16, 255, 256, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)
SMALL = (0, 1, 2, 3, 4, 5)
BINARIES = sorted(BINARY)


class Maker:
    """Makes one program. What is visible where the maker is: `tensors` by rank, `variables`."""

    def __init__(self, random: Random):
        self.random = random
        self.expressions: list[tuple[Any, ...]] = []
        self.parameters: list[made.Parameter] = []
        self.tensors: list[made.Buffer | made.Assigned] = []
        self.visible: dict[str, int] = {}  # tensors → rank
        self.variables: set[int] = set()
        self.next_variable = 0
        self.own: list[str] = []  # buffers that may be freed where the maker is

    def make(self) -> Program:
        random = self.random
        for number in range(random.randint(0, 3)):
            rank = random.randint(0, 3)
            name = "ABC"[number]
            self.parameters.append(made.Tensor(name, "f32", (None,) * rank, (None,) * rank))
            self.visible[name] = rank
        for number in range(random.randint(0, 2)):
            dtype = random.choice(["i64", "i32", "f32"])
            self.parameters.append(made.Scalar("mn"[number], dtype))
        if random.random() < 0.3:
            self.parameters.append(made.Stream("stream"))
        for _ in range(random.randint(1, 20)):
            self.expression()
        steps = self.steps(random.randint(1, 6), 0)
        results, names = self.results()
        return Program(
            entry="random",
            target="gfx942",
            parameters=tuple(self.parameters),
            expressions=tuple(self.expressions),
            steps=steps,
            tensors=tuple(self.tensors),
            results=results,
            result_names=names,
        )

    # -- expressions

    def add(self, *expression: Any) -> int:
        self.expressions.append(expression)
        return len(self.expressions) - 1

    def expression(self) -> int:
        random, kind = self.random, self.random.random()
        scalars = [p.name for p in self.parameters if isinstance(p, made.Scalar)]
        scalars = [p for p in scalars if self.dtype(p) != "f32" or random.random() < 0.05]
        usable = self.usable()
        if kind < 0.15 or not usable:
            return self.add("const", random.choice((*NUMBERS, *SMALL, -1, -(2**63))))
        if kind < 0.3 and (ranked := [name for name, rank in self.visible.items() if rank]):
            name = random.choice(ranked)
            dimension = random.randrange(self.visible[name])
            return self.add(random.choice(("extent", "stride")), name, dimension)
        if kind < 0.36 and scalars:
            return self.add("scalar", random.choice(scalars))
        if kind < 0.45 and self.variables:
            return self.add("variable", random.choice(sorted(self.variables)))
        if kind < 0.55:
            return self.add("select", *(random.choice(usable) for _ in range(3)))
        if kind < 0.85:
            safe = ("add", "sub", "ceildiv", "min", "max", "mul", "lt", "eq", "le", "mod")
            return self.add(random.choice(safe), *(random.choice(usable) for _ in range(2)))
        return self.add(random.choice(BINARIES), *(random.choice(usable) for _ in range(2)))

    def dtype(self, name: str) -> str:
        return next(p.dtype for p in self.parameters if p.name == name)  # type: ignore[union-attr]

    def usable(self) -> list[int]:
        names = set(self.visible) | self.variables
        depends = dependencies(tuple(self.expressions))
        return [index for index, wanted in enumerate(depends) if wanted <= names]

    def some(self) -> int:
        """An expression that is visible here; small and sure mostly, for programs that do much."""
        if self.random.random() < 0.4:
            return self.add("const", self.random.choice(SMALL[1:]))
        usable = self.usable()
        return self.random.choice(usable) if usable else self.expression()

    # -- steps

    def steps(self, count: int, depth: int) -> tuple[Step, ...]:
        return tuple(self.step(depth) for _ in range(count))

    def step(self, depth: int) -> Step:
        random, kind = self.random, self.random.random()
        for _ in range(random.randint(0, 2)):
            self.expression()
        if kind < 0.1:
            message = ("n is ", self.some(), ", not ", self.some())
            return made.Check(self.some(), message)
        if kind < 0.25:
            return made.Allocate(self.buffer())
        if kind < 0.35 and self.own:
            name = self.own.pop(random.randrange(len(self.own)))
            del self.visible[name]
            return made.Free(name)
        if kind < 0.45:
            operands = tuple(self.operand() for _ in range(random.randint(0, 3)))
            keywords = (("out", self.operand()),) if random.random() < 0.3 else ()
            names = (self.buffer(2),) if random.random() < 0.5 else ()
            return made.Call("torch.matmul", operands, keywords, names)
        if kind < 0.6 and depth < 3:
            return self.loop(depth)
        if kind < 0.72 and depth < 3:
            return self.branch(depth)
        return self.launch()

    def buffer(self, rank: int | None = None) -> str:
        rank = self.random.randint(0, 3) if rank is None else rank
        name = f"T{len(self.tensors)}"
        sizes = tuple(self.some() for _ in range(2 * rank + 1))
        self.tensors.append(
            made.Buffer(name, "f32", sizes[:rank], sizes[rank : 2 * rank], sizes[-1])
        )
        self.visible[name] = rank
        self.own.append(name)
        return name

    def launch(self) -> made.Launch:
        words = tuple(
            tuple(self.word() for _ in range(self.random.randint(1, 3)))
            for _ in range(self.random.randint(0, 3))
        )
        sizes = [self.some() for _ in range(7)]
        streams = [p.name for p in self.parameters if isinstance(p, made.Stream)]
        stream = streams[0] if streams and self.random.random() < 0.7 else None
        return made.Launch(
            f"kernel{self.random.randint(0, 2)}",
            (sizes[0], sizes[1], sizes[2]),
            (sizes[3], sizes[4], sizes[5]),
            sizes[6],
            words,
            stream,
        )

    def word(self) -> made.Word:
        kind = self.random.random()
        scalars = [p.name for p in self.parameters if isinstance(p, made.Scalar)]
        if kind < 0.5 and self.visible:
            name = self.random.choice(sorted(self.visible))
            offset = self.some() if self.random.random() < 0.3 else None
            return made.Word("pointer", name, offset)
        if kind < 0.6 and scalars:
            return made.Word("scalar", self.random.choice(scalars))
        return made.Word("integer", expression=self.some(), size=self.random.choice((4, 8)))

    def operand(self) -> made.Operand:
        kind = self.random.random()
        if kind < 0.4 and self.visible:
            return made.Operand("tensor", self.random.choice(sorted(self.visible)))
        if kind < 0.6 and self.visible:
            name, rank = self.random.choice(sorted(self.visible)), self.random.randint(0, 2)
            some = [self.some() for _ in range(2 * rank + 1)]
            view = made.View(name, tuple(some[:rank]), tuple(some[rank : 2 * rank]), some[-1])
            return made.Operand("view", view)
        if kind < 0.8:
            return made.Operand("integer", self.some())
        return made.Operand("constant", self.random.choice((None, True, 3, 2.5, "x", (1, 2))))

    def variable(self) -> int:
        self.next_variable += 1
        return self.next_variable

    def assigned(self, like: str) -> str:
        name = f"T{len(self.tensors)}"
        self.tensors.append(made.Assigned(name, "f32", self.visible[like]))
        return name

    def loop(self, depth: int) -> made.Loop:
        """A loop that counts up to a few, and may carry more."""
        initial, zero = (
            [self.some() for _ in range(self.random.randint(0, 2))],
            self.add("const", 0),
        )
        swapped = self.random.random() < 0.5 and bool(self.visible)
        pair = [self.random.choice(sorted(self.visible)) for _ in range(2)] if swapped else []
        if len(pair) == 2 and self.visible[pair[0]] != self.visible[pair[1]]:
            pair = pair[:1]
        before = dict(self.visible), set(self.variables), self.own
        self.own = []
        counter, carried = self.variable(), [self.variable() for _ in initial]
        self.variables |= {counter, *carried}
        names = [self.assigned(name) for name in pair]
        for name, like in zip(names, pair, strict=True):
            self.visible[name] = self.visible[like]
        limit = self.add("const", self.random.randint(0, 3))
        condition = self.add("lt", self.add("variable", counter), limit)
        body = self.steps(self.random.randint(1, 3), depth + 1)
        following = [self.some() for _ in carried]
        one = self.add("add", self.add("variable", counter), self.add("const", 1))
        self.visible, self.variables, self.own = before
        results = [self.variable() for _ in (counter, *carried)]
        self.variables |= set(results)
        integers = [made.Carried(counter, zero, one, results[0])]
        integers += [
            made.Carried(*parts)
            for parts in zip(carried, initial, following, results[1:], strict=True)
        ]
        tensors = []
        for name, like, other in zip(names, pair, reversed(names), strict=True):
            result = self.assigned(like)
            tensors.append(made.CarriedTensor(name, like, other, result))
        for carried_tensor in tensors:
            self.visible[carried_tensor.result] = self.visible[carried_tensor.initial]
        return made.Loop(tuple(integers), tuple(tensors), condition, body)

    def branch(self, depth: int) -> made.Branch:
        condition = self.some()
        before = dict(self.visible), set(self.variables), self.own
        sides, values, chosen = [], [], []
        names = sorted(self.visible)
        like = self.random.choice(names) if names and self.random.random() < 0.5 else None
        for _ in range(2):
            self.visible, self.variables, self.own = dict(before[0]), set(before[1]), []
            sides.append(self.steps(self.random.randint(0, 2), depth + 1))
            values.append(self.some())
            if like is not None:
                same = [n for n, r in self.visible.items() if r == before[0][like]]
                chosen.append(self.random.choice(same))
        self.visible, self.variables, self.own = before
        result = self.variable()
        self.variables.add(result)
        tensors = ()
        if like is not None:
            name = self.assigned(like)
            self.visible[name] = self.visible[like]
            tensors = (made.ChosenTensor(name, chosen[0], chosen[1]),)
        integers = (made.Chosen(result, values[0], values[1]),)
        return made.Branch(condition, sides[0], sides[1], integers, tensors)

    def results(self) -> tuple[made.Result, tuple[str, ...]]:
        count = self.random.randint(0, 3)
        if count == 0:
            return None, ()
        operands = tuple(self.operand() for _ in range(count))
        names = tuple(f"result{number}" for number in range(count))
        return (operands[0] if count == 1 else operands), names


def arguments(random: Random, program: Program) -> dict[str, Any]:
    """What tells the arguments of a call: (shape, strides) of tensors, numbers, streams."""
    given: dict[str, Any] = {}
    for parameter in program.parameters:
        if isinstance(parameter, made.Tensor):
            rank = len(parameter.shape)
            pool = SMALL if random.random() < 0.7 else NUMBERS
            shape = tuple(random.choice(pool) for _ in range(rank))
            given[parameter.name] = shape, tuple(random.choice(pool) for _ in range(rank))
        elif isinstance(parameter, made.Scalar):
            integer = random.choice((*SMALL, *NUMBERS, -3))
            given[parameter.name] = 1.5 if parameter.dtype == "f32" else integer
        elif random.random() < 0.5:
            given[parameter.name] = "a stream"
    return given
