"""When the buffers of a program are allocated and freed: before their first use and right after
their last one.

A buffer may have several names: a loop's variables and results, and a branch's results, stand for
one of several tensors. So it is used where any tensor is that may be it. One that leaves its block,
as a result of the program or of a loop or branch, is freed by nobody here: it is the caller's, or
goes when the program ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fly_host.program import (
    Allocate,
    Branch,
    Call,
    Free,
    Launch,
    Loop,
    Operand,
    Result,
    Step,
    every_step,
    leaves,
)


def placed(steps: tuple[Step, ...], result: Result) -> tuple[Step, ...]:
    """The steps, with each `Allocate` before the first use of its buffer, and `Free` steps."""
    returned = {name for operand in leaves(result) for name in _of_operand(operand)}
    return _Lifetimes(_same(steps)).block(steps, returned)


class _Lifetimes:
    def __init__(self, same: dict[str, str]):
        self.same = same  # a name → one that stands for all tensors it may be

    def root(self, name: str) -> str:
        while (other := self.same.get(name, name)) != name:
            name = other
        return name

    def block(self, steps: tuple[Step, ...], leaving: Iterable[str]) -> tuple[Step, ...]:
        """`leaving` are the names that the block's surroundings take from it."""
        own = [step.buffer for step in steps if isinstance(step, Allocate)]
        left = [self.inner(step) for step in steps if not isinstance(step, Allocate)]
        used = [frozenset(_names(step)) for step in left]
        leaving = set(leaving)
        first: dict[int, list[str]] = {}
        for name in own:
            at = next((at for at, names in enumerate(used) if name in names), None)
            if at is not None or name in leaving:
                first.setdefault(len(left) if at is None else at, []).append(name)
        roots = [{self.root(name) for name in names} for names in used]
        last: dict[int, list[str]] = {}
        gone = {self.root(name) for name in leaving}
        for name in (*own, *(n for step in left if isinstance(step, Call) for n in step.results)):
            root = self.root(name)
            uses = [at for at, found in enumerate(roots) if root in found]
            if uses and root not in gone:
                last.setdefault(uses[-1], []).append(name)
        made: list[Step] = []
        for at, step in enumerate((*left, None)):
            made += map(Allocate, first.get(at, ()))
            made += [] if step is None else [step]
            made += map(Free, last.get(at, ()))
        return tuple(made)

    def inner(self, step: Step) -> Step:
        """The step with the blocks that it contains."""
        if isinstance(step, Loop):
            leaving = [carried.next for carried in step.tensors]
            return replace(step, body=self.block(step.body, leaving))
        if isinstance(step, Branch):
            then = self.block(step.then, [chosen.then for chosen in step.tensors])
            otherwise = self.block(step.otherwise, [chosen.otherwise for chosen in step.tensors])
            return replace(step, then=then, otherwise=otherwise)
        return step


def _same(steps: tuple[Step, ...]) -> dict[str, str]:
    """Which names may be one tensor, as chains to a name that stands for them all."""
    same: dict[str, str] = {}

    def root(name: str) -> str:
        while (other := same.get(name, name)) != name:
            name = other
        return name

    for step in every_step(steps):
        groups: list[tuple[str, ...]] = []
        if isinstance(step, Loop):
            groups = [(one.variable, one.initial, one.next, one.result) for one in step.tensors]
        elif isinstance(step, Branch):
            groups = [(one.result, one.then, one.otherwise) for one in step.tensors]
        for first, *others in groups:
            for other in others:
                same[root(other)] = root(first)
    return same


def _names(step: Step) -> Iterator[str]:
    """The tensors that a step, with all that it contains, names."""
    for inner in every_step((step,)):
        if isinstance(inner, Launch):
            words = (word for argument in inner.arguments for word in argument)
            yield from (str(word.name) for word in words if word.kind == "pointer")
        elif isinstance(inner, Call):
            for operand in (*inner.arguments, *(operand for _, operand in inner.keywords)):
                yield from _of_operand(operand)
            yield from inner.results
        elif isinstance(inner, Loop):
            for one in inner.tensors:
                yield from (one.variable, one.initial, one.next, one.result)
        elif isinstance(inner, Branch):
            for chosen in inner.tensors:
                yield from (chosen.result, chosen.then, chosen.otherwise)


def _of_operand(operand: Operand) -> tuple[str, ...]:
    if operand.kind == "view":
        return (operand.value.tensor,)
    return (operand.value,) if operand.kind == "tensor" else ()
