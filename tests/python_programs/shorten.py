"""Shortens a program while something stays true of it."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator


def shortened(body: str, holds: Callable[[str], bool], seconds: float = 120) -> str:
    """A body with fewer statements and shorter expressions of which `holds` is still true. It is
    what was found when no single change is left, or the time is over."""
    until = time.monotonic() + seconds
    for changes in (_statements, _statements, _expressions, _statements):
        number = 0
        while time.monotonic() < until:
            tree = ast.parse(body)
            change = next((one for at, one in enumerate(changes(tree)) if at == number), None)
            if change is None:
                break
            change()
            new = ast.unparse(ast.fix_missing_locations(tree))
            if len(new) < len(body) and holds(new):
                body = new  # the next change has the same number now
            else:
                number += 1
    return body


def _statements(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """Functions that each leave statements out: the outer ones first."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if not isinstance(value, list) or not value or not isinstance(value[0], ast.stmt):
                continue
            for count in (8, 4, 1):
                for at in reversed(range(0, len(value), count)):
                    if len(value) > count or count == 1:
                        rest = [] if len(value) > count or field == "orelse" else [ast.Pass()]
                        yield _replacing(node, field, at, count, rest)
            for at, statement in enumerate(value):
                if inner := _blocks(statement):
                    yield _replacing(node, field, at, 1, inner)


def _expressions(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """Functions that each replace an expression by a part of it."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", _LOAD), ast.Load):
                for part in ast.iter_child_nodes(value):
                    if isinstance(part, ast.expr):
                        yield _setting(node, field, part)


_LOAD = ast.Load()


def _blocks(statement: ast.stmt) -> list[ast.stmt]:
    """The statements within a compound one."""
    found = [*getattr(statement, "body", []), *getattr(statement, "orelse", [])]
    for case in getattr(statement, "cases", []):
        found += case.body
    return found


def _replacing(node: ast.AST, field: str, at: int, count: int, new: list) -> Callable[[], None]:
    def change() -> None:
        getattr(node, field)[at : at + count] = new

    return change


def _setting(node: ast.AST, field: str, part: ast.expr) -> Callable[[], None]:
    return lambda: setattr(node, field, part)
