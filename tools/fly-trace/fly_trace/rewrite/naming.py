"""Transforms functions with assignment expressions: see `named_values`."""

from __future__ import annotations

import ast
from typing import Any

from fly_common.record import field, record

from fly_trace.rewrite import named_values, nodes
from fly_trace.rewrite.transform import Transformer


@record(frozen=False)
class Naming(Transformer):
    """`makers` are the first statements of the functions around a node: functions that read and
    set variables. `carried` are the names that the expression around a node carries."""

    makers: list[list[ast.stmt]] = field(default_factory=list)
    carried: bool = False

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.makers.append([])
        before, self.carried = self.carried, False
        new = super().function(node)
        self.carried = before
        new.body[:0] = self.makers.pop()
        return new

    def visit(self, node: ast.AST) -> Any:
        if self.carried or not isinstance(node, _MAY_SKIP):
            return super().visit(node)
        names = tuple(named_values.names(node))
        if not names:
            return super().visit(node)
        self.carried = True
        new = super().visit(node)
        self.carried = False
        get, put = self.accessors(names, node)
        for maker in (get, put):
            self.keep(maker)
        given = (nodes.thunk(new), nodes.name(get.name), nodes.name(put.name))
        return nodes.at(nodes.call("carrying", *given, nodes.strings(names)), node)

    def keep(self, maker: ast.FunctionDef) -> None:
        """Adds a function to the first statements, under a name of its own."""
        maker.name = f"{maker.name}_{len(self.makers[-1])}"
        self.makers[-1].append(maker)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """`name := value` as `set(value)`."""
        name = node.target.id
        keep = nodes.at(nodes.assign(name, nodes.name("__fly_value")), node)
        last = nodes.at(ast.Return(nodes.name("__fly_value")), node)
        maker = self.nested("set", [keep, last], (name,), node, "__fly_value")
        self.keep(maker)
        return nodes.at(ast.Call(nodes.name(maker.name), [self.visit(node.value)], []), node)


# Expressions with parts that may not be computed. A call may be of `any` with a generator.
_MAY_SKIP = (ast.BoolOp, ast.IfExp, ast.Compare, ast.Call)
