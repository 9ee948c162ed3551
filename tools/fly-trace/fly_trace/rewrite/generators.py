"""Generator functions.

A branch or body with a `yield` can't become a function of its own: the `yield` would be that
function's. So an `if`, `for` or `while` with a `yield` in it stays Python's, and its condition or
range must be known while tracing. All else is rewritten as in other functions. A generator has a
function more, by which a loop that a dynamic condition ends sets its variables
(`control.generators`).
"""

from __future__ import annotations

import ast
from typing import Any

from fly_trace.rewrite import names as analysis
from fly_trace.rewrite import nodes
from fly_trace.rewrite.naming import Naming
from fly_trace.rewrite.refused import refuse_syntax

PUT, GUARDED = "__fly_generator_put", "__fly_generator_guarded"
_YIELDS = (ast.Yield, ast.YieldFrom)


def first_yield(*given: ast.AST) -> ast.Yield | ast.YieldFrom | None:
    """The first `yield` in the nodes, without nested functions."""
    for node in given:
        if isinstance(node, _YIELDS):
            return node
        if isinstance(node, (*analysis.FUNCTIONS, ast.ClassDef)):
            continue
        if (found := first_yield(*nodes.children(node))) is not None:
            return found
    return None


class Generating(Naming):
    """Rewrites functions of which some are generators."""

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if first_yield(*node.body) is None:
            return super().function(node)
        node.is_generator = True  # type: ignore[attr-defined]
        for one in nodes.walk(node):
            if isinstance(one, (ast.Yield, ast.YieldFrom)) and one.value is None:
                one.value = nodes.at(ast.Constant(None), one)
        guarded = any(
            isinstance(one, (ast.With, ast.Try)) and first_yield(one) for one in nodes.walk(node)
        )
        new = super().function(node)
        functions = {one.name for one in new.body if isinstance(one, ast.FunctionDef)}
        bound = [*analysis.parameters(node.args), *analysis.assigned(new.body)]
        own = (name for name in bound if name not in functions or not name.startswith("__fly_"))
        variables = tuple(dict.fromkeys(own))
        held = nodes.at(nodes.assign(GUARDED, ast.Constant(guarded)), node)
        new.body[:0] = [held, self.setter(variables, node)]
        return new

    def setter(self, names: tuple[str, ...], node: ast.AST) -> ast.FunctionDef:
        """The function that sets those of the variables that a dictionary has."""
        body: list[ast.stmt] = []
        for name in names:
            test = ast.Compare(ast.Constant(name), [ast.In()], [nodes.name("__fly_values")])
            item = ast.Subscript(nodes.name("__fly_values"), ast.Constant(name), ast.Load())
            body.append(nodes.at(ast.If(test, [nodes.assign(name, item)], []), node))
        made = self.nested("put", body, names, node, "__fly_values")
        made.name = PUT
        return made

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _OPERANDS) and (found := first_yield(node)) is not None:
            several = not isinstance(node, ast.Compare) or len(node.ops) > 1
            if several:
                raise refuse_syntax(
                    found,
                    self.file,
                    "a `yield` in an operand that may not be computed",
                    "assign it to a variable first",
                )
        return super().visit(node)

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        found = first_yield(*node.body, *node.orelse)
        if found is None:
            return super().visit_If(node)
        test = self.static(self.visit(node.test), found, node.test)
        return nodes.at(ast.If(test, self.block(node.body), self.block(node.orelse)), node)

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        found = first_yield(*node.body)
        if found is None:
            return super().visit_While(node)
        test = self.static(self.visit(node.test), found, node.test)
        return nodes.at(ast.While(test, self.block(node.body), []), node)

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        found = first_yield(*node.body)
        if found is None:
            return super().visit_For(node)
        ranged = nodes.range_call(node.iter)
        if ranged is None:
            iterable = nodes.call("items", self.visit(node.iter))
        else:
            given = ast.Tuple([self.visit(item) for item in ranged.args], ast.Load())
            iterable = nodes.call("static_range", self.visit(ranged.func), given, _span(found))
        body = self.block(node.body)
        left = getattr(node, "left", None)
        if left is not None:
            test = self.static(nodes.at(nodes.name(left), node), found, node)
            leave: list[ast.stmt] = [nodes.at(ast.Break(), node)]
            body.append(nodes.at(ast.If(test, leave, []), node))
        target = self.visit(node.target)
        return nodes.at(ast.For(target, nodes.at(iterable, node.iter), body, []), node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        assert node.value is not None
        value = nodes.at(nodes.call("items", self.visit(node.value)), node.value)
        return nodes.at(ast.YieldFrom(value), node)

    def static(self, test: ast.expr, found: ast.expr, origin: ast.AST) -> ast.expr:
        """A test that must be static, because of the `yield` that is found."""
        return nodes.at(nodes.call("yielding_test", test, _span(found)), origin)


def _span(node: ast.expr) -> ast.Tuple:
    ends = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
    return ast.Tuple([ast.Constant(number) for number in ends], ast.Load())


_OPERANDS = (ast.BoolOp, ast.IfExp, ast.Compare, ast.Lambda)
