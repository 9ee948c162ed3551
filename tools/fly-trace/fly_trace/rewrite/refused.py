"""Constructs that are not allowed in a kernel. They are refused before tracing."""

from __future__ import annotations

import ast

from fly_common.errors import InputError

from fly_trace.core import locations
from fly_trace.rewrite.nodes import walk

# Node type → the message, and a hint.
REFUSED: dict[type[ast.AST], tuple[str, str | None]] = {
    ast.TryStar: ("`except*` can't be used in a kernel", "use except"),
    ast.AsyncWith: ("`async with` can't be used in a kernel", None),
    ast.AsyncFor: ("`async for` can't be used in a kernel", None),
    ast.AsyncFunctionDef: ("`async def` can't be used in a kernel", None),
    ast.Await: ("`await` can't be used in a kernel", None),
    ast.Global: (
        "`global` can't be used in a kernel: it would change Python's state while tracing",
        "return the value, or store it in a tensor",
    ),
    ast.Nonlocal: (
        "`nonlocal` can't be used in a kernel: it would change Python's state while tracing",
        "return the value from the helper",
    ),
}


def check(node: ast.AST, file: str, kinds: set[type]) -> None:
    """Raises InputError at the first refused construct in source order. `kinds` are the types of
    the nodes."""
    if kinds.isdisjoint(REFUSED):
        return
    for inner in sorted(
        (inner for inner in walk(node) if type(inner) in REFUSED),
        key=lambda inner: (inner.lineno, inner.col_offset),  # type: ignore[attr-defined]
    ):
        raise refuse_syntax(inner, file, *REFUSED[type(inner)])


def refuse_syntax(node: ast.AST, file: str, message: str, hint: str | None) -> InputError:
    at = locations.Position(
        file,
        node.lineno,  # type: ignore[attr-defined]
        node.col_offset,  # type: ignore[attr-defined]
        node.end_lineno,  # type: ignore[attr-defined]
        node.end_col_offset,  # type: ignore[attr-defined]
    )
    return InputError(message, place=locations.place(at), hint=hint)
