"""Selects the mutants: three for each operation, none of which is equivalent to the original."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fly_run.emulator.irgen import Function
from fly_run.emulator.semantics import table
from fly_target import registry

from mutation import building, damage, own
from mutation.damage import Mutant
from mutation.ir_text import split, type_of

AT_ONCE = 400  # mutants per module


@dataclass(frozen=True)
class Chosen:
    """An operation, and those of its handlers that may be mutated."""

    name: str
    handlers: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """`only`: a pattern of names; `own`: only handlers that no other target than this one uses;
    `sample`: the number of operations, None for all."""

    targets: frozenset[str]
    only: str | None = None
    own: str | None = None
    form: str | None = None
    sample: int | None = None

    def operations(self, generator: random.Random) -> list[Chosen]:
        """Returns those that compute something on one of the targets."""
        traits = frozenset[str]().union(*(registry.find(name).traits for name in self.targets))
        kept = own.handlers(self.own) if self.own else None
        found = [
            Chosen(operation.name, handlers)
            for operation in table.operations().values()
            if operation.form != "nothing"
            and (not self.only or re.fullmatch(self.only, operation.name))
            and (not self.form or operation.form == self.form)
            and (not operation.traits or operation.traits & traits)
            and (handlers := tuple(h for h in operation.handlers if kept is None or h in kept))
        ]
        if self.sample and self.sample < len(found):
            found = generator.sample(found, self.sample)
        return found


_SURVIVOR = re.compile(r"survives: (\S+)(?: \([^)]*\))? \[\w+\] (.*)")


def survivors(lines: Iterable[str]) -> list[list[Mutant]]:
    """Returns the survivors that another run reported in these lines, a list for each of those that
    can still be made."""
    known = {name for o in table.operations().values() for name in o.handlers}
    found = []
    for match in filter(None, map(_SURVIVOR.match, lines)):
        handler, what = match[1], match[2].rstrip("\n")
        if handler not in known:
            continue
        operation = building.operation_of(handler).name
        made = damage.mutants(operation, handler, building.original(handler).text())
        found += [[m] for m in made if m.what == what][:1]
    return found


def candidates(operation: Chosen, seed: int) -> list[list[Mutant]]:
    """Returns three lists from which to take one mutant each: one per kind, or another kind if an
    operation has nothing of a kind to mutate. An operation's lists do not depend on the others."""
    generator = random.Random(f"{seed} {operation.name}")
    every = []
    for handler in operation.handlers:
        text = building.original(handler).text()
        every += damage.mutants(operation.name, handler, text)
    generator.shuffle(every)
    kinds = {kind: [m for m in every if m.kind == kind] for kind in damage.KINDS}
    for kind in damage.KINDS:
        if not kinds[kind]:
            largest = max(kinds.values(), key=len)
            half = len(largest) // 2
            kinds[kind], largest[half:] = largest[half:], []
    return [listed for listed in kinds.values() if listed]


def differing(lists: list[list[Mutant]]) -> tuple[list[Mutant], int]:
    """Returns the first mutant of each list that is not equivalent to the original, and the number
    of equivalent ones."""
    kept, equivalent = [], 0
    waiting = [listed for listed in lists if listed]
    while waiting:
        again = []
        for start in range(0, len(waiting), AT_ONCE):
            part = waiting[start : start + AT_ONCE]
            functions = [building.original(listed[0].handler) for listed in part]
            declarations = _declarations(functions, [listed[0] for listed in part])
            same = building.same(
                [f.text() for f in functions], [listed[0].text for listed in part], declarations
            )
            for listed, equal in zip(part, same, strict=True):
                if not equal:
                    kept.append(listed[0])
                    continue
                equivalent += 1
                if listed[1:]:
                    again.append(listed[1:])
        waiting = again
    return kept, equivalent


_CALLED = re.compile(r"call (<\d+ x \w+>|\w+) @\"?(llvm\.[\w.]+)\"?\((.*)\)$", re.MULTILINE)


def _declarations(functions: list[Function], mutants: list[Mutant]) -> set[str]:
    """Returns declarations of the originals' callees, and of intrinsics that only a mutant
    calls."""
    known = {text for function in functions for text in function.declarations}
    names = {text.partition("@")[2].partition("(")[0].strip('"') for text in known}
    for mutant in mutants:
        for result, name, arguments in _CALLED.findall(mutant.what.partition(" → ")[2]):
            if name not in names:
                names.add(name)
                types = ", ".join(type_of(a) for a in split(arguments))
                known.add(f"declare {result} @{name}({types})")
    return known


def sources(mutants: list[Mutant], folder: Path) -> list[Path]:
    """Compiles libraries of these mutants, `AT_ONCE` in each, in order."""
    made = []
    for start in range(0, len(mutants), AT_ONCE):
        part = mutants[start : start + AT_ONCE]
        declarations = _declarations([building.original(m.handler) for m in part], part)
        made.append(building.compiled([m.text for m in part], declarations, folder, f"m{start}"))
    return made


def controls(names: list[str], folder: Path) -> Path:
    """Compiles a library of unmodified handlers."""
    functions = [building.original(name) for name in names]
    texts = [function.text() for function in functions]
    return building.compiled(texts, _declarations(functions, []), folder, "controls")
