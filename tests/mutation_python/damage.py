"""The mutants of a module: one place in its syntax tree changed.

Operators are exchanged, conditions negated or partly removed, constants changed, return values
dropped, statements removed, exception handlers removed. Annotations, docstrings, error texts, code
that only a type checker sees, and code that only an import executes, except constants of a module,
are not mutated.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

KINDS = ("comparison", "condition", "arithmetic", "constant", "return", "statement", "except")

_COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


@dataclass(frozen=True)
class Mutant:
    """`function` is the outermost mutated function, or the name of a module's constant; `first` is
    its first line, including decorators. `lines` are those of the mutated statement; for a constant
    those of the module's functions that use it, empty if only other modules do."""

    module: str
    path: Path
    function: str
    first: int
    constant: bool
    line: int
    lines: Sequence[int]
    kind: str
    what: str
    _change: Callable[[], None] = field(repr=False, compare=False)
    _tree: ast.Module = field(repr=False, compare=False)

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def tree(self) -> ast.Module:
        """Returns the mutated module. The mutants of a module share their tree: after this call the
        others are invalid in this process."""
        self._change()
        return ast.fix_missing_locations(self._tree)


def mutants(module: str, path: Path) -> list[Mutant]:
    return list(_Module(module, path).mutants())


class _Module:
    def __init__(self, module: str, path: Path) -> None:
        self.module = module
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))

    def mutants(self) -> Iterator[Mutant]:
        yield from self._of_body(self.tree.body, "")

    def _users(self, constant: str) -> list[int]:
        """Returns the lines of the functions that use a constant, or another computed from it."""
        names, lines = {constant}, set()
        for statement in self.tree.body:
            loaded = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            if isinstance(statement, ast.Assign) and names & loaded:
                names |= {one.id for one in statement.targets if isinstance(one, ast.Name)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                loaded = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
                if names & loaded:
                    lines |= set(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        return sorted(lines)

    def _of_body(self, body: list[ast.stmt], prefix: str) -> Iterator[Mutant]:
        for statement in body:
            if isinstance(statement, ast.FunctionDef):
                if any("overload" in ast.unparse(one) for one in statement.decorator_list):
                    continue
                name = f"{prefix}{statement.name}"
                decorators = [one.lineno for one in statement.decorator_list]
                self.owner = (name, min([statement.lineno, *decorators]), False)
                yield from self._of_statements(statement.body, statement)
            elif isinstance(statement, ast.ClassDef):
                yield from self._of_body(statement.body, f"{prefix}{statement.name}.")
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and not prefix:
                target = (
                    statement.targets[0]
                    if isinstance(statement, ast.Assign)
                    else (statement.target)
                )
                if _is_alias(statement):
                    continue
                if isinstance(target, ast.Name) and statement.value and target.id[:2] != "__":
                    self.owner = (target.id, statement.lineno, True)
                    yield from self._of_expression(statement, "value", statement)

    def _of_statements(self, body: list[ast.stmt], owner: ast.AST) -> Iterator[Mutant]:
        for number, statement in enumerate(body):
            if number == 0 and _is_text(statement):
                continue
            yield from self._of_statement(body, number, statement)

    def _of_statement(
        self, body: list[ast.stmt], number: int, statement: ast.stmt
    ) -> Iterator[Mutant]:
        if isinstance(statement, ast.FunctionDef):
            yield from self._of_statements(statement.body, statement)
            return
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.Assert | ast.ClassDef):
            return
        if _removable(statement):
            yield self._replaced(body, number, ast.Pass(), "statement", statement)
        if isinstance(statement, ast.Return) and not _is_none(statement.value):
            nothing = ast.Return(ast.Constant(None))
            yield self._replaced(body, number, nothing, "return", statement)
        if isinstance(statement, ast.AugAssign) and type(statement.op) in _ARITHMETIC:
            other = copy.copy(statement)
            other.op = _ARITHMETIC[type(statement.op)]()
            yield self._replaced(body, number, other, "arithmetic", statement)
        if isinstance(statement, ast.If | ast.While):
            yield from self._negated(statement, "test", statement)
        for name, value in ast.iter_fields(statement):
            if isinstance(statement, ast.Raise) or name in ("annotation", "target", "targets"):
                continue
            if isinstance(value, ast.expr):
                yield from self._of_expression(statement, name, statement)
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self._of_statements(value, statement)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.ExceptHandler):
                        yield from self._of_handler(item)
                    elif isinstance(item, ast.withitem):
                        yield from self._of_expression(item, "context_expr", statement)

    def _of_handler(self, handler: ast.ExceptHandler) -> Iterator[Mutant]:
        if not isinstance(handler.body[0], ast.Raise):
            mutant = self._replaced(
                handler, "body", [ast.Raise()], "except", handler.body[0], handler
            )
            yield mutant
        yield from self._of_statements(handler.body, handler)

    def _of_expression(
        self, place: ast.AST | list, name: str | int, statement: ast.AST
    ) -> Iterator[Mutant]:
        node = _at(place, name)
        if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
            return
        for kind, other in _variants(node):
            yield self._replaced(place, name, other, kind, statement, node)
        if isinstance(node, ast.IfExp):
            yield from self._negated(node, "test", statement)
        if isinstance(node, ast.comprehension):
            for number in range(len(node.ifs)):
                yield from self._negated(node.ifs, number, statement)
        if _is_error(node):
            return
        for field_name, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                yield from self._of_expression(node, field_name, statement)
            elif isinstance(value, list):
                for number, item in enumerate(value):
                    if isinstance(item, ast.keyword):
                        if item.arg != "hint":
                            for mutant in self._of_expression(item, "value", statement):
                                yield replace(mutant, what=f"{item.arg}={mutant.what}")
                    elif isinstance(item, ast.AST):
                        yield from self._of_expression(value, number, statement)

    def _negated(self, place, name: str | int, statement: ast.AST) -> Iterator[Mutant]:
        node = _at(place, name)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return  # covered by the comparison's own mutants
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return
        yield self._replaced(
            place, name, ast.UnaryOp(ast.Not(), node), "condition", statement, node
        )

    def _replaced(
        self, place, name: str | int, other, kind: str, statement: ast.AST, node=None
    ) -> Mutant:
        """Returns the mutant with `other` in `place`."""
        node = statement if node is None else node
        listed = isinstance(place, list)

        def put(value) -> None:
            if listed:
                place[name] = value
            else:
                setattr(place, str(name), value)

        for one in other if isinstance(other, list) else [other]:
            ast.copy_location(one, node)
        function, first, constant = self.owner
        return Mutant(
            self.module,
            self.path,
            function,
            first,
            constant,
            node.lineno,
            self._users(function) if constant else range(*_lines(statement)),
            kind,
            f"{_text(node)} → {_text(other)}",
            lambda: put(other),
            self.tree,
        )


