"""The interpreter of host programs: the reader that the others are held against.

    results = run(program, machine, {"A": a, "n": 1000})

Whatever is needed in any case is computed and checked before the first kernel is launched, so that
a call which can't succeed leaves no tensor half written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from fly_common.errors import InputError, UsageError

from fly_host import program as steps
from fly_host import refusals
from fly_host.program import Operand, Program, Scalar, Step, Tensor
from fly_host.readers.machine import Machine
from fly_host.readers.values import Values, dependencies

MOST_ITERATIONS = 1 << 24  # of one loop; a program that does not end is stopped some time


def run(program: Program, machine: Machine, arguments: Mapping[str, Any]) -> Any:
    """Runs a program on arguments by name, which have been checked against the parameters:
    tensors as the machine has them, numbers, streams. Returns what the program returns.

    InputError for a check that fails and for a needed integer without a value; the machine's
    errors.
    """
    return Interpreter(program, machine, arguments).run()


class Interpreter:
    """One run of a program."""

    def __init__(self, program: Program, machine: Machine, arguments: Mapping[str, Any]):
        self.program, self.machine, self.arguments = program, machine, arguments
        self.tensors = {
            p.name: arguments[p.name] for p in program.parameters if isinstance(p, Tensor)
        }
        self.buffers = {tensor.name: tensor for tensor in program.tensors}
        scalars = {p.name: arguments[p.name] for p in program.parameters if isinstance(p, Scalar)}
        integers = {name: int(value) for name, value in scalars.items() if isinstance(value, int)}
        extents = {name: machine.extents(tensor) for name, tensor in self.tensors.items()}
        self.values = Values(program, extents, integers)

    def run(self) -> Any:
        self.look_ahead()
        self.steps(self.program.steps)
        return self.result(self.program.results)

    def look_ahead(self) -> None:
        """Runs the checks, and computes what is needed, of the steps that run in any case and use
        nothing that a step makes; has the machine look at such launches."""
        for step, indices in needed_first(self.program):
            if isinstance(step, steps.Check):
                self.check(step)
            for index in indices:
                self.values[index]
            if isinstance(step, steps.Launch) and len(indices) == len(steps.needs(step)):
                self.look_at(step)

    def look_at(self, launch: steps.Launch) -> None:
        values = self.values
        integers = [
            [self.word(word) if word.kind == "integer" else None for word in words]
            for words in launch.arguments
        ]
        grid, block = values.triple(launch.grid), values.triple(launch.block)
        self.machine.look_at(launch, grid, block, values[launch.shared], integers)

    def steps(self, block: tuple[Step, ...]) -> None:
        for step in block:
            self.step(step)

    def step(self, step: Step) -> None:
        self.values.several(steps.needs(step))  # in this order in every reader
        if isinstance(step, steps.Check):
            self.check(step)
        elif isinstance(step, steps.Allocate):
            buffer = self.buffer(step.buffer)
            self.name(step.buffer, self.machine.allocate(buffer, *self.layout(buffer)))
        elif isinstance(step, steps.Free):
            self.machine.free(self.tensors.pop(step.buffer))
        elif isinstance(step, steps.Launch):
            self.launch(step)
        elif isinstance(step, steps.Call):
            self.call(step)
        elif isinstance(step, steps.Loop):
            self.loop(step)
        else:
            self.branch(step)

    def name(self, name: str, tensor: Any) -> None:
        self.tensors[name] = tensor
        self.values.see(name, self.machine.extents(tensor))

    def buffer(self, name: str) -> steps.Buffer:
        buffer = self.buffers[name]
        assert isinstance(buffer, steps.Buffer)
        return buffer

    def layout(self, buffer: steps.Buffer) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Shape, strides, number of elements."""
        several = self.values.several
        return several(buffer.shape), several(buffer.strides), self.values[buffer.elements]

    def check(self, check: steps.Check) -> None:
        if not self.values[check.condition]:
            raise InputError(
                "".join(
                    part if isinstance(part, str) else str(self.values[part])
                    for part in check.message
                )
            )

    def launch(self, launch: steps.Launch) -> None:
        values = self.values
        arguments = [[self.word(word) for word in words] for words in launch.arguments]
        stream = None if launch.stream is None else self.arguments.get(launch.stream)
        self.machine.launch(
            launch,
            values.triple(launch.grid),
            values.triple(launch.block),
            values[launch.shared],
            arguments,
            stream,
        )

    def word(self, word: steps.Word) -> Any:
        if word.kind == "pointer":
            offset = 0 if word.expression is None else self.values[word.expression]
            return self.tensors[str(word.name)], offset
        if word.descriptor is not None:
            shape = self.values.several(word.descriptor.shape)
            return self.tensors[str(word.name)], shape, self.values.several(word.descriptor.strides)
        if word.kind == "scalar":
            return self.arguments[str(word.name)]
        assert word.expression is not None
        return self.values[word.expression]

    def call(self, call: steps.Call) -> None:
        arguments = [self.operand(operand) for operand in call.arguments]
        keywords = {name: self.operand(operand) for name, operand in call.keywords}
        layouts = [self.layout(self.buffer(name)) for name in call.results]
        made = self.machine.call(call, arguments, keywords)
        if len(made) != len(call.results):
            wrong_count(call, made)
        for name, tensor, layout in zip(call.results, made, layouts, strict=True):
            self.machine.check_made(self.buffer(name), tensor, *layout[:2])
            self.name(name, tensor)

    def operand(self, operand: Operand) -> Any:
        value = operand.value
        if operand.kind == "tensor":
            return self.tensors[value]
        if operand.kind == "view":
            several = self.values.several
            return self.machine.view(
                self.tensors[value.tensor],
                several(value.shape),
                several(value.strides),
                self.values[value.offset],
            )
        if operand.kind == "integer":
            return self.values[value]
        return self.arguments[value] if operand.kind == "scalar" else value

    def loop(self, loop: steps.Loop) -> None:
        values = self.values
        values.assign({c.variable: values[c.initial] for c in loop.carried})
        for carried in loop.tensors:
            self.name(carried.variable, self.tensors[carried.initial])
        count = 0
        while values[loop.condition]:
            count += 1
            if count > MOST_ITERATIONS:
                endless(self.program)
            self.steps(loop.body)
            following = {c.variable: values[c.next] for c in loop.carried}
            tensors = [(c.variable, self.tensors[c.next]) for c in loop.tensors]
            values.assign(following)
            for name, tensor in tensors:
                self.name(name, tensor)
        values.assign({c.result: values.variables[c.variable] for c in loop.carried})
        for carried in loop.tensors:
            self.name(carried.result, self.tensors[carried.variable])

    def branch(self, branch: steps.Branch) -> None:
        chosen = bool(self.values[branch.condition])
        self.steps(branch.then if chosen else branch.otherwise)
        self.values.assign(
            {c.result: self.values[c.then if chosen else c.otherwise] for c in branch.integers}
        )
        for item in branch.tensors:
            self.name(item.result, self.tensors[item.then if chosen else item.otherwise])

    def result(self, result: steps.Result) -> Any:
        if isinstance(result, tuple):
            return tuple(self.result(part) for part in result)
        return None if result is None else self.operand(result)


