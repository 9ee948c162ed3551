"""Native code as a reader of expressions: a program's results are the roots.

Compiling takes longer than all else that is done with a chain, so `Batch` takes what it is asked,
answers by definition, and compiles many questions as one module later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from fly_common.errors import InputError
from fly_host.graph import Graph
from fly_host.native import engine, library
from fly_host.native.builtin import Held, builtin
from fly_host.native.emission import launcher
from fly_host.native.emission.frame import Slots, Way
from fly_host.native.specialisation import Array, Options, Specialisation
from fly_host.program import Expression, Operand, Parameter, Program, Scalar, Tensor
from numpy.lib.stride_tricks import as_strided

from host_chains.readers import READERS, Leaves, Reader, by_definition

# Modules are compiled by each of these in turn: in process, and by the programs opt and llc.
OUTSIDE = Options(in_process=False)
OPTIONS = (Options(), OUTSIDE, Options(opt_level=0), Options(), OUTSIDE, Options(opt_level=2))
MOST_ASKED = 400  # of a module
BEGIN, END = "\ndefine ptr @call(", "\nattributes #0"
HELPER = re.compile(r"\ndefine .*?\n}\n", re.DOTALL)
BYTE = numpy.dtype("u1")


def by_native_code(graph: Graph, roots: Sequence[int], leaves: Leaves) -> list[int]:
    """Host programs as native code. A call that is left to Python has no value."""
    question = _question(graph, roots, leaves, None, "")
    (found,) = _answers([question], Options())
    if found is None:
        raise InputError("native code returns NotImplemented")
    return found


EVERY_READER: list[Reader] = [*READERS, by_native_code]


class Batch:
    """A reader that compiles later. `about` tells what is asked for. `each`: every module is
    compiled by all compilers, instead of one after the other."""

    __name__ = "by_native_code"

    def __init__(self, each: bool = False) -> None:
        self.about, self.each = "", each
        self.modules = 0
        self._asked: list[_Question] = []

    def __call__(self, graph: Graph, roots: Sequence[int], leaves: Leaves) -> list[int]:
        try:
            values = by_definition(graph, roots, leaves)
        except InputError:
            self._asked.append(_question(graph, roots, leaves, None, self.about))
            raise
        self._asked.append(_question(graph, roots, leaves, values, self.about))
        return values

    def differences(self, all: bool = True) -> Iterator[str]:
        """Runs what was asked; unless `all`, only whole modules of it."""
        while len(self._asked) >= (1 if all else MOST_ASKED):
            asked, self._asked = self._asked[:MOST_ASKED], self._asked[MOST_ASKED:]
            chosen = {*OPTIONS} if self.each else {OPTIONS[self.modules % len(OPTIONS)]}
            self.modules += 1
            for options in chosen:
                yield from _differences(asked, options)


@dataclass(frozen=True)
class _Question:
    """One call of a launcher: its LLVM IR, its slots, its arguments, and the values that it has to
    return, None where it has to be left to Python."""

    text: str
    slots: Slots
    arguments: tuple[Any, ...]
    wanted: list[int] | None
    about: str


def _question(
    graph: Graph, roots: Sequence[int], leaves: Leaves, wanted: list[int] | None, about: str
) -> _Question:
    expressions: list[Expression] = [tuple(expression) for expression in graph.expressions]
    scalars = dict(leaves.scalars)
    tensors: dict[str, Any] = {}
    for name, shape in leaves.shapes.items():
        strides = leaves.strides.get(name, (0,) * len(shape))
        try:
            tensors[name] = as_strided(numpy.zeros(1, BYTE), shape, strides, writeable=False)
        except ValueError:  # NumPy has no array of so many elements
            for kind, values in (("extent", shape), ("stride", strides)):
                named = {f"{name}_{kind}{at}": value for at, value in enumerate(values)}
                scalars |= named
                pairs = {(kind, name, at): ("scalar", key) for at, key in enumerate(named)}
                expressions = [pairs.get(one, one) for one in expressions]
    parameters: list[Parameter] = [
        Tensor(name, "u8", (None,) * array.ndim, (None,) * array.ndim, "r")
        for name, array in tensors.items()
    ]
    parameters += [Scalar(name, "i64") for name in scalars]
    results = tuple(Operand("integer", root) for root in roots)
    names = tuple(f"result{at}" for at in range(len(results)))
    program = Program("chain", "any", tuple(parameters), tuple(expressions), (), (), results, names)
    arrays = {name: Array("numpy", dtype=BYTE) for name in tensors}
    made = launcher.write(Specialisation(program, arrays, ()), Way(False), None)
    arguments = (*tensors.values(), *scalars.values())
    return _Question(made.llvm, made.slots, arguments, wanted, about)


def _differences(asked: Sequence[_Question], options: Options) -> Iterator[str]:
    how = (
        f"by native code ({'llvmlite' if options.in_process else 'opt, llc'} -O{options.opt_level})"
    )
    for question, found in zip(asked, _answers(asked, options), strict=True):
        if found != question.wanted:
            yield f"{question.about}{how}: {found}, and it has to be {question.wanted}"


def _answers(asked: Sequence[_Question], options: Options) -> Iterator[list[int] | None]:
    """What native code returns, compiled as one module."""
    texts = {text: at for at, text in enumerate({question.text: None for question in asked})}
    parts = [_parts(text, at) for text, at in texts.items()]
    heads, helpers, bodies, ends = zip(*parts, strict=True)
    assert len({*heads}) == len({*ends}) == 1
    shared = dict.fromkeys(one for some in helpers for one in some)
    functions = (f"\ndefine ptr @call{at}({body}" for at, body in enumerate(bodies))
    text = "".join((heads[0], *shared, *functions, ends[0]))
    module = library.opened(engine.library(text, options))
    contents = {"numpy.ndarray": Held(numpy.ndarray), "dtype": Held(BYTE)}
    for question in asked:
        function = getattr(module, f"call{texts[question.text]}")
        table = [contents[kind] for kind, *_ in question.slots.places]
        found = builtin("chain", function, table, ())(*question.arguments)
        yield None if found is NotImplemented else list(found)


def _parts(text: str, number: int) -> tuple[str, list[str], str, str]:
    """What is before a launcher, the functions that it calls, the launcher behind its name, and
    what is behind it. Guards are renamed: those of another launcher have the same names."""
    head, _, rest = re.sub(r"@guard(?=\d)", f"@guard{number}_", text).partition(BEGIN)
    body, _, end = rest.rpartition(END)
    return HELPER.sub("", head), HELPER.findall(head), body, END + end
