"""A program without the expressions that nothing needs: what the host function computed for none of
its steps, and what the graph simplified."""

from __future__ import annotations

from fly_common.record import replace
from fly_host import program as made
from fly_host.program import BINARY, Operand, Program, Result, Step, every_step, leaves


def compacted(program: Program) -> Program:
    """The program with its needed expressions, numbered anew in their order."""
    needed = set(_needed(program))
    for index in range(len(program.expressions) - 1, -1, -1):
        if index in needed:
            needed.update(_operands(program.expressions[index]))
    numbers = {index: number for number, index in enumerate(sorted(needed))}
    kept = [program.expressions[index] for index in sorted(needed)]
    renumber = _Renumbering(numbers)
    return replace(
        program,
        expressions=tuple(
            (one[0], *(numbers[operand] for operand in _operands(one))) if _operands(one) else one
            for one in kept
        ),
        steps=renumber.steps(program.steps),
        tensors=tuple(renumber.tensor(tensor) for tensor in program.tensors),
        results=renumber.result(program.results),
    )


def _operands(expression: made.Expression) -> tuple[int, ...]:
    op, *operands = expression
    return tuple(operands) if op in BINARY or op == "select" else ()


def _needed(program: Program) -> list[int]:
    found: list[int] = []
    for step in every_step(program.steps):
        found += made.used_by(step)
    for tensor in program.tensors:
        if isinstance(tensor, made.Buffer):
            found += [*tensor.shape, *tensor.strides, tensor.elements]
    for operand in leaves(program.results):
        found += made.of_operand(operand)
    return found


class _Renumbering:
    def __init__(self, numbers: dict[int, int]):
        self.numbers = numbers

    def several(self, indices: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.numbers[index] for index in indices)

    def triple(self, indices: made.Triple) -> made.Triple:
        x, y, z = self.several(indices)
        return x, y, z

    def steps(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(map(self.step, steps))

    def step(self, step: Step) -> Step:
        new = self.numbers
        if isinstance(step, made.Check):
            message = tuple(part if isinstance(part, str) else new[part] for part in step.message)
            return made.Check(new[step.condition], message)
        if isinstance(step, made.Launch):
            return replace(
                step,
                grid=self.triple(step.grid),
                block=self.triple(step.block),
                shared=new[step.shared],
                arguments=tuple(tuple(map(self.word, words)) for words in step.arguments),
            )
        if isinstance(step, made.Call):
            return replace(
                step,
                arguments=tuple(map(self.operand, step.arguments)),
                keywords=tuple((name, self.operand(one)) for name, one in step.keywords),
            )
        if isinstance(step, made.Loop):
            carried = tuple(
                replace(one, initial=new[one.initial], next=new[one.next]) for one in step.carried
            )
            condition, body = new[step.condition], self.steps(step.body)
            return replace(step, carried=carried, condition=condition, body=body)
        if isinstance(step, made.Branch):
            integers = tuple(
                replace(one, then=new[one.then], otherwise=new[one.otherwise])
                for one in step.integers
            )
            then, otherwise = self.steps(step.then), self.steps(step.otherwise)
            return made.Branch(new[step.condition], then, otherwise, integers, step.tensors)
        return step

    def word(self, word: made.Word) -> made.Word:
        if (found := word.descriptor) is not None:
            shape, strides = self.several(found.shape), self.several(found.strides)
            return replace(word, descriptor=replace(found, shape=shape, strides=strides))
        if word.expression is None:
            return word
        return replace(word, expression=self.numbers[word.expression])

    def operand(self, operand: Operand) -> Operand:
        value = operand.value
        if operand.kind == "integer":
            return Operand("integer", self.numbers[value])
        if operand.kind == "view":
            shape, strides = self.several(value.shape), self.several(value.strides)
            view = made.View(value.tensor, shape, strides, self.numbers[value.offset])
            return Operand("view", view)
        return operand

    def tensor(self, tensor: made.Buffer | made.Assigned) -> made.Buffer | made.Assigned:
        if isinstance(tensor, made.Assigned):
            return tensor
        return replace(
            tensor,
            shape=self.several(tensor.shape),
            strides=self.several(tensor.strides),
            elements=self.numbers[tensor.elements],
        )

    def result(self, result: Result) -> Result:
        if isinstance(result, tuple):
            return tuple(map(self.result, result))
        return None if result is None else self.operand(result)
