"""A MIR file: YAML documents, the first of which may be the LLVM IR module."""

from __future__ import annotations

import re

from fly_common.errors import InputError

from fly_llc.mir.function import Function

_DOCUMENT = re.compile(r"^---(?: .*)?\n", re.MULTILINE)
_END = re.compile(r"^\.\.\.$", re.MULTILINE)
_BODY = re.compile(r"^body: +\|\n", re.MULTILINE)


class Module:
    """`pieces` holds the file in order: unparsed text, and functions."""

    def __init__(self, pieces: list[str | Function]):
        self.pieces = pieces

    @property
    def functions(self) -> list[Function]:
        return [piece for piece in self.pieces if isinstance(piece, Function)]

    def function(self, name: str) -> Function:
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)

    @property
    def ir(self) -> str:
        """The text of the first document: the LLVM IR that the functions refer to."""
        for piece in self.pieces:
            if isinstance(piece, str) and piece.startswith("---"):
                return piece
        return ""

    def __str__(self) -> str:
        return "".join(map(str, self.pieces))


def parse(text: str) -> Module:
    """Parses MIR as LLVM prints it. Raises InputError for other text, for two blocks with the same
    number, and for branches to missing blocks."""
    starts = [match.start() for match in _DOCUMENT.finditer(text)]
    if not starts:
        raise InputError(
            "the input is not MIR: it has no YAML document",
            hint="fly-llc --stop-after PASS prints MIR",
        )
    pieces: list[str | Function] = [text[: starts[0]]] if starts[0] else []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        document = text[start:end]
        body = _BODY.search(document)
        if body is None:
            pieces.append(document)
            continue
        close = _END.search(document, body.end())
        stop = close.start() if close else len(document)
        line = text.count("\n", 0, start) + 1
        pieces.append(_checked(Function(document[: body.end()], document[body.end() : stop], line)))
        pieces.append(document[stop:])
    return Module(pieces)


def _checked(function: Function) -> Function:
    numbers: set[int] = set()
    for block in function.blocks:
        if block.number in numbers:
            raise InputError(f"{function.name} has two blocks {block.name}")
        numbers.add(block.number)
    for block in function.blocks:
        for successor in block.successors:
            if successor not in numbers:
                raise InputError(
                    f"{function.name}: {block.name} branches to bb.{successor}, which is not a"
                    " block"
                )
    return function