def endless(program: Program) -> NoReturn:
    """Ends a program in a loop that has run too often to be meant."""
    raise InputError(refusals.endless(program.entry))


def wrong_count(call: steps.Call, made: tuple[Any, ...]) -> NoReturn:
    """Ends a program whose library call returned too many tensors, or too few."""
    raise UsageError(
        f"{call.function} returned {len(made)} tensors, and its shape rule says {len(call.results)}"
    )


def needed_first(program: Program) -> list[tuple[Step | None, tuple[int, ...]]]:
    """The steps outside loops and branches, and of what each needs, the expressions that use no
    variable and no tensor made by a step: these have to have a value whatever happens. Checks come
    first, and only those that can be made before the first step; None stands for the results."""
    given = {p.name for p in program.parameters}
    depends = dependencies(program.expressions)
    buffers = {t.name: t for t in program.tensors if isinstance(t, steps.Buffer)}
    checks: list[tuple[Step | None, tuple[int, ...]]] = []
    others: list[tuple[Step | None, tuple[int, ...]]] = []
    for step in program.steps:
        used = steps.needs(step)
        for name in steps.made_by(step):
            buffer = buffers[name]
            used += (*buffer.shape, *buffer.strides, buffer.elements)
        early = tuple(index for index in used if depends[index] <= given)
        if isinstance(step, steps.Check):
            checks += [(step, early)] if early else []
        else:
            others.append((step, early))
    for operand in steps.leaves(program.results):
        used = steps.of_operand(operand)
        others.append((None, tuple(index for index in used if depends[index] <= given)))
    return checks + others
