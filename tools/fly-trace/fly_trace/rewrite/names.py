"""The names that statements bind and read. Each statement is looked at once: what is found is kept
with it (`Facts`), and what is found for a block is put together from its statements.

Early exits have been removed before (`exits`). Statements must not be changed between the first
question about a function's body and the last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from fly_common.record import record

from fly_trace.rewrite.nodes import children

Names = frozenset[str]
NOTHING: Names = frozenset()

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@record
class Facts:
    """A statement's names: those that it binds, in order of appearance, without nested scopes;
    those of `:=` among them; all that are read anywhere in it; and those that nested functions,
    lambdas and generator expressions read, which may run at any time."""

    assigned: dict[str, None]
    named: tuple[str, ...]
    read: Names
    captured: Names


def facts(node: ast.AST) -> Facts:
    """The facts of a statement or expression."""
    known = getattr(node, "facts", None)
    if known is None:
        known = _together(node) if isinstance(node, _COMPOUND) else _of_tree(node)
        node.facts = known  # type: ignore[attr-defined]
    return known


# Statements with blocks, and their parts.
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.ExceptHandler, ast.withitem)


def _together(node: ast.AST) -> Facts:
    """The facts of a statement with blocks, from those of its fields."""
    assigned: dict[str, None] = {}
    if isinstance(node, ast.ExceptHandler) and node.name:
        assigned[node.name] = None
    named: tuple[str, ...] = ()
    read: set[str] = set()
    captured: set[str] = set()
    for part in children(node):
        inner = facts(part)
        assigned.update(inner.assigned)
        named += inner.named
        read |= inner.read
        captured |= inner.captured
    return Facts(assigned, named, frozenset(read), frozenset(captured))


# Where a node is: in the statement's own scope, in a class, in a comprehension, in a generator
# expression, which may run later, or in a function.
_OWN, _CLASS, _INSIDE, _LATER, _FUNCTION = range(5)


def _of_tree(root: ast.AST) -> Facts:
    """The facts of a tree, which is walked once, in the order of its text."""
    assigned: dict[str, None] = {}
    named: list[str] = []
    read: set[str] = set()
    captured: set[str] = set()
    # `hidden` are the targets of comprehensions around a node.
    stack: list[tuple[ast.AST, int, Names]] = [(root, _OWN, NOTHING)]
    while stack:
        node, scope, hidden = stack.pop()
        kind = type(node)
        if kind is ast.Name:
            name = node.id  # type: ignore[attr-defined]
            if type(node.ctx) is ast.Load:  # type: ignore[attr-defined]
                if name not in hidden:
                    read.add(name)
                    if scope >= _LATER:
                        captured.add(name)
            elif scope == _OWN:
                assigned[name] = None
            continue
        if kind is ast.Constant:
            continue
        fields = node._fields
        if kind in FUNCTIONS or kind is ast.ClassDef:
            if kind is not ast.Lambda and scope == _OWN:
                assigned[node.name] = None  # type: ignore[attr-defined]
            scope = _FUNCTION if kind in FUNCTIONS else max(scope, _CLASS)
        elif kind in COMPREHENSIONS:
            generators = node.generators  # type: ignore[attr-defined]
            scope = max(scope, _LATER if kind is ast.GeneratorExp else _INSIDE)
            outside, hidden = hidden, hidden.union(*map(_targets, generators))
            stack.append((generators[0].iter, scope, outside))
            first = generators[0]
            stack += [(one, scope, hidden) for one in (first.target, *first.ifs, *generators[1:])]
            fields = tuple(name for name in fields if name != "generators")
        elif kind is ast.NamedExpr:
            if scope in (_OWN, _INSIDE, _LATER):  # one in a comprehension binds it outside
                target = node.target.id  # type: ignore[attr-defined]
                assigned[target] = None
                named.append(target)
            fields = ("value",)
        elif kind is ast.Import or kind is ast.ImportFrom:
            names = node.names  # type: ignore[attr-defined]
            assigned.update((one.asname or one.name.partition(".")[0], None) for one in names)
            continue
        for field in reversed(fields):
            value = getattr(node, field, None)
            if isinstance(value, list):
                inner = [one for one in reversed(value) if isinstance(one, ast.AST)]
                stack += [(one, scope, hidden) for one in inner]
            elif isinstance(value, ast.AST) and value._fields:  # not an operator or a context
                stack.append((value, scope, hidden))
    return Facts(assigned, tuple(named), frozenset(read), frozenset(captured))


def _targets(generator: ast.comprehension) -> Names:
    """The names that one `for` of a comprehension binds."""
    found: set[str] = set()
    waiting: list[ast.AST] = [generator.target]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, (ast.Tuple, ast.List, ast.Starred)):
            waiting += children(node)
    return frozenset(found)


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """The local names that the statements bind, in order of appearance, without nested scopes."""
    found: dict[str, None] = {}
    for node in nodes:
        found.update(facts(node).assigned)
    return list(found)


def read(*nodes: ast.AST | None) -> Names:
    """All names that are read anywhere in the nodes."""
    return NOTHING.union(*(facts(node).read for node in nodes if node is not None))


def captured(body: list[ast.stmt]) -> Names:
    """The names that nested functions and lambdas read. These may be called at any time."""
    return NOTHING.union(*(facts(node).captured for node in body))


def shared(body: list[ast.stmt]) -> list[str]:
    """The names that may lack a value: those that control flow assigns, whose branches and bodies
    become nested functions, those of `:=`, and those that `del` unbinds."""
    found: dict[str, None] = {}
    for node in body:
        if isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.Delete)):
            found.update(facts(node).assigned)
        elif isinstance(node, ast.With):
            for item in node.items:
                found.update(dict.fromkeys(facts(item).named))
            found.update(dict.fromkeys(shared(node.body)))
        else:
            found.update(dict.fromkeys(facts(node).named))
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


def ordered(names: list[str], live: frozenset[str]) -> tuple[tuple[str, ...], int]:
    """The names with the live ones first, and the number of live ones."""
    needed = [name for name in names if name in live]
    return (*needed, *(name for name in names if name not in live)), len(needed)
