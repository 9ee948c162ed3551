"""When the buffers of a program are allocated and freed: before their first use and right after
their last one.

A buffer may have several names: a loop's variables and results, and a branch's results, stand for
one of several tensors. So it is used where any tensor is that may be it. One that leaves its block,
as a result of the program or of a loop or branch, gets no `Free`: it is the caller's, or whatever
runs the program frees it as soon as no name stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fly_common.record import replace
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
    made_by,
)


def placed(steps: tuple[Step, ...], result: Result) -> tuple[Step, ...]:
    """The steps, with each `Allocate` before the first use of its buffer, and `Free` steps."""
    returned = {name for operand in leaves(result) for name in _of_operand(operand)}
    return _Lifetimes(_held(steps)).block(steps, returned)


class _Lifetimes:
    def __init__(self, held: dict[str, set[str]]):
        self.held = held  # which buffers a name may stand for

    def buffers(self, names: Iterable[str]) -> set[str]:
        return {buffer for name in names for buffer in self.held.get(name, ())}

    def block(self, steps: tuple[Step, ...], leaving: Iterable[str]) -> tuple[Step, ...]:
        """`leaving` are the names that the block's surroundings take from it."""
        own = [step.buffer for step in steps if isinstance(step, Allocate)]
        left = [self.inner(step) for step in steps if not isinstance(step, Allocate)]
        named = [frozenset(_names(step)) for step in left]
        leaving = set(leaving)
        first: dict[int, list[str]] = {}
        for name in own:
            at = next((at for at, names in enumerate(named) if name in names), None)
            if at is not None or name in leaving:
                first.setdefault(len(left) if at is None else at, []).append(name)
        used = [self.buffers(names) for names in named]
        gone = self.buffers(leaving)
        last: dict[int, list[str]] = {}
        for name in (*own, *(n for step in left if isinstance(step, Call) for n in step.results)):
            uses = [at for at, found in enumerate(used) if name in found]
            if uses and name not in gone:
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


def _held(steps: tuple[Step, ...]) -> dict[str, set[str]]:
    """The buffers that each name may stand for: a buffer's own name, and all that flows into a
    variable or result."""
    held = {name: {name} for step in every_step(steps) for name in made_by(step)}
    flows: list[tuple[str, str]] = []  # from, to
    for step in every_step(steps):
        if isinstance(step, Loop):
            for one in step.tensors:
                flows += [(one.initial, one.variable), (one.next, one.variable)]
                flows.append((one.variable, one.result))
        elif isinstance(step, Branch):
            for chosen in step.tensors:
                flows += [(chosen.then, chosen.result), (chosen.otherwise, chosen.result)]
    changed = True
    while changed:
        changed = False
        for source, name in flows:
            more = held.get(source, set()) - held.get(name, set())
            if more:
                held.setdefault(name, set()).update(more)
                changed = True
    return held


def _names(step: Step) -> Iterator[str]:
    """The tensors that a step, with all that it contains, names."""
    for inner in every_step((step,)):
        if isinstance(inner, Launch):
            words = (word for argument in inner.arguments for word in argument)
            yield from (str(word.name) for word in words if word.kind in ("pointer", "descriptor"))
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
