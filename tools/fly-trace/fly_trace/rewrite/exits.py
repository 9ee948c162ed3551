"""Removes early exits from a function: a `return`, `break` or `continue` within control flow, and
the `else` of a loop.

    if c:                   if c:
        return a       →        value = a
    rest                    else:
    return b                    rest
                                value = b
                            return value

Where one side of an `if` always leaves, the statements behind it move to the other side. Elsewhere
variables say whether a path has left: `__fly_returned`, `__fly_left_N` of a loop that ends, and
`__fly_skip_N` of an iteration that does; the statements behind are under an `if` that tests one.
All of them are Python's booleans while the conditions are static, so that tracing follows one path;
under a dynamic condition they are dynamic, as any variable.
"""

from __future__ import annotations

import ast

from fly_common.record import record

from fly_trace.rewrite import nodes
from fly_trace.rewrite.names import FUNCTIONS
from fly_trace.rewrite.nodes import children

VALUE = "__fly_value"
RETURNED = "__fly_returned"
SKIP, LEFT = "__fly_skip_", "__fly_left_"
STATE = "__fly_state_"  # of a loop with init=
_LOOPS = (ast.For, ast.While)
_SCOPES = (*FUNCTIONS, ast.ClassDef)


def restructure(function: ast.FunctionDef) -> None:
    """Rewrites a function's body without early exits, if it has any. Nested functions are
    separate. Annotates an `if` with the first `raise` in it (`raises`), whether an exit was in it
    (`exits`) and the only side that anything follows (`only`), a loop with the variable that ends
    it (`left`) and whether an exit was in it."""
    if any(_is_early(node, False) for node in function.body):
        _Exits(function).restructure()


def _is_early(node: ast.AST, nested: bool) -> bool:
    """Whether there is an early exit in a statement."""
    if isinstance(node, _SCOPES):
        return False
    if isinstance(node, (ast.Break, ast.Continue)):
        return True
    if isinstance(node, ast.Return):
        return nested
    if isinstance(node, ast.expr):
        return False
    if isinstance(node, _LOOPS) and node.orelse:
        return True
    return any(_is_early(inner, True) for inner in children(node))


def exits_of(node: ast.AST) -> set[type[ast.stmt]]:
    """The kinds of statements by which a statement leaves the block that it is in: a return
    anywhere, a break or continue outside of its own loops."""
    if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
        return {type(node)}
    if isinstance(node, (*_SCOPES, ast.expr)) or not _has_blocks(node):
        return set()
    # Kept with the statement as it was written: each is asked for again from inside.
    known = getattr(node, "leaves_by", None)
    if known is None:
        if isinstance(node, _LOOPS):
            inside = exits_of_all(node.body) & {ast.Return}
            known = inside | exits_of_all(node.orelse)
        else:
            known = exits_of_all(children(node))
        node.leaves_by = known  # type: ignore[attr-defined]
    return known


def _has_blocks(node: ast.AST) -> bool:
    return "body" in node._fields or "cases" in node._fields


def exits_of_all(body: list[ast.stmt] | list[ast.AST]) -> set[type[ast.stmt]]:
    return set().union(*map(exits_of, body))


def first_raise(body: list[ast.stmt]) -> ast.Raise | None:
    """The first `raise` in the statements, without nested functions, and without those in an `if`
    among them: its own test has to be known while tracing then, not one around it."""
    for node in body:
        if isinstance(node, ast.Raise):
            return node
        if isinstance(node, ast.If):
            continue
        if not isinstance(node, (*_SCOPES, ast.expr)) and _has_blocks(node):
            if not hasattr(node, "raise_in"):  # kept: each is asked for again from inside
                inner = [child for child in children(node) if not isinstance(child, ast.expr)]
                node.raise_in = first_raise(inner)  # type: ignore[attr-defined, arg-type]
            if node.raise_in is not None:  # type: ignore[attr-defined]
                return node.raise_in  # type: ignore[attr-defined]
    return None


