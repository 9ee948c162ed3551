"""Transforms a function's syntax tree so that control flow calls `fly_trace.control.runtime`.

    if c: x = a                 def then(): nonlocal x; x = a
                        →       def orelse(): nonlocal x; pass
                                def get(): return (x,)
                                def put(v): nonlocal x; (x,) = v
                                control.if_(c, then, orelse, get, put, ("x",), 1)

Branches and bodies share the function's own variables (`nonlocal`), so that closures behave as in
Python. Whether a condition is dynamic is only known while tracing. Early exits are removed before
(`exits`). An `if` with a `raise` remains Python's, and refuses a dynamic condition at run time.
"""

from __future__ import annotations

import ast

from fly_common.record import record

from fly_trace.rewrite import liveness, nodes
from fly_trace.rewrite import names as analysis
from fly_trace.rewrite.exits import first_raise, restructure
from fly_trace.rewrite.expressions import Expressions, Scope
from fly_trace.rewrite.refused import refuse_syntax

# Python's operator → the method whose in-place form `augmented` calls.
_AUGMENTED = {
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.Div: "itruediv",
    ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod",
    ast.Pow: "ipow",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
    ast.BitAnd: "iand",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
    ast.MatMult: "imatmul",
}

MANY = 32  # variables; see `Transformer.holder`


