"""Liveness of local variables in Python source.

`liveness` annotates each `if`, `for` and `while` with the names that are read after it
(`live_out`), and each loop with those read at the start of an iteration (`live_head`). It is
conservative: a name that a nested function or lambda mentions is live everywhere. Early exits have
been removed before (`exits`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from fly_trace.rewrite.nodes import children, walk

Names = frozenset[str]
NOTHING: Names = frozenset()

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """The local names that the statements bind, in order of appearance, without nested scopes."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = None
            for decorator in node.decorator_list:
                visit(decorator)
            return
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((one.asname or one.name.partition(".")[0], None) for one in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found[node.name] = None
        elif isinstance(node, (*COMPREHENSIONS, ast.Lambda)):
            return
        for child in children(node):
            visit(child)

    for node in nodes:
        visit(node)
    return list(found)


def changed(body: list[ast.stmt]) -> dict[tuple[str, str | None], None]:
    """The variables with items or attributes that the statements assign to, and the attribute.
    Expressions are not looked at, and the result for an inner block is kept with its statement."""
    found: dict[tuple[str, str | None], None] = {}
    for node in body:
        kind = type(node)
        if kind is ast.Assign:
            for target in node.targets:  # type: ignore[attr-defined]
                _changed_by(target, found)
        elif kind in _TARGETED:
            _changed_by(node.target, found)  # type: ignore[attr-defined]
        elif kind in _BLOCKS:
            inner = getattr(node, "changed", None)
            if inner is None:
                inner = {}
                for name in _BLOCKS[kind]:
                    inner.update(changed(getattr(node, name)))
                if kind is ast.For:
                    _changed_by(node.target, inner)  # type: ignore[attr-defined]
                for handler in getattr(node, "handlers", ()):
                    inner.update(changed(handler.body))
                for item in getattr(node, "items", ()):
                    if item.optional_vars is not None:
                        _changed_by(item.optional_vars, inner)
                node.changed = inner  # type: ignore[attr-defined]
            found.update(inner)
    return found


_TARGETED = (ast.AugAssign, ast.AnnAssign)
_BLOCKS: dict[type, tuple[str, ...]] = {
    ast.If: ("body", "orelse"),
    ast.For: ("body",),
    ast.While: ("body",),
    ast.With: ("body",),
    ast.Try: ("body", "orelse", "finalbody"),
}


def _changed_by(target: ast.expr, found: dict[tuple[str, str | None], None]) -> None:
    if isinstance(target, (ast.Subscript, ast.Attribute)):
        root = target.value
        while isinstance(root, (ast.Subscript, ast.Attribute)):
            root = root.value
        if isinstance(root, ast.Name):
            found[root.id, target.attr if isinstance(target, ast.Attribute) else None] = None
    elif isinstance(target, (ast.Tuple, ast.List)):
        for inner in target.elts:
            _changed_by(inner, found)
    elif isinstance(target, ast.Starred):
        _changed_by(target.value, found)


def parameters(arguments: ast.arguments) -> list[str]:
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    given += [extra for extra in (arguments.vararg, arguments.kwarg) if extra]
    return [argument.arg for argument in given]


def read(*nodes: ast.AST | None) -> Names:
    """All names that are read anywhere in the nodes."""
    return frozenset(
        inner.id
        for node in nodes
        if node is not None
        for inner in walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    )


def captured(body: list[ast.stmt]) -> Names:
    """The names that nested functions and lambdas read. These may be called at any time."""
    return frozenset().union(
        *(
            read(inner)
            for node in body
            for inner in walk(node)
            if isinstance(inner, (*FUNCTIONS, ast.GeneratorExp))
        )
    )


def liveness(function: ast.FunctionDef | ast.Lambda) -> None:
    """Annotates the control flow of a function's body. Nested functions are separate."""
    if isinstance(function, ast.FunctionDef):
        _Liveness(captured(function.body)).block(function.body, NOTHING)


class _Liveness:
    def __init__(self, always: Names):
        self.always = always

    def block(self, body: list[ast.stmt], after: Names) -> Names:
        """The live names before the statements, given those after them."""
        for statement in reversed(body):
            after = self.statement(statement, after)
        return after

    def statement(self, node: ast.stmt, after: Names) -> Names:
        match node:
            case ast.If():
                note(node, "live_out", after | self.always)
                taken = self.block(node.body, after) | self.block(node.orelse, after)
                return taken | read(node.test)
            case ast.For() | ast.AsyncFor():
                note(node, "live_out", after | self.always)
                targets = frozenset(assigned([node.target]))
                used = read(node.target)  # A[i] as a target reads A and i
                left = getattr(node, "left", None)
                test = frozenset((left,)) if left else NOTHING
                head = self.loop(node, after, lambda inside: (inside - targets) | used, test)
                return head | read(node.iter)
            case ast.While():
                note(node, "live_out", after | self.always)
                return self.loop(node, after, lambda inside: inside, read(node.test))
            case ast.With():
                return self.block(node.body, after) | read(
                    *(item.context_expr for item in node.items)
                )
            case ast.Try():
                behind = self.block(node.finalbody, after) | after
                caught = behind
                for handler in node.handlers:
                    caught |= self.block(handler.body, behind) | read(handler.type)
                # An exception may be raised anywhere in the body.
                before, self.always = self.always, self.always | caught
                live = self.block(node.body, self.block(node.orelse, behind)) | caught
                self.always = before
                return live
            case ast.Delete():
                return self.store(node.targets, after) | read(*node.targets)
            case ast.Return():
                return read(node.value)
            case ast.Raise():
                return read(node.exc, node.cause)
            case ast.Assign():
                return self.store(node.targets, after) | read(*node.targets, node.value)
            case ast.AnnAssign():
                if node.value is None:
                    return after
                return self.store([node.target], after) | read(node.target, node.value)
            case ast.AugAssign():
                own = frozenset(assigned([node.target]))
                return after | own | read(node.target, node.value)
            case ast.FunctionDef():
                return (after - {node.name}) | read(node)
            case _:
                # Any other statement keeps what is live, and may read all names that it mentions.
                return after | read(node)

    def store(self, targets: list[ast.expr], after: Names) -> Names:
        return after - frozenset(assigned(targets))

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, after: Names, enter, test: Names):
        """Iterates until the live names at the loop head reach a fixpoint."""
        head = after | test
        while True:
            grown = head | enter(self.block(node.body, head))
            if grown == head:
                break
            head = grown
        note(node, "live_head", head | self.always)
        return head


def note(node: ast.AST, name: str, names: Names) -> None:
    setattr(node, name, names)


def shared(body: list[ast.stmt]) -> list[str]:
    """The names that may lack a value: those that control flow assigns, whose branches and bodies
    become nested functions, and those that `del` unbinds."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, (*FUNCTIONS, *COMPREHENSIONS, ast.ClassDef)):
            return
        if isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.Delete)):
            found.update(dict.fromkeys(assigned([node])))
            return
        for child in children(node):
            visit(child)

    for node in body:
        visit(node)
    return list(found)


def ordered(names: list[str], live: frozenset[str]) -> tuple[tuple[str, ...], int]:
    """The names with the live ones first, and the number of live ones."""
    needed = [name for name in names if name in live]
    return (*needed, *(name for name in names if name not in live)), len(needed)
