"""Transforms expressions: operators with operands that may not be needed, calls, comprehensions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from fly_common.record import field, record

from fly_trace.rewrite import names as analysis
from fly_trace.rewrite import nodes

FILTERED = ("sum", "any", "all", "max", "min", "next")
# Expressions whose values may be tuples or lists, of which Python compares the items.
_MAY_BE_SEQUENCES = (ast.Tuple, ast.List, ast.Name, ast.Attribute, ast.Call, ast.Subscript)
# Per class of visitors and of nodes.
_METHODS: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


@record(frozen=False)
class Scope:
    """A function or comprehension: the names it binds, and those that control flow may leave
    unassigned. `first` is the first parameter of a function."""

    bound: frozenset[str]
    checked: frozenset[str] = frozenset()
    first: str | None = None


@record(frozen=False)
class Expressions(ast.NodeTransformer):
    """Rewrites expressions. `scopes` are the functions and comprehensions around one."""

    file: str
    scopes: list[Scope] = field(default_factory=list)

    def visit(self, node: ast.AST) -> Any:
        """Rewrites a node. As in `ast.NodeVisitor`, with the methods looked up once per class."""
        kind = type(node)
        method = _METHODS.get((type(self), kind))
        if method is None:
            method = getattr(
                type(self), f"visit_{kind.__name__}", ast.NodeTransformer.generic_visit
            )
            _METHODS[type(self), kind] = method
        return method(self, node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        # A sum of many terms is nested to the left: no recursion for it.
        inner: ast.expr = node
        while isinstance(inner, ast.BinOp):
            inner.right, last = self.visit(inner.right), inner
            inner = inner.left
        last.left = self.visit(inner)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        node.value = self.visit(node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            for scope in reversed(self.scopes):
                if node.id in scope.bound:
                    if node.id in scope.checked:
                        return nodes.at(nodes.call("load", node), node)
                    break
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return self.parent(node)
        filtered = self.filtered(node)
        function = self.visit(node.func)
        arguments = [self.visit(item) for item in node.args]
        if filtered is not None:
            arguments[:1] = [nodes.thunk(arguments[0]), filtered]
        if nodes.is_printf(node):
            texts = map(nodes.thunk, arguments)
            return nodes.at(nodes.call("call_printf", function, *texts), node)
        keywords = [
            nodes.at(ast.keyword(item.arg, self.visit(item.value)), item) for item in node.keywords
        ]
        word = "call" if filtered is None else "filtered"
        return nodes.at(nodes.call(word, function, *arguments, keywords=keywords), node)

    def filtered(self, node: ast.Call) -> ast.expr | None:
        """For `sum(x for … if …)`, and the same of `any` and `all`: a function that returns pairs
        of the condition and a function that computes the item (`control.calls.filtered`)."""
        named = isinstance(node.func, ast.Name) and node.func.id in FILTERED
        if not named or not node.args or not isinstance(node.args[0], ast.GeneratorExp):
            return None
        tests = node.args[0].generators[-1].ifs
        if not tests or any(isinstance(one, ast.NamedExpr) for one in nodes.walk(node)):
            return None
        pairs = copy.deepcopy(node.args[0])
        tests, pairs.generators[-1].ifs = pairs.generators[-1].ifs, []
        test = tests[0] if len(tests) == 1 else nodes.at(ast.BoolOp(ast.And(), tests), tests[0])
        pairs.elt = nodes.at(ast.Tuple([test, pairs.elt], ast.Load()), pairs.elt)
        self.comprehension(pairs)
        assert isinstance(pairs.elt, ast.Tuple)
        pairs.elt.elts[1] = nodes.at(nodes.thunk(pairs.elt.elts[1]), node)
        return nodes.at(nodes.thunk(pairs), node)

    def parent(self, node: ast.Call) -> ast.Call:
        """`super()`, which looks at the frame that calls it, with its arguments: that frame may be
        a branch's."""
        if self.scopes and self.scopes[-1].first is not None:
            names = ("__class__", self.scopes[-1].first)
            node.args = [nodes.at(nodes.name(one), node) for one in names]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return nodes.at(
            nodes.call(name, *(nodes.thunk(self.visit(value)) for value in node.values)), node
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return nodes.at(nodes.call("not_", operand), node)
        node.operand = operand
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        ways = (nodes.thunk(self.visit(node.body)), nodes.thunk(self.visit(node.orelse)))
        return nodes.at(nodes.call("ifexp", self.visit(node.test), *ways), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [self.visit(operand) for operand in (node.left, *node.comparators)]
        words = [type(op).__name__ for op in node.ops]
        if len(words) > 1:
            listed = ast.Tuple([ast.Constant(word) for word in words], ast.Load())
            return nodes.at(nodes.call("chain", listed, *map(nodes.thunk, operands)), node)
        if words[0] in ("Is", "IsNot"):
            call = nodes.at(nodes.call("is_", *operands), node)
            return call if words[0] == "Is" else nodes.at(ast.UnaryOp(ast.Not(), call), node)
        if words[0] in ("In", "NotIn"):
            call = nodes.at(nodes.call("in_", *operands), node)
            return call if words[0] == "In" else nodes.at(nodes.call("not_", call), node)
        if all(isinstance(one, _MAY_BE_SEQUENCES) for one in (node.left, *node.comparators)):
            return nodes.at(nodes.call("compared", ast.Constant(words[0]), *operands), node)
        return nodes.at(ast.Compare(operands[0], node.ops, operands[1:]), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Store):
            value = nodes.at(nodes.call("target", value), node.value)
        elif isinstance(node.ctx, ast.Del):
            value = nodes.at(nodes.call("deleted_from", value), node.value)
        elif isinstance(node.ctx, ast.Load) and not nodes.has_slice(node.slice):
            return nodes.at(nodes.call("item", value, self.visit(node.slice)), node)
        return nodes.at(ast.Subscript(value, self.visit(node.slice), node.ctx), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self.visit(node.value)
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            name = ast.Constant(node.attr)
            value = nodes.at(nodes.call("target_attribute", value, name), node.value)
        return nodes.at(ast.Attribute(value, node.attr, node.ctx), node)

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            value = nodes.at(nodes.call("items", value), node.value)
        return nodes.at(ast.Starred(value, node.ctx), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self.comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return self.comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        return self.comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self.comprehension(node)

    def comprehension(self, node: ast.expr) -> ast.expr:
        bound = analysis.assigned([item.target for item in node.generators])  # type: ignore[attr-defined]
        # The first iterable is evaluated outside the scope of the targets.
        first = node.generators[0]  # type: ignore[attr-defined]
        first.iter = nodes.at(nodes.call("items", self.visit(first.iter)), first.iter)
        self.scopes.append(Scope(frozenset(bound)))
        for item in node.generators:  # type: ignore[attr-defined]
            if item is not first:
                item.iter = nodes.at(nodes.call("items", self.visit(item.iter)), item.iter)
            item.target = self.visit(item.target)
            item.ifs = [nodes.at(nodes.call("kept", self.visit(test)), test) for test in item.ifs]
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                setattr(node, part, self.visit(getattr(node, part)))
        self.scopes.pop()
        return node