@record(frozen=False)
class Transformer(Expressions):
    """Rewrites functions and statements."""

    count: int = 0

    # -- functions

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrites a function's body, and drops its decorators. Defaults are left to the caller."""
        restructure(node)
        liveness.annotate(node)
        given = analysis.parameters(node.args)
        bound = frozenset([*given, *analysis.assigned(node.body)])
        shared = analysis.shared(node.body)
        first = next((one.arg for one in (*node.args.posonlyargs, *node.args.args)), None)
        self.scopes.append(Scope(bound, frozenset(shared), first))
        body = self.block(node.body)
        self.scopes.pop()
        start = [
            nodes.at(nodes.assign(name, nodes.call("undefined", ast.Constant(name))), node)
            for name in shared
            if name not in given
        ]
        own = [name for name in bound if not name.startswith("__fly_")]
        if shared and len(own) > MANY:
            start += self.holder(sorted(own), node)
        return nodes.at(nodes.function(node.name, node.args, [*start, *body]), node)

    def holder(self, names: list[str], node: ast.FunctionDef) -> list[ast.stmt]:
        """`def holder(): return names`, whose closure are the function's variables. CPython 3.11
        and 3.12 take quadratic time for `f_locals`, if nested functions share them."""
        values = nodes.at(ast.Return(ast.Tuple([*map(nodes.name, names)], ast.Load())), node)
        made = self.nested("holder", [values], (), node)
        call = nodes.call("variables", ast.Name(made.name, ast.Load()))
        return [made, nodes.at(ast.Expr(call), node)]

    def expression(self, node: ast.Lambda) -> ast.Lambda:
        """Rewrites a lambda."""
        self.scopes.append(Scope(frozenset(analysis.parameters(node.args))))
        body = self.visit(node.body)
        self.scopes.pop()
        return nodes.at(ast.Lambda(node.args, body), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        new = self.function(node)
        new.decorator_list = [self.visit(item) for item in node.decorator_list]
        new.args = self.arguments(node.args)
        return new

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Rewrites the methods of a class. Its body stays Python's: control flow in it would lose
        the class's names."""
        for one in node.body:
            plain = isinstance(one, (ast.FunctionDef, ast.AnnAssign, ast.Assign, ast.Pass))
            if not plain and not (
                isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
            ):
                raise refuse_syntax(
                    one,
                    self.file,
                    "the body of a class in a kernel has more than methods and assignments",
                    "define the class outside",
                )
            if isinstance(one, ast.AnnAssign):
                one.value = one.value and self.visit(one.value)
            elif isinstance(one, ast.Assign):
                one.value = self.visit(one.value)
        node.body = [
            self.visit(one) if isinstance(one, ast.FunctionDef) else one for one in node.body
        ]
        node.bases = [self.visit(one) for one in node.bases]
        for word in node.keywords:
            word.value = self.visit(word.value)
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        new = self.expression(node)
        new.args = self.arguments(node.args)
        return new

    def arguments(self, node: ast.arguments) -> ast.arguments:
        """Rewrites arguments. Defaults are evaluated outside; annotations are dropped."""
        for argument in [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]:
            if argument is not None:
                argument.annotation = None
        node.defaults = [self.visit(item) for item in node.defaults]
        node.kw_defaults = [item and self.visit(item) for item in node.kw_defaults]
        return node

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for node in body:
            new = self.visit(node)
            out += new if isinstance(new, list) else [new]
        return out

    # -- statements

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        raises = _raise_in(node)
        test = self.visit(node.test)
        if raises is not None:
            test = nodes.at(nodes.call("static_test", test, nodes.span(raises)), node.test)
            return nodes.at(ast.If(test, self.block(node.body), self.block(node.orelse)), node)
        roots = nodes.roots(analysis.changed([node]))
        names = analysis.assigned([*node.body, *node.orelse])
        first, count = analysis.ordered(names, node.live_out)  # type: ignore[attr-defined]
        makers = [
            self.nested("then", self.block(node.body), first, node),
            self.nested("else", self.block(node.orelse), first, node),
            *self.accessors(first, node),
        ]
        made = [ast.Name(maker.name, ast.Load()) for maker in makers]
        call = nodes.call("if_", test, *made, nodes.strings(first), ast.Constant(count))
        call.args += roots
        if getattr(node, "exits", False):
            call.args += [] if roots else [ast.Tuple([], ast.Load())]
            call.func.attr = "if_exit"  # type: ignore[attr-defined]
            # The callers of a function within the function have objects too.
            only = getattr(node, "only", None) if len(self.scopes) == 1 else None
            call.args.append(ast.Constant(only))
        return [*makers, nodes.at(ast.Expr(nodes.at(call, node.test)), node)]

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        roots = nodes.roots(analysis.changed([node]))
        names = analysis.assigned(node.body)
        first, count = analysis.ordered(names, node.live_head)  # type: ignore[attr-defined]
        test = self.nested(
            "test", [nodes.at(ast.Return(self.visit(node.test)), node.test)], (), node
        )
        makers = [
            test,
            self.nested("body", self.block(node.body), first, node),
            *self.accessors(first, node),
        ]
        made = [ast.Name(maker.name, ast.Load()) for maker in makers]
        call = nodes.call("while_", *made, nodes.strings(first), ast.Constant(count), *roots)
        return [*makers, nodes.at(ast.Expr(nodes.at(call, node.test)), node)]

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        exits = getattr(node, "exits", False)
        ranged = nodes.range_call(node.iter)
        reversing = nodes.reversed_range_call(node.iter) if ranged is None else None
        ranged = ranged or reversing
        if ranged is None and not exits:
            target = self.visit(node.target)
            iterable = nodes.at(nodes.call("items", self.visit(node.iter)), node.iter)
            return nodes.at(ast.For(target, iterable, self.block(node.body), []), node)
        for word in ranged.keywords if ranged is not None else ():
            if word.arg != "unroll":
                raise refuse_syntax(
                    word.value,
                    self.file,
                    "a loop with init= ends with `yield` of its state"
                    if word.arg == "init"
                    else f"range() takes no {word.arg or '**'}=",
                    "for i, state in range(n, init=[x, y]): …; results = yield [x, y]"
                    if word.arg == "init"
                    else "it takes init= and unroll=",
                )
        roots = nodes.roots(analysis.changed([node]))
        targets = analysis.assigned([node.target])
        inner = [name for name in analysis.assigned(node.body) if name not in targets]
        first, count = analysis.ordered(
            [*inner, *targets],
            node.live_head,  # type: ignore[attr-defined]
        )
        item = "__fly_item"
        take = nodes.at(
            ast.Assign([self.visit(node.target)], ast.Name(item, ast.Load())), node.target
        )
        body = self.nested("body", [take, *self.block(node.body)], first, node, item)
        makers = [body, *self.accessors(first, node)]
        made: list[ast.expr] = [ast.Name(maker.name, ast.Load()) for maker in makers]
        tail: list[ast.expr] = []
        if exits:
            left = getattr(node, "left", None)
            tail = [nodes.thunk(ast.Name(left, ast.Load())) if left else ast.Constant(None)]
        tail = [*(roots or [ast.Tuple([], ast.Load())] * exits), *tail]
        if ranged is None:
            head = [nodes.call("items", self.visit(node.iter))]
        else:
            given = ast.Tuple([self.visit(item) for item in ranged.args], ast.Load())
            function = self.visit(ranged.func)
            if reversing is not None:
                function = nodes.call("ranged", self.visit(node.iter.func), function)  # type: ignore[attr-defined]
            head = [function, given]
        word = ("for_exit" if exits else "for_") if ranged is not None else "each"
        last = (nodes.strings(first), ast.Constant(count), nodes.strings(tuple(targets)), *tail)
        given = [word for word in ranged.keywords if word.arg] if ranged is not None else []
        keywords = [nodes.at(ast.keyword(one.arg, self.visit(one.value)), one) for one in given]
        call = nodes.call(word, *head, *made, *last, keywords=keywords)
        return [*makers, nodes.at(ast.Expr(nodes.at(call, node.iter)), node)]

    def visit_With(self, node: ast.With) -> ast.With:
        for item in node.items:
            entered = self.visit(item.context_expr)
            if not nodes.is_fastmath(item.context_expr):
                entered = nodes.at(nodes.call("context", entered), item.context_expr)
            item.context_expr = entered
            if item.optional_vars is not None:
                item.optional_vars = self.visit(item.optional_vars)
        return nodes.at(ast.With(node.items, self.block(node.body)), node)

    def visit_Try(self, node: ast.Try) -> ast.Try:
        body = self.block(node.body)
        handlers = []
        for one in node.handlers:
            caught, name, inner = one.type and self.visit(one.type), one.name, self.block(one.body)
            if name is not None:  # Python unbinds the name at the handler's end
                self.count += 1
                held = f"__fly_error_{self.count}"
                first = nodes.assign(name, ast.Name(held, ast.Load()))
                last = nodes.assign(name, nodes.call("undefined", ast.Constant(name)))
                inner, name = [nodes.at(first, one), *inner, nodes.at(last, one)], held
            handlers.append(nodes.at(ast.ExceptHandler(caught, name, inner), one))
        if handlers:
            refused = nodes.call("refusals")
            first = nodes.at(ast.ExceptHandler(refused, None, [ast.Raise()]), handlers[0])
            handlers.insert(0, first)
        new = ast.Try(body, handlers, self.block(node.orelse), self.block(node.finalbody))
        return nodes.at(new, node)

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                value = nodes.call("deleted", ast.Constant(target.id))
                out.append(nodes.at(nodes.assign(target.id, value), node))
            else:
                out.append(nodes.at(ast.Delete([self.visit(target)]), node))
        return out

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        message = nodes.thunk(self.visit(node.msg) if node.msg else ast.Constant(None))
        call = nodes.call("assert_", self.visit(node.test), message)
        return nodes.at(ast.Expr(nodes.at(call, node.test)), node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is None or getattr(node, "is_made", False):
            return node
        return nodes.at(ast.Return(self.returned(node.value)), node)

    def returned(self, node: ast.expr) -> ast.expr:
        """The value of a `return`."""
        names = nodes.names_in(node)
        value = self.visit(node)
        if not (isinstance(names, ast.Constant) and names.value is None):
            value = nodes.at(nodes.call("returned", value, names), node)
        return value

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        # The annotation of a local variable is never evaluated.
        if node.value is None:
            return nodes.at(ast.Pass(), node)
        return nodes.at(ast.Assign([self.visit(node.target)], self.visit(node.value)), node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        if getattr(node, "is_return", False):
            return nodes.at(ast.Assign(node.targets, self.returned(node.value)), node)
        node.targets = [self.visit(target) for target in node.targets]
        value = self.visit(node.value)
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            value = nodes.at(nodes.call("items", value), node.value)
        node.value = value
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
            node.value = self.visit(node.value)
            return node
        before = self.visit(nodes.at(ast.Name(node.target.id, ast.Load()), node.target))
        word = ast.Constant(_AUGMENTED[type(node.op)])
        call = nodes.at(nodes.call("augmented", word, before, self.visit(node.value)), node)
        return nodes.at(ast.Assign([node.target], call), node)

    # -- helpers

    def nested(
        self,
        kind: str,
        body: list[ast.stmt],
        names: tuple[str, ...],
        node: ast.AST,
        *given: str,
    ) -> ast.FunctionDef:
        """`def kind(): nonlocal names; body`. Functions of a kind share a name: each is called
        before the next is made, and inner ones are in other scopes. Otherwise a kernel with many
        branches would have many local variables, which are looked at before each branch."""
        lead = [nodes.at(ast.Nonlocal(list(names)), node)] if names else []
        return nodes.define(
            f"__fly_{kind}",
            given,
            [*lead, *body] or [nodes.at(ast.Pass(), node)],
            node,
        )

    def accessors(self, names: tuple[str, ...], node: ast.AST) -> list[ast.FunctionDef]:
        """The functions `get` and `put`, which read and write the variables."""
        load = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        get = self.nested("get", [nodes.at(ast.Return(load), node)], (), node)
        if not names:
            return [get, self.nested("put", [], (), node, "__fly_values")]
        store = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        assign = nodes.at(ast.Assign([store], ast.Name("__fly_values", ast.Load())), node)
        return [get, self.nested("put", [assign], names, node, "__fly_values")]


def _raise_in(node: ast.If) -> ast.Raise | None:
    """The first `raise` in an `if`, as it was written."""
    if hasattr(node, "raises"):
        return node.raises  # type: ignore[attr-defined]
    return first_raise([*node.body, *node.orelse])
