"""Rewrites Python functions so that their control flow can be traced. See `rewritten`.

The function's own source is parsed, transformed and compiled. Defaults, closure cells and globals
are the original's, and no globals are modified.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from fly_common import code_tables
from fly_common.errors import InputError, Place

from fly_trace.core import locations
from fly_trace.rewrite import loop_state, named_values, nodes, patterns, private_names, stand_ins
from fly_trace.rewrite.generators import Generating, first_yield
from fly_trace.rewrite.naming import Naming
from fly_trace.rewrite.nodes import CONTROL, walk
from fly_trace.rewrite.refused import check
from fly_trace.rewrite.roles import replace_roles
from fly_trace.rewrite.transform import Transformer

# By `id(code)`: its rewritten code, whether it was made by this module, whether it is the user's.
_done: dict[int, CodeType] = {}
_new: dict[int, bool] = {}
_users: dict[int, bool] = {}

# Which functions run as plain Python, although they are the user's: what languages beside this one
# say of theirs, by a function's code and globals.
PLAIN: list[Callable[[CodeType, dict[str, Any]], bool]] = []
# The runtime that rewritten code calls for control flow. `control` sets it.
RUNTIME = CellType()


def is_users(function: FunctionType) -> bool:
    """Whether a function is rewritten: it is the user's, from a package that uses the language, or
    one of the language's primitives."""
    code = function.__code__
    known = _users.get(id(code))
    if known is None:
        code = code_tables.code_of(function)
        known = code_tables.keep(_users, code, _is_rewritable(code, function.__globals__))
    return known


def _is_rewritable(code: CodeType, space: dict[str, Any]) -> bool:
    file = code.co_filename
    if id(code) in _new:
        return False
    if locations.is_ours(file):
        return locations.is_traced(file)
    if any(is_plain(code, space) for is_plain in PLAIN):
        return False
    return not locations.is_library(file) or uses_language(space)


def uses_language(space: dict[str, Any]) -> bool:
    """Whether a module imports the language. Installed packages that do so are treated as user
    code."""
    return any(
        getattr(value, "__name__", "") in ("fly", "fly.expr", "fly_trace.expr")
        for value in list(space.values())
    )


def is_rewritten(code: CodeType) -> bool:
    """Whether code was created by this module."""
    return id(code) in _new


def rewritten(function: FunctionType) -> FunctionType:
    """The function with traceable control flow; unchanged if it was defined inside a rewritten one.
    Raises InputError if its Python is not supported or its source cannot be found."""
    code = function.__code__
    if id(code) in _new:
        return function
    new = _done.get(id(code))
    if new is None:
        function = stand_ins.original(function)
        code = function.__code__
        new = _done.get(id(code)) or code_tables.keep(_done, code, _compile(function))
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple(RUNTIME if name == CONTROL else cells[name] for name in new.co_freevars)
    return stand_ins.copied(function, new, closure)


@functools.lru_cache(maxsize=64)
def _parse(file: str, source: str) -> ast.Module:
    return ast.parse(source, file)


@functools.lru_cache(maxsize=64)
def _functions(
    file: str, source: str, lambdas: bool
) -> dict[int, list[ast.FunctionDef | ast.Lambda]]:
    """The functions of a file by their first lines. Cached, so that a file is walked once; its
    expressions are only looked at for lambdas."""
    found: dict[int, list[ast.FunctionDef | ast.Lambda]] = {}
    waiting: list[ast.AST] = [_parse(file, source)]
    for node in waiting:
        if isinstance(node, ast.Lambda if lambdas else ast.FunctionDef):
            found.setdefault(_first_line(node), []).append(node)
        inner = nodes.children(node)
        waiting += inner if lambdas else [one for one in inner if not isinstance(one, ast.expr)]
    return found


