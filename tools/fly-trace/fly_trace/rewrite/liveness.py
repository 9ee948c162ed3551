"""Which variables are read later. `annotate` marks each `if` with those of its names that are read
after it (`live_out`), and each loop with those read after it or at the start of an iteration
(`live_head`).

It is conservative: a name that a nested function or lambda mentions is live everywhere. What a
statement does to the live names is a pair of sets (`_Effect`), so two passes are enough however
deep loops are nested: the effects from the inside to the outside, and the live names from the
outside to the inside.
"""

from __future__ import annotations

import ast
from collections.abc import Set

from fly_common.record import record

from fly_trace.rewrite.names import NOTHING, Names, captured, facts, read


@record
class _Effect:
    """The live names before a statement are those after it, without `stored`, and `needed`. If the
    statement `ends` the function, those after it don't matter."""

    needed: Names
    stored: Names = NOTHING
    ends: bool = False


def annotate(function: ast.FunctionDef) -> None:
    """Annotates the control flow of a function's body. Nested functions are separate."""
    _before(function.body, NOTHING, captured(function.body))


def _effect(node: ast.stmt) -> _Effect:
    known = getattr(node, "effect", None)
    if known is None:
        known = node.effect = _found(node)  # type: ignore[attr-defined]
    return known


def _found(node: ast.stmt) -> _Effect:
    match node:
        case ast.If():
            a, b = _of_block(node.body), _of_block(node.orelse)
            needed = a.needed | b.needed | read(node.test)
            if a.ends or b.ends:
                return _Effect(needed, b.stored if a.ends else a.stored, a.ends and b.ends)
            return _Effect(needed, a.stored & b.stored)
        case ast.For() | ast.While():
            return _Effect(_of_loop(node) | _always_read(node))
        case ast.With():
            inner = _of_block(node.body)
            needed = inner.needed | read(*(item.context_expr for item in node.items))
            return _Effect(needed, inner.stored, inner.ends)
        case ast.Try():
            body, orelse = _of_block(node.body), _of_block(node.orelse)
            needed = _caught(node) | body.needed
            return _Effect(needed if body.ends else needed | (orelse.needed - body.stored))
        case ast.Delete():
            return _Effect(facts(node).read, frozenset(facts(node).assigned))
        case ast.Return():
            return _Effect(read(node.value), ends=True)
        case ast.Raise():
            return _Effect(read(node.exc, node.cause), ends=True)
        case ast.Assign():
            whole = facts(node)  # `:=` may store its name or not
            return _Effect(whole.read, frozenset(whole.assigned).difference(whole.named))
        case ast.AnnAssign():
            if node.value is None:
                return _Effect(NOTHING)
            stored = frozenset(facts(node.target).assigned)
            return _Effect(read(node.target, node.value), stored)
        case ast.AugAssign():
            return _Effect(facts(node).read.union(facts(node.target).assigned))
        case ast.FunctionDef():
            return _Effect(facts(node).read, frozenset((node.name,)))
        case _:
            # Any other statement keeps what is live, and may read all names that it mentions.
            return _Effect(facts(node).read)


def _of_block(body: list[ast.stmt]) -> _Effect:
    needed: set[str] = set()
    stored: set[str] = set()
    ends = False
    for statement in reversed(body):
        one = _effect(statement)
        if one.ends:
            needed, ends = set(), True
        needed -= one.stored
        needed |= one.needed
        stored |= one.stored
    return _Effect(frozenset(needed), frozenset(stored), ends)


def _of_loop(node: ast.For | ast.While) -> Names:
    """The names that an iteration, or the test for one, reads from before it."""
    inner = _of_block(node.body).needed
    if isinstance(node, ast.While):
        return inner | read(node.test)
    left = getattr(node, "left", None)
    # A[i] as a target reads A and i.
    head = (inner - facts(node.target).assigned.keys()) | read(node.target)
    return head | {left} if left else head


def _always_read(node: ast.For | ast.While) -> Names:
    return read(node.iter) if isinstance(node, ast.For) else NOTHING


def _caught(node: ast.Try) -> Names:
    """The names that are read where an exception is caught, and in `finally`."""
    found = set(_of_block(node.finalbody).needed)
    for handler in node.handlers:
        found |= _of_block(handler.body).needed | read(handler.type)
    return frozenset(found)


def _before(body: list[ast.stmt], after: Set[str], always: Set[str]) -> set[str]:
    """Annotates a block, given the live names after it. Returns those before it."""
    live = set(after)
    for node in reversed(body):
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            # Nothing inside asks for other names than those that the statement assigns.
            own = facts(node).assigned.keys()
            _inside(node, live & own, always & own)
        one = _effect(node)
        if one.ends:
            live = set()
        live -= one.stored
        live |= one.needed
    return live


def _inside(node: ast.stmt, after: Set[str], always: Set[str]) -> None:
    match node:
        case ast.If():
            node.live_out = after | always  # type: ignore[attr-defined]
            _before(node.body, after, always)
            _before(node.orelse, after, always)
        case ast.For() | ast.While():
            head = after | _of_loop(node)
            node.live_head = head | always  # type: ignore[attr-defined]
            _before(node.body, head, always)
        case ast.With():
            _before(node.body, after, always)
        case ast.Try():
            behind = _before(node.finalbody, after, always) | after
            for handler in node.handlers:
                _before(handler.body, behind, always)
            # An exception may be raised anywhere in the body.
            always = always | behind | _caught(node)
            _before(node.body, _before(node.orelse, behind, always), always)