def always_leaves(body: list[ast.stmt]) -> bool:
    """Whether no path comes to the end of the statements."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return True
        if isinstance(node, ast.If) and always_leaves(node.body) and always_leaves(node.orelse):
            return True
        if isinstance(node, ast.While) and _is_endless(node):
            return True
    return False


def _is_endless(node: ast.While) -> bool:
    forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
    return forever and ast.Break not in exits_of_all(node.body)


@record
class _Loop:
    """The variables of a loop: `skip` ends its iteration, `left` the loop, if anything does."""

    skip: str
    left: str | None


class _Exits:
    def __init__(self, function: ast.FunctionDef):
        self.function = function
        self.loops: list[_Loop] = []
        self.count = 0
        self.read: set[str] = set()  # the variables that something tests
        # Whether the function ends where the block does. A generator's caller goes on behind it.
        self.is_last = not getattr(function, "is_generator", False)
        self.has_value = any(map(_has_value, function.body))

    def restructure(self) -> None:
        function = self.function
        body = function.body
        if self.has_value and not always_leaves(body):
            # Falling off the end returns None, which must then be what the other paths return.
            body = [*body, nodes.at(ast.Return(ast.Constant(None)), body[-1])]
        body = self.block(body)
        if RETURNED in self.read:
            body = [nodes.at(nodes.assign(RETURNED, ast.Constant(False)), function), *body]
        if self.has_value:
            last = nodes.at(ast.Return(ast.Name(VALUE, ast.Load())), body[-1])
            last.is_made = True
            body.append(last)
        function.body = self.pruned(body)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements without exits of this block. What follows an exit is dropped."""
        out: list[ast.stmt] = []
        for index, node in enumerate(body):
            rest = body[index + 1 :]
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                return [*out, *self.leave(node)]
            if isinstance(node, ast.Raise):
                return [*out, node]
            if isinstance(node, _LOOPS):
                return [*out, *self.loop(node, rest)]
            kinds = exits_of(node)
            if isinstance(node, ast.If):
                if self.branch(node, rest, bool(kinds)):
                    return [*out, node]
            else:
                self.inner(node)
            out.append(node)
            if kinds:
                return [*out, *self.guarded(rest, node)]
        return out

    def branch(self, node: ast.If, rest: list[ast.stmt], exits: bool) -> bool:
        """Rewrites an `if`, and moves `rest` into it if only one side comes to its end. Returns
        whether it did."""
        if not hasattr(node, "raises"):
            node.raises = first_raise([*node.body, *node.orelse])  # type: ignore[attr-defined]
        node.exits = exits  # type: ignore[attr-defined]
        moves, gone = None, node.body
        if exits and always_leaves(node.body):
            moves, node.orelse = "else", [*node.orelse, *rest]
        elif exits and node.orelse and always_leaves(node.orelse):
            moves, gone, node.body = "then", node.orelse, [*node.body, *rest]
        leaves = moves is not None and exits_of_all(gone) == {ast.Return}
        if leaves and self.is_last and not self.has_value:
            node.only = moves  # type: ignore[attr-defined]
        last, self.is_last = self.is_last, False
        for side in ("body", "orelse"):
            self.is_last = last and moves == {"body": "then", "orelse": "else"}[side]
            setattr(node, side, self.block(getattr(node, side)))
        self.is_last = last
        return moves is not None

    def inner(self, node: ast.stmt) -> None:
        """Rewrites the blocks of `with` and `try`."""
        last, self.is_last = self.is_last, False
        match node:
            case ast.With():
                node.body = self.block(node.body)
            case ast.Try():
                exits = exits_of_all(node.body)
                node.body = self.block(node.body)
                for handler in node.handlers:
                    handler.body = self.block(handler.body)
                if exits:
                    node.orelse = self.guarded(node.orelse, node)
                else:
                    node.orelse = self.block(node.orelse)
                node.finalbody = self.block(node.finalbody)
        self.is_last = last

    def loop(self, node: ast.For | ast.While, rest: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrites a loop and what follows it."""
        kinds = exits_of_all(node.body)
        self.count += 1
        left = f"{LEFT}{self.count}" if ast.Break in kinds else None
        if left is None and ast.Return in kinds:
            left = RETURNED
        own = _Loop(f"{SKIP}{self.count}", left)
        self.loops.append(own)
        last, self.is_last = self.is_last, False
        body = self.block(node.body)
        self.is_last = last
        self.loops.pop()
        if left is not None:  # known where an iteration begins
            body = [nodes.at(nodes.assign(left, ast.Constant(False)), node), *body]
        if own.skip in self.read:
            body = [nodes.at(nodes.assign(own.skip, ast.Constant(False)), node), *body]
        node.body = body
        node.exits = bool(kinds or node.orelse)  # type: ignore[attr-defined]
        orelse, node.orelse = node.orelse, []
        out: list[ast.stmt] = [node]
        if left is not None:
            self.read.add(left)
            node.left = left  # type: ignore[attr-defined]
            if isinstance(node, ast.While):
                goes = ast.UnaryOp(ast.Not(), ast.Name(left, ast.Load()))
                node.test = nodes.at(ast.BoolOp(ast.And(), [goes, node.test]), node.test)
        if ast.Break in kinds:
            out.insert(0, nodes.at(nodes.assign(str(left), ast.Constant(False)), node))
            if orelse:
                orelse = [self.unless(str(left), orelse, orelse[0])]
        rest = [*orelse, *rest]
        return [*out, *(self.guarded(rest, node) if ast.Return in kinds else self.block(rest))]

    def guarded(self, body: list[ast.stmt], node: ast.AST) -> list[ast.stmt]:
        """The statements `body`, which follow `node`, for the paths that have not left in it."""
        if not body:
            return []
        flag = self.loops[-1].skip if self.loops else RETURNED
        self.read.add(flag)
        last, self.is_last = self.is_last, False
        guarded = self.block(body)
        self.is_last = last
        return [self.unless(flag, guarded, node)]

    def unless(self, flag: str, body: list[ast.stmt], node: ast.AST) -> ast.If:
        test = nodes.at(ast.Name(flag, ast.Load()), node)
        made = nodes.at(ast.If(test, [nodes.at(ast.Pass(), node)], body), node)
        made.raises, made.exits = None, False
        return made

    def leave(self, node: ast.stmt) -> list[ast.stmt]:
        """The assignments of an exit."""
        out: list[ast.stmt] = []
        flags = [self.loops[-1].skip] if self.loops else []
        if isinstance(node, ast.Return):
            flags = [RETURNED, *(loop.skip for loop in self.loops)]
            flags += [loop.left for loop in self.loops if loop.left not in (None, RETURNED)]
            if self.has_value:
                value = node.value or nodes.at(ast.Constant(None), node)
                out = [nodes.at(nodes.assign(VALUE, value), node)]
                out[0].is_return = True  # type: ignore[attr-defined]
        elif isinstance(node, ast.Break):
            flags.append(str(self.loops[-1].left))
        for name in flags:
            made = nodes.at(nodes.assign(name, ast.Constant(True)), node)
            made.flag = name
            out.append(made)
        return out or [nodes.at(ast.Pass(), node)]

    def pruned(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements without assignments to variables that nothing tests."""
        out = [node for node in body if getattr(node, "flag", None) in (None, *self.read)]
        for node in out:
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(node, name, None)
                if isinstance(inner, list) and not isinstance(node, _SCOPES):
                    setattr(node, name, self.pruned(inner) if inner else [])
            for one in getattr(node, "handlers", ()):
                one.body = self.pruned(one.body)
        return out or [nodes.at(ast.Pass(), body[0])]


def _has_value(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return node.value is not None
    if isinstance(node, (*_SCOPES, ast.expr)):
        return False
    return any(map(_has_value, children(node)))
