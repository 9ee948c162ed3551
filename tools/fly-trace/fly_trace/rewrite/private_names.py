"""The private names of classes: in a method of `Box`, `self.__size` is `self._Box__size`.

CPython's compiler does this for the text of a class. A function is rewritten by itself.
"""

from __future__ import annotations

import ast

from fly_trace.rewrite.nodes import children

# Where nodes have an identifier.
_FIELDS: dict[type, str] = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.FunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
}


def expand(node: ast.AST, name: str) -> None:
    """Expands the private names in a function with this qualified name."""
    kind = _class_of(name).lstrip("_")
    if not kind:
        return
    waiting = [(inner, kind) for inner in children(node)]
    while waiting:
        inner, around = waiting.pop()
        field = _FIELDS.get(type(inner))
        known = getattr(inner, field) if field is not None else None
        if known is not None and known[:2] == "__" and known[-2:] != "__" and "." not in known:
            setattr(inner, field, f"_{around}{known}")  # type: ignore[arg-type]
        if isinstance(inner, ast.ClassDef):
            # What is within it has the names of that class; CPython's compiler does it.
            continue
        waiting += [(part, around) for part in children(inner)]


def _class_of(name: str) -> str:
    """The innermost class in a function's qualified name: "A" of "f.<locals>.A.g.<locals>.h"."""
    parts = name.split(".")[:-1]
    for at in range(len(parts) - 1, -1, -1):
        is_class = parts[at] != "<locals>" and parts[at + 1 : at + 2] != ["<locals>"]
        if is_class:
            return parts[at]
    return ""
