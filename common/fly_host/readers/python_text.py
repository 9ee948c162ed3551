"""The Python text of a host program: what `fly_host.readers.python_code` compiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from fly_host import program as steps
from fly_host.integers import DIVISIONS, HIGHEST, LOWEST
from fly_host.program import Operand, Program, Step, Tensor
from fly_host.readers.interpreter import MOST_ITERATIONS, needed_first

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "shr": ">>",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<="}


def numbered(program: Program) -> list[Step]:
    """The steps by the numbers that the text has for them."""
    return list(steps.every_step(program.steps))


class Writer:
    """Writes the function of one program. `visible` has the expressions with a value where the
    writer is, `tensors` and `variables` what is named there."""

    def __init__(self, program: Program):
        self.program = program
        self.lines: list[str] = []
        self.depth = 0
        self.visible: set[int] = set()
        self.tensors: dict[str, str] = {}
        self.variables: list[int] = []
        self.numbers = {id(step): n for n, step in enumerate(numbered(program))}
        self.buffers = {t.name: t for t in program.tensors}
        leaves = ("extent", "stride")
        self.asked = {e[1] for e in program.expressions if e[0] in leaves}

    def text(self) -> str:
        self.write("def run(machine, arguments):")
        with self.inside():
            self.parameters()
            self.first()
            self.steps(self.program.steps)
            self.write(f"return {self.result(self.program.results)}")
        return "\n".join(self.lines) + "\n"

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """An indented block; what is computed in it is not visible behind it."""
        before = set(self.visible), dict(self.tensors), list(self.variables)
        self.depth += 1
        yield
        self.depth -= 1
        self.visible, self.tensors, self.variables = before

    def parameters(self) -> None:
        for parameter in self.program.parameters:
            if isinstance(parameter, Tensor):
                self.tensor(parameter.name, f"arguments[{parameter.name!r}]")

    def tensor(self, name: str, value: str) -> None:
        """Names a tensor."""
        known = self.tensors[name] = f"t{self.place(name)}"
        self.write(f"{known} = {value}")
        if name in self.asked:
            self.write(f"x{known[1:]} = machine.extents({known})")

    def place(self, name: str) -> int:
        given = [p.name for p in self.program.parameters]
        return given.index(name) if name in given else len(given) + list(self.buffers).index(name)

    # -- integers

    def first(self) -> None:
        """Computes what is needed in any case, and looks at the launches."""
        needed = needed_first(self.program)
        indices = sorted({index for _, some in needed for index in some})
        if indices:
            self.write("try:")
            with self.kept():
                self.compute(indices)
            self.write("except (ZeroDivisionError, ValueError, KeyError, TypeError):")
            self.write("    raise Doubt from None")
            self.in_range(self.visible)
        for step, some in needed:
            if isinstance(step, steps.Check):
                self.write(f"if not e{step.condition}:")
                self.write("    raise Doubt")
            elif isinstance(step, steps.Launch) and len(some) == len(steps.needs(step)):
                sizes = self.sizes(step)
                words = [
                    f"[{', '.join(self.integer_word(word) for word in words)}]"
                    for words in step.arguments
                ]
                at = f"steps[{self.numbers[id(step)]}]"
                self.write(f"machine.look_at({at}, {sizes}, [{', '.join(words)}])")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """An indented block whose values stay visible."""
        self.depth += 1
        yield
        self.depth -= 1

    def integer_word(self, word: steps.Word) -> str:
        return f"e{word.expression}" if word.kind == "integer" else "None"

    def compute(self, indices: Iterable[int]) -> list[int]:
        """Writes the expressions that have no value yet, operands first; which they were."""
        written: list[int] = []
        waiting = list(indices)[::-1]
        while waiting:
            index = waiting.pop()
            if index in self.visible:
                continue
            kind, *operands = self.program.expressions[index]
            leaf = kind in steps.LEAVES
            missing = [] if leaf else [n for n in operands if n not in self.visible]
            if missing:
                waiting += (index, *missing)
                continue
            self.write(f"e{index} = {self.formula(kind, operands)}")
            if kind == "mul":  # numbers must not grow without end
                self.write(f"if not {LOWEST} <= e{index} <= {HIGHEST}: raise ValueError")
            self.visible.add(index)
            written.append(index)
        return written

    def formula(self, kind: str, operands: list[Any]) -> str:
        if kind == "const":
            return str(operands[0])
        if kind == "variable":
            return f"v{operands[0]}"
        if kind == "scalar":
            return f"integer(arguments[{operands[0]!r}])"
        if kind in ("extent", "stride"):
            name, dimension = operands
            field = "shape" if kind == "extent" else "strides"
            return f"x{self.tensors[name][1:]}.{field}[{dimension}]"
        if kind == "select":
            condition, a, b = operands
            return f"e{a} if e{condition} else e{b}"
        a, b = operands
        if kind in _INFIX:
            return f"e{a} {_INFIX[kind]} e{b}"
        if kind in _COMPARISONS:
            return f"int(e{a} {_COMPARISONS[kind]} e{b})"
        if kind == "ceildiv":
            return f"-(-e{a} // e{b})"
        if kind == "rem":
            return f"e{a} - e{b} * truncdiv(e{a}, e{b})"
        if kind == "shl":
            return f"shift_left(e{a}, e{b})"
        assert kind in ("min", "max", "truncdiv")
        return f"{kind}(e{a}, e{b})"

    def in_range(self, indices: Iterable[int]) -> None:
        """Doubts values that may be beyond 64 bits, and shifts by too much."""
        # Others give one of their operands, or a bit.
        grows = ("add", "sub", "shl", *DIVISIONS)
        expressions = self.program.expressions
        wide = [f"e{n}" for n in sorted(indices) if expressions[n][0] in grows]
        for part in (wide[at : at + 100] for at in range(0, len(wide), 100)):
            least, greatest = (
                (f"min({', '.join(part)})", f"max({', '.join(part)})")
                if len(part) > 1
                else (part[0], part[0])
            )
            self.write(f"if {least} < {LOWEST} or {greatest} > {HIGHEST}:")
            self.write("    raise Doubt")
        for index in sorted(indices):
            if expressions[index][0] == "shr":
                self.write(f"if e{expressions[index][2]} > 63:")
                self.write("    raise Doubt")

    def need(self, *indices: int) -> None:
        """Sees that expressions have values at a step."""
        missing = [index for index in dict.fromkeys(indices) if index not in self.visible]
        if not missing:
            return
        before = set(self.visible)
        self.write("try:")
        with self.kept():
            written = self.compute(missing)
            self.in_range(written)
        self.write("except (Doubt, ZeroDivisionError, ValueError, KeyError, TypeError):")
        with self.kept():
            self.write(f"values = {self.values()}")
            for index in missing:
                self.write(f"e{index} = values[{index}]")
        # Of the others only those of the first way are known.
        self.visible = before | set(missing)

    def values(self) -> str:
        tensors = ", ".join(f"{name!r}: {held}" for name, held in self.tensors.items())
        variables = ", ".join(f"{number}: v{number}" for number in self.variables)
        return f"resolve(program, machine, arguments, {{{tensors}}}, {{{variables}}})"

    def tuple(self, indices: tuple[int, ...]) -> str:
        return f"({''.join(f'e{index}, ' for index in indices).rstrip()})"

    def sizes(self, launch: steps.Launch) -> str:
        return f"{self.tuple(launch.grid)}, {self.tuple(launch.block)}, e{launch.shared}"

    # -- steps

    def steps(self, block: tuple[Step, ...]) -> None:
        for step in block:
            self.step(step)

    def step(self, step: Step) -> None:
        at = f"steps[{self.numbers[id(step)]}]"
        self.need(*steps.needs(step))
        if isinstance(step, steps.Check):
            self.write(f"if not e{step.condition}:")
            self.write(f"    failed({at}, {self.values()})")
        elif isinstance(step, steps.Allocate):
            buffer = self.layout(step.buffer)
            shape, strides = self.tuple(buffer.shape), self.tuple(buffer.strides)
            held = f"program.tensors[{list(self.buffers).index(step.buffer)}]"
            made = f"machine.allocate({held}, {shape}, {strides}, e{buffer.elements})"
            self.tensor(step.buffer, made)
        elif isinstance(step, steps.Free):
            self.write(f"machine.free({self.tensors.pop(step.buffer)})")
        elif isinstance(step, steps.Launch):
            words = [
                f"[{', '.join(self.word(word) for word in words)}]" for words in step.arguments
            ]
            stream = "None" if step.stream is None else f"arguments.get({step.stream!r})"
            sizes = self.sizes(step)
            self.write(f"machine.launch({at}, {sizes}, [{', '.join(words)}], {stream})")
        elif isinstance(step, steps.Call):
            self.call(step, at)
        elif isinstance(step, steps.Loop):
            self.loop(step)
        else:
            self.branch(step)

    def layout(self, name: str) -> steps.Buffer:
        buffer = self.buffers[name]
        assert isinstance(buffer, steps.Buffer)
        self.need(*buffer.shape, *buffer.strides, buffer.elements)
        return buffer

    def word(self, word: steps.Word) -> str:
        if word.kind == "pointer":
            offset = "0" if word.expression is None else f"e{word.expression}"
            return f"({self.tensors[str(word.name)]}, {offset})"
        if word.descriptor is not None:
            shape, strides = word.descriptor.shape, word.descriptor.strides
            tensor = self.tensors[str(word.name)]
            return f"({tensor}, {self.tuple(shape)}, {self.tuple(strides)})"
        return f"arguments[{word.name!r}]" if word.kind == "scalar" else f"e{word.expression}"

    def call(self, call: steps.Call, at: str) -> None:
        arguments = ", ".join(map(self.operand, call.arguments))
        keywords = ", ".join(f"{name!r}: {self.operand(held)}" for name, held in call.keywords)
        buffers = [self.layout(name) for name in call.results]
        self.write(f"made = machine.call({at}, [{arguments}], {{{keywords}}})")
        self.write(f"if len(made) != {len(call.results)}:")
        self.write(f"    wrong_count({at}, made)")
        for number, (name, buffer) in enumerate(zip(call.results, buffers, strict=True)):
            shape, strides = self.tuple(buffer.shape), self.tuple(buffer.strides)
            held = f"program.tensors[{list(self.buffers).index(name)}]"
            self.write(f"machine.check_made({held}, made[{number}], {shape}, {strides})")
            self.tensor(name, f"made[{number}]")

    def operand(self, operand: Operand) -> str:
        value = operand.value
        if operand.kind == "tensor":
            return self.tensors[value]
        if operand.kind == "view":
            self.need(*steps.of_operand(operand))
            shape, strides = self.tuple(value.shape), self.tuple(value.strides)
            return (
                f"machine.view({self.tensors[value.tensor]}, {shape}, {strides}, e{value.offset})"
            )
        if operand.kind == "integer":
            self.need(value)
            return f"e{value}"
        return f"arguments[{value!r}]" if operand.kind == "scalar" else repr(value)

    def variable(self, number: int, value: str) -> None:
        self.write(f"v{number} = {value}")
        self.variables.append(number)

    def loop(self, loop: steps.Loop) -> None:
        for carried in loop.carried:
            self.variable(carried.variable, f"e{carried.initial}")
        for carried in loop.tensors:
            self.tensor(carried.variable, self.tensors[carried.initial])
        count = f"count{self.depth}"
        self.write(f"{count} = 0")
        self.write("while True:")
        with self.inside():
            self.need(loop.condition)
            self.write(f"if not e{loop.condition}:")
            self.write("    break")
            self.write(f"{count} += 1")
            self.write(f"if {count} > {MOST_ITERATIONS}:")
            self.write("    endless(program)")
            self.steps(loop.body)
            self.need(*(carried.next for carried in loop.carried))
            following = [(f"v{c.variable}", f"e{c.next}") for c in loop.carried]
            for carried in loop.tensors:
                a, b = self.tensors[carried.variable], self.tensors[carried.next]
                following.append((a, b))
                if carried.variable in self.asked:
                    following.append((f"x{a[1:]}", f"machine.extents({b})"))
            if following:
                names, held = zip(*following, strict=True)
                self.write(f"{', '.join(names)} = {', '.join(held)}")
        for carried in loop.carried:
            self.variable(carried.result, f"v{carried.variable}")
        for carried in loop.tensors:
            self.tensor(carried.result, self.tensors[carried.variable])

    def branch(self, branch: steps.Branch) -> None:
        for keyword, side in ((f"if e{branch.condition}:", "then"), ("else:", "otherwise")):
            self.write(keyword)
            with self.inside():
                self.steps(getattr(branch, side))
                for chosen in branch.integers:
                    self.need(getattr(chosen, side))
                    self.variable(chosen.result, f"e{getattr(chosen, side)}")
                for chosen in branch.tensors:
                    self.tensor(chosen.result, self.tensors[getattr(chosen, side)])
                self.write("pass")
        self.variables += [chosen.result for chosen in branch.integers]
        for chosen in branch.tensors:
            self.tensors[chosen.result] = f"t{self.place(chosen.result)}"

    def result(self, result: steps.Result) -> str:
        if isinstance(result, tuple):
            return f"({''.join(self.result(part) + ', ' for part in result)})"
        return "None" if result is None else self.operand(result)
