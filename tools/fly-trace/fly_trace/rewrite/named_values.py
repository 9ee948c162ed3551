"""Assignment expressions: `name := value`.

    if a > 0 and (y := f(a)) > 2:           if a > 0:
        body                         →          if (y := f(a)) > 2:
    else:                                           matched = True
        other                                       body
                                            if not matched:
                                                other

The variable belongs to the function, also where the expression is in a comprehension or in an
operand that may not be computed, which become functions of their own. So each assignment is a call
of a function that sets the variable. A dynamic branch of the expression carries it
(`control.named_values`).
"""

from __future__ import annotations

import ast

from fly_trace.rewrite import nodes
from fly_trace.rewrite.refused import refuse_syntax

MATCHED, ENDED = "__fly_met_", "__fly_ended_"


def names(*given: ast.AST) -> list[str]:
    """The names that assignment expressions in the nodes bind, in order, without functions'."""
    found: dict[str, None] = {}
    waiting = [*given]
    for node in waiting:
        if isinstance(node, ast.NamedExpr):
            found[node.target.id] = None
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += nodes.children(node)
    return list(found)


def expand(node: ast.AST, file: str) -> None:
    """Rewrites the conditions with assignment expressions in a tree."""
    _Expansion(file).visit(node)


class _Expansion(ast.NodeTransformer):
    def __init__(self, file: str):
        self.file = file
        self.count = 0

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self._check(node.body, "a lambda", "define a function")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        for one in [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]:
            if one is not None:
                self._check(one, "a default or a decorator", "use an assignment statement")
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        for one in node.body:
            if isinstance(one, ast.FunctionDef):
                self.visit(one)
            else:
                self._check(one, "the body of a class", "use an assignment statement")
        return node

    def _check(self, node: ast.AST, where: str, hint: str) -> None:
        for inner in nodes.walk(node):
            if isinstance(inner, ast.NamedExpr):
                raise refuse_syntax(inner, self.file, f"`:=` can't be used in {where}", hint)

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        """Operands of `and` behind one that may be false have been computed where the body runs:
        an `if` in an `if` says so."""
        self.generic_visit(node)
        return self.nested(node)

    def nested(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        test = node.test
        if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
            return node
        at = next((k for k, one in enumerate(test.values) if k and names(one)), None)
        if at is None:
            return node
        before, behind = _all(test.values[:at], test), _all(test.values[at:], test)
        body = node.body
        out: list[ast.stmt] = []
        flag = f"{MATCHED}{self.count}"
        self.count += 1
        if node.orelse:
            out = [nodes.at(nodes.assign(flag, ast.Constant(False)), test)]
            body = [nodes.at(nodes.assign(flag, ast.Constant(True)), test), *body]
        inner = self.nested(nodes.at(ast.If(behind, body, []), node))
        inner = inner if isinstance(inner, list) else [inner]
        out.append(nodes.at(ast.If(before, inner, []), node))
        if node.orelse:
            done: list[ast.stmt] = [nodes.at(ast.Pass(), test)]
            tested = nodes.at(nodes.name(flag), test)
            out.append(nodes.at(ast.If(tested, done, node.orelse), node))
        return out

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        """`while test: body` as `while True:`, with a `break` where the test is false."""
        self.generic_visit(node)
        if not names(node.test):
            return node
        ended = f"{ENDED}{self.count}"
        self.count += 1
        leave: list[ast.stmt] = [nodes.at(ast.Break(), node.test)]
        if node.orelse:
            leave.insert(0, nodes.at(nodes.assign(ended, ast.Constant(True)), node.test))
        tested = self.nested(nodes.at(ast.If(node.test, node.body, leave), node.test))
        body = tested if isinstance(tested, list) else [tested]
        endless = nodes.at(ast.Constant(True), node.test)
        loop = nodes.at(ast.While(endless, body, []), node)
        if not node.orelse:
            return loop
        first = nodes.at(nodes.assign(ended, ast.Constant(False)), node.test)
        last = nodes.at(ast.If(nodes.at(nodes.name(ended), node.test), node.orelse, []), node)
        return [first, loop, last]


def _all(values: list[ast.expr], origin: ast.expr) -> ast.expr:
    """`values[0] and values[1] and …`."""
    return values[0] if len(values) == 1 else nodes.at(ast.BoolOp(ast.And(), values), origin)