def _at(place: ast.AST | list, name: str | int) -> Any:
    """Returns the content of a node's field, or of a list of nodes."""
    return place[int(name)] if isinstance(place, list) else getattr(place, str(name))


def _variants(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                made = copy.copy(node)
                made.ops = [*node.ops[:number], other(), *node.ops[number + 1 :]]
                yield "comparison", made
    elif isinstance(node, ast.BoolOp):
        made = copy.copy(node)
        made.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "condition", made
        for number in range(len(node.values)):
            rest = node.values[:number] + node.values[number + 1 :]
            yield "condition", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        kind = "condition" if isinstance(node.op, ast.Not) else "arithmetic"
        yield kind, copy.copy(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        made = copy.copy(node)
        made.op = _ARITHMETIC[type(node.op)]()
        yield "arithmetic", made
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield "constant", ast.Constant(not value)
        elif isinstance(value, int | float):
            yield "constant", ast.Constant(value + 1)
        elif isinstance(value, str):
            yield "constant", ast.Constant(f"{value}?")
        elif isinstance(value, bytes):
            yield "constant", ast.Constant(value + b"?")


def _removable(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return any(isinstance(one, ast.Attribute | ast.Subscript) for one in statement.targets)
    kinds = (ast.AugAssign, ast.Raise, ast.Delete, ast.Continue, ast.Break)
    return isinstance(statement, kinds) or (
        isinstance(statement, ast.Expr) and not _is_text(statement)
    )


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_alias(statement: ast.stmt) -> bool:
    """Whether it names a type for type checkers."""
    return isinstance(statement, ast.AnnAssign) and "TypeAlias" in ast.unparse(statement.annotation)


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _is_error(node: ast.AST) -> bool:
    """Whether a node constructs an exception, whose text is not mutated."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id.lstrip("_")[:1].isupper()
        and node.func.id.endswith(("Error", "Fault", "Undefined"))
    )


def _lines(statement: ast.AST) -> tuple[int, int]:
    """Returns all lines of a simple statement, or those of the head of a compound one."""
    first = getattr(statement, "lineno", 1)
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        return first, max(body[0].lineno, first + 1)
    return first, getattr(statement, "end_lineno", first) + 1


def _text(node) -> str:
    nodes = node if isinstance(node, list) else [node]
    text = " ".join("; ".join(map(ast.unparse, nodes)).split())
    return text if len(text) <= 70 else f"{text[:67]}…"
