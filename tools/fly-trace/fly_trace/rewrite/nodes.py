"""Helpers that build the nodes of rewritten code, and predicates on nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

# The name of `fly_trace.control.runtime` in rewritten code: a free variable of the function.
CONTROL = "__fly_control__"


def at(node: Any, origin: ast.AST) -> Any:
    """Gives the node another's position. Child nodes without a position inherit one at the end, for
    the whole tree: doing so here would walk every node once for each of its ancestors."""
    ast.copy_location(node, origin)
    function = getattr(node, "func", None)
    if (
        isinstance(function, ast.Attribute)
        and not hasattr(function, "lineno")
        and getattr(node, "lineno", None) != getattr(node, "end_lineno", None)
    ):
        # CPython's compiler gives a method call the position of the method's name, if that is not
        # on the line where the expression begins. This name is nowhere in the source.
        ast.copy_location(function, origin)
        function.end_lineno, function.end_col_offset = node.lineno, node.col_offset + 1
    return node


# The fields of nodes that hold no nodes with a position: identifiers, numbers, operators, contexts.
_PLAIN = frozenset(
    (
        *("arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs"),
        *("level", "module", "op", "ops", "rest", "simple", "tag", "type_comment"),
    )
)
# Nodes whose other fields hold none either.
_LEAVES = (ast.Constant, ast.Name, ast.Global, ast.Nonlocal, ast.MatchSingleton, ast.alias)
_NAMED_BY_A_NODE = getattr(ast, "TypeAlias", ())  # since Python 3.12


class _Holding(dict[type, tuple[str, ...]]):
    """The fields of each kind of node that may hold nodes with a position."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        fields: tuple[str, ...] = () if issubclass(kind, _LEAVES) else kind._fields  # type: ignore[attr-defined]
        plain = _PLAIN if issubclass(kind, _NAMED_BY_A_NODE) else _PLAIN | {"name"}
        self[kind] = found = tuple(name for name in fields if name not in plain)
        return found


_HOLDING = _Holding()


def copied(root: Any) -> tuple[Any, set[type]]:
    """A copy of a tree, and the types of its nodes except operators and contexts, which have no
    fields and are shared. Faster than `copy.deepcopy`, which keeps track of what it has copied; no
    node occurs twice in a tree."""
    kinds: set[type] = {type(root)}
    new = _bare(root)
    waiting = [(root, new)]
    while waiting:
        node, twin = waiting.pop()
        held = twin.__dict__
        held.update(node.__dict__)
        for name in _HOLDING[type(node)]:
            value = held.get(name)
            if isinstance(value, ast.AST):
                kind: Any = type(value)
                kinds.add(kind)
                held[name] = other = kind.__new__(kind)
                waiting.append((value, other))
            elif isinstance(value, list):
                held[name] = listed = []
                for item in value:
                    if isinstance(item, ast.AST):
                        kinds.add(type(item))
                        other = _bare(item)
                        waiting.append((item, other))
                        listed.append(other)
                    else:
                        listed.append(item)
    return new, kinds


def _bare(node: Any) -> Any:
    kind: Any = type(node)
    return kind.__new__(kind)


def located(root: Any) -> Any:
    """Gives the nodes without a position that of the node around them, as
    `ast.fix_missing_locations` does, without its recursion."""
    waiting: list[tuple[Any, tuple[int, int, int, int]]] = [(root, (1, 0, 1, 0))]
    while waiting:
        node, place = waiting.pop()
        held = node.__dict__
        if "lineno" in held:
            first, column = held["lineno"], held["col_offset"]
            last, end = held.get("end_lineno"), held.get("end_col_offset")
            place = (first, column, first if last is None else last, column if end is None else end)
        elif node._attributes:
            held["lineno"], held["col_offset"], held["end_lineno"], held["end_col_offset"] = place
        for name in _HOLDING[type(node)]:
            value = held.get(name)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        waiting.append((item, place))
            elif isinstance(value, ast.AST):
                waiting.append((value, place))
    return root


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes of a node's fields. Without the two generators of `ast.iter_child_nodes`, since the
    trees of a kernel are walked often."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [inner for inner in value if isinstance(inner, ast.AST)]
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """The nodes of a tree, each before those within it, in the order of `ast.walk`."""
    found = [node]
    for inner in found:
        found += children(inner)
    return found


def call(name: str, *arguments: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    function = ast.Attribute(ast.Name(CONTROL, ast.Load()), name, ast.Load())
    return ast.Call(function, list(arguments), keywords or [])


def thunk(node: ast.expr) -> ast.Lambda:
    return ast.Lambda(arguments(), node)


def arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def name(text: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(text, ast.Load())


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def function(name: str, given: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """An undecorated function."""
    new = ast.FunctionDef(name, given, body, [], None)
    new.type_params = []  # type: ignore[attr-defined]  # a field since Python 3.12
    return new


def define(
    name: str, given: tuple[str, ...], body: list[ast.stmt], node: ast.AST
) -> ast.FunctionDef:
    """`def name(given): body` at the position of `node`."""
    return at(function(name, arguments(*given), body), node)


def strings(names: tuple[str, ...]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def span(node: ast.stmt) -> ast.Tuple:
    ends = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
    return ast.Tuple([ast.Constant(number) for number in ends], ast.Load())


def range_call(node: ast.expr) -> ast.Call | None:
    """The expression, if it is a call of a function named range."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        return node
    return None


def reversed_range_call(node: ast.expr) -> ast.Call | None:
    """The call of `range` in `reversed(range(…))`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if node.func.id != "reversed" or len(node.args) != 1 or node.keywords:
        return None
    ranged = range_call(node.args[0])
    return None if ranged is None or ranged.keywords else ranged


def has_slice(node: ast.expr) -> bool:
    """Whether an index contains a colon or a star, which are not expressions by themselves."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(isinstance(part, (ast.Slice, ast.Starred)) for part in parts)


def is_fastmath(node: ast.expr) -> bool:
    """Whether an expression is a call of fx.fastmath."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return name == "fastmath"


def is_printf(node: ast.Call) -> bool:
    """Whether a call may be of fx.printf: of a function with this name, and plain arguments."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    plain = not node.keywords and not any(isinstance(one, ast.Starred) for one in node.args)
    return name == "printf" and plain


def names_in(node: ast.expr) -> ast.expr:
    """The names that stand in a tuple, or as it is, in the same form; None for other things."""
    if isinstance(node, ast.Name):
        return ast.Constant(node.id)
    if isinstance(node, ast.Tuple):
        found = [names_in(item) for item in node.elts]
        known = any(not (isinstance(one, ast.Constant) and one.value is None) for one in found)
        if known and not any(isinstance(item, ast.Starred) for item in node.elts):
            return ast.Tuple(found, ast.Load())
    return ast.Constant(None)


def roots(changed: Iterable[tuple[str, str | None]]) -> list[ast.expr]:
    """The argument for objects that statements change in place, or nothing. A variable may not have
    a value yet, so each is read by a function."""
    parts = [
        ast.Tuple([thunk(name(one)), ast.Constant(one), ast.Constant(attribute)], ast.Load())
        for one, attribute in changed
    ]
    return [ast.Tuple(list(parts), ast.Load())] if parts else []
