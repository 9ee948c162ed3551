"""FlyDSL's loops with explicit state, as assignments.

    for i, state in range(a, b, init=[x, y]):       state_1 = [x, y]
        …                                           for i in range(a, b):
        results = yield [p, q]                 →        state = [*state_1]
                                                        …
                                                        state_1 = [p, q]
                                                    results = state_1

As in FlyDSL, the result of a loop with one value is the value itself.
"""

from __future__ import annotations

import ast

from fly_trace.rewrite import nodes
from fly_trace.rewrite.exits import STATE, exits_of_all
from fly_trace.rewrite.refused import refuse_syntax

_FORM = "for i, state in range(n, init=[x, y]): …; results = yield [x, y]"


def expand(node: ast.AST, file: str) -> None:
    """Rewrites the loops with `init=` in a tree."""
    _Expansion(file).visit(node)


def _init_of(node: ast.AST) -> ast.keyword | None:
    if not isinstance(node, ast.For) or (ranged := nodes.range_call(node.iter)) is None:
        return None
    return next((word for word in ranged.keywords if word.arg == "init"), None)


class _Expansion(ast.NodeTransformer):
    def __init__(self, file: str):
        self.file = file
        self.count = 0

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        init = _init_of(node)
        if init is None:
            return node
        ranged = nodes.range_call(node.iter)
        assert ranged is not None
        ranged.keywords.remove(init)
        target = node.target
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or node.orelse:
            raise refuse_syntax(target, self.file, "a loop with init= has two targets", _FORM)
        if exits_of_all(node.body):
            where = _first_exit(node.body)
            raise refuse_syntax(
                where,
                self.file,
                "an iteration of a loop with init= can't be left before its `yield`",
                "use variables: a loop carries those that it assigns",
            )
        last = node.body[-1]
        given = last.value if isinstance(last, (ast.Expr, ast.Assign)) else None
        if not isinstance(given, ast.Yield) or given.value is None:
            raise refuse_syntax(
                init.value, self.file, "a loop with init= ends with `yield` of its state", _FORM
            )
        self.count += 1
        held = f"{STATE}{self.count}"
        node.target = target.elts[0]
        take = nodes.at(ast.Assign([target.elts[1]], _listed(nodes.name(held))), target.elts[1])
        keep = nodes.at(nodes.assign(held, nodes.at(_listed(given.value), given)), last)
        node.body = [take, *node.body[:-1], keep]
        first = nodes.at(nodes.assign(held, nodes.at(_listed(init.value), init.value)), node)
        out: list[ast.stmt] = [first, node]
        if isinstance(last, ast.Assign):
            out.append(nodes.at(ast.Assign(last.targets, _unwrapped(held)), last))
        return out


def _listed(node: ast.expr) -> ast.expr:
    """`[*node]`."""
    return ast.List([ast.Starred(node, ast.Load())], ast.Load())


def _unwrapped(held: str) -> ast.expr:
    """`held[0] if len(held) == 1 else held`."""
    size = ast.Call(ast.Attribute(nodes.name(held), "__len__", ast.Load()), [], [])
    test = ast.Compare(size, [ast.Eq()], [ast.Constant(1)])
    one = ast.Subscript(nodes.name(held), ast.Constant(0), ast.Load())
    return ast.IfExp(test, one, nodes.name(held))


def _first_exit(body: list[ast.stmt]) -> ast.stmt:
    kinds = (ast.Return, ast.Break, ast.Continue)
    return next(inner for node in body for inner in nodes.walk(node) if isinstance(inner, kinds))
