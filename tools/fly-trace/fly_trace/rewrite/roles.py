"""`with fx.warp_group(…) as own: body` is an `if`, before anything else is rewritten:

    own = fx.warp_group(…)
    if control.members(own):
        if control.entered(own):
            body

So variables, exits and nested control flow have the meaning that they have in an `if`.
"""

from __future__ import annotations

import ast

from fly_trace.rewrite import nodes
from fly_trace.rewrite.refused import refuse_syntax

NAMES = frozenset(("warp_group", "producer_warps", "consumer_warps"))
_BODIES = ("body", "orelse", "finalbody")


def replace_roles(function: ast.AST, file: str) -> None:
    """Replaces such statements in a function, and in the functions in it."""
    for node in ast.walk(function):
        for field in _BODIES:
            body = getattr(node, field, None)
            if isinstance(body, list) and any(map(_role, body)):
                setattr(node, field, [new for one in body for new in _replaced(one, file)])


def _role(node: ast.AST) -> ast.withitem | None:
    """The item of a `with` that enters a role."""
    if not isinstance(node, ast.With):
        return None
    for item in node.items:
        call = item.context_expr
        function = call.func if isinstance(call, ast.Call) else None
        name = getattr(function, "attr", None) or getattr(function, "id", None)
        if name in NAMES:
            return item
    return None


def _replaced(node: ast.stmt, file: str) -> list[ast.stmt]:
    item = _role(node)
    if item is None or not isinstance(node, ast.With):
        return [node]
    call, target = item.context_expr, item.optional_vars
    if len(node.items) > 1 or not (target is None or isinstance(target, ast.Name)):
        raise refuse_syntax(
            call,
            file,
            "a role of warps with something else in the same `with`",
            "nest them: `with fx.warp_group(0) as own:` is a statement of its own",
        )
    name = f"__fly_role_{call.lineno}_{call.col_offset}" if target is None else target.id
    held = nodes.at(nodes.assign(name, call), target or call)
    entered = nodes.at(nodes.call("entered", ast.Name(name, ast.Load())), call)
    members = nodes.at(nodes.call("members", ast.Name(name, ast.Load())), call)
    inner = nodes.at(ast.If(entered, node.body, []), node)
    return [held, nodes.at(ast.If(members, [inner], []), node)]
