"""How a statement that stores a value would be written with a conversion, for messages."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator

from fly_trace.core.locations import Position

_LONGEST = 90  # characters of a statement that a message shows
# The arguments that are stored, of functions and methods that store.
_STORED = {"store": 0, "fill": 0, "ptr_store": 0, "atomic_store": 2, "atomic_xchg": 2}


def converted_store(at: Position | None, dtype: str, by_method: bool) -> str | None:
    """The assignment or call at `at` that stores a value, as source text with a conversion of the
    value to `fx.<dtype>`, by the value's method `to` or by the type itself. None if no single value
    is stored there, or the text is long."""
    if at is None:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(at.file)))
        for made in _stores(tree, at, dtype, by_method):
            text = ast.unparse(made)
            return text if len(text) <= _LONGEST and text.isprintable() else None
    except (SyntaxError, ValueError, RecursionError):
        pass
    return None


def _stores(tree: ast.AST, at: Position, dtype: str, by_method: bool) -> Iterator[ast.AST]:
    """What stands at a position, with a conversion of what it stores."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_at(node, at):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            index = _STORED.get(name, len(node.args))
            if index < len(node.args):
                given = list(node.args)
                given[index] = _converted(given[index], dtype, by_method)
                yield ast.Call(node.func, given, node.keywords)
        for target, value in _assigned(node):
            if _is_at(target, at):
                made = _converted(value, dtype, by_method)
                yield ast.Assign([target], made, lineno=at.line)


def _converted(value: ast.expr, dtype: str, by_method: bool) -> ast.expr:
    kind = ast.Attribute(ast.Name("fx"), dtype)
    if by_method:
        return ast.Call(ast.Attribute(value, "to"), [kind], [])
    return ast.Call(kind, [value], [])


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, and the expressions whose values they are given."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _items(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.AugAssign):
        yield node.target, ast.BinOp(node.target, node.op, node.value)


def _items(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The parts of a target that are given an expression of their own."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    if not isinstance(value, (ast.Tuple, ast.List)) or len(target.elts) != len(value.elts):
        return
    pairs = list(zip(target.elts, value.elts, strict=True))
    if not any(isinstance(one, ast.Starred) for pair in pairs for one in pair):
        for one, of in pairs:
            yield from _items(one, of)


def _is_at(node: ast.expr, at: Position) -> bool:
    place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
    return place == (at.line, at.column, at.end_line, at.end_column)