def _compile(function: FunctionType) -> CodeType:
    code = code_tables.code_of(function)
    file = code.co_filename
    node, kinds = _without_defaults(_node(function))
    if ast.Yield in kinds:
        loop_state.expand(node, file)
        kinds = set(map(type, walk(node)))
    check(node, file, kinds)
    if ast.With in kinds:
        replace_roles(node, file)
        kinds.add(ast.If)
    private_names.expand(node, code.co_qualname)
    if ast.NamedExpr in kinds:
        named_values.expand(node, file)
    if ast.Match in kinds:
        patterns.expand(node)
    transformer = _transformer(kinds)(file)
    if isinstance(node, ast.Lambda):
        new: ast.stmt = ast.Return(transformer.expression(node))
    else:
        plain = transformer.function(node)
        for argument in walk(plain.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        # With its own name, the factory's local would hide a global that the body may use.
        plain.name = "__fly_function__"
        new = plain
    ast.copy_location(new, node)
    # A factory makes the free variables of the original free variables here as well.
    outer = ast.FunctionDef(
        "__fly_factory__",
        ast.arguments(
            [], [ast.arg(name) for name in (CONTROL, *code.co_freevars)], None, [], [], None, []
        ),
        [new],
        [],
        None,
    )
    outer.type_params = []  # type: ignore[attr-defined]
    ast.copy_location(outer, node)
    module = nodes.located(ast.Module([outer], []))
    compiled = compile(module, file, "exec", dont_inherit=True)
    found = _inner(_inner(compiled)).replace(co_name=code.co_name, co_qualname=code.co_qualname)
    _adopt(found)
    return found


def _transformer(kinds: set[type]) -> type[Transformer]:
    """The transformer for a function with nodes of these kinds."""
    if not kinds.isdisjoint((ast.Yield, ast.YieldFrom)):
        return Generating
    return Naming if ast.NamedExpr in kinds else Transformer


def _inner(code: CodeType) -> CodeType:
    return next(item for item in code.co_consts if isinstance(item, CodeType))


def _adopt(code: CodeType) -> None:
    """Marks code as rewritten, and as the user's. Primitives are not the user's, so that errors and
    line tables name the call of one."""
    code_tables.keep(_new, code, True)
    if not locations.is_traced(code.co_filename):
        locations.adopt(code)
    for item in code.co_consts:
        if isinstance(item, CodeType):
            _adopt(item)


def _without_defaults(node: Any) -> tuple[Any, set[type]]:
    """A copy with placeholder defaults, as the function object has the real ones, and the types of
    the function's nodes."""
    node, kinds = nodes.copied(node)
    node.args.defaults = [
        ast.copy_location(ast.Constant(None), item) for item in node.args.defaults
    ]
    node.args.kw_defaults = [
        item and ast.copy_location(ast.Constant(None), item) for item in node.args.kw_defaults
    ]
    return node, kinds


def _node(function: FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of a function, with positions in its file."""
    code = code_tables.code_of(function)
    file, line = code.co_filename, code.co_firstlineno
    # A module that was reloaded after an edit must not be traced from its old text.
    linecache.checkcache(file)
    source = "".join(linecache.getlines(file, function.__globals__))
    if not source:
        raise InputError(
            f"the source of {function.__name__} can't be read",
            place=Place(locations.shown(file), line),
            hint=_SOURCE_HINT,
        )
    try:
        tree = _parse(file, source)
    except SyntaxError:
        raise InputError(
            f"the source of {function.__name__} changed since it was loaded",
            place=Place(locations.shown(file), line),
        ) from None
    kind = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    found = [
        node
        for node in _functions(file, source, kind is ast.Lambda).get(line, ())
        if _named(node, function)
    ]
    if len(found) > 1:
        # Several lambdas on one line: choose the one whose body contains the code's instructions.
        spans = [item for item in code.co_positions() if item[2] is not None and item[0] == line]
        columns = {item[2] for item in spans[1:]} or {None}
        found = [
            node
            for node in found
            if isinstance(node, ast.Lambda)
            and any(node.body.col_offset == column for column in columns)
        ][-1:] or found[:1]
    if not found:
        for node in walk(tree):
            if isinstance(node, ast.AsyncFunctionDef) and node.name == code.co_name:
                check(node, file, {ast.AsyncFunctionDef})
        raise InputError(
            f"the source of {function.__name__} changed since it was loaded",
            place=Place(locations.shown(file), line),
        )
    return found[0]


_SOURCE_HINT = "kernels and their helpers are traced from their source: define them in a file"


def _first_line(node: ast.FunctionDef | ast.Lambda) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(item.lineno for item in decorators)])


def _named(node: ast.AST, function: FunctionType) -> bool:
    name = code_tables.code_of(function).co_name
    return isinstance(node, ast.Lambda) or getattr(node, "name", None) == name


def definition_of(function: Any) -> locations.Position:
    """The position of a function's `def` line, below the decorators."""
    code = code_tables.code_of(function)
    try:
        node = _node(function)
    except InputError:
        return locations.Position(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 1)
    name = f"def {function.__name__}"
    return locations.Position(
        code.co_filename, node.lineno, node.col_offset, node.lineno, node.col_offset + len(name)
    )


def return_of(function: Any) -> locations.Position:
    """The position of a function's first return with a value."""
    found = [
        inner
        for inner in walk(_node(function))
        if isinstance(inner, ast.Return) and inner.value is not None
    ]
    if not found:
        return definition_of(function)
    return _position(function, min(found, key=lambda inner: inner.lineno))


def yield_of(function: Any) -> locations.Position:
    """The position of a generator function's first `yield`."""
    found = first_yield(*nodes.children(_node(function)))
    return definition_of(function) if found is None else _position(function, found)


def _position(function: Any, node: ast.expr | ast.stmt) -> locations.Position:
    return locations.Position(
        code_tables.code_of(function).co_filename,
        node.lineno,
        node.col_offset,
        node.end_lineno or node.lineno,
        node.end_col_offset or node.col_offset + 1,
    )
