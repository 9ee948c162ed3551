"""`match` as a chain of `if`s.

    match subject:                      s = subject
        case (x, 0):                    c = control.match(s, ("sequence", …), ("x",))
            body                   →    if c[0]:
        case _ if guard:                    x = c[1]
            other                           body
                                        elif guard:
                                            other

Patterns are tuples, which `control.matching` reads.
"""

from __future__ import annotations

import ast

from fly_trace.rewrite import nodes

SUBJECT, CASE, MATCHED = "__fly_subject_", "__fly_case_", "__fly_matched_"


def expand(node: ast.AST) -> None:
    """Rewrites each `match` in a tree."""
    _Expansion().visit(node)


class _Expansion(ast.NodeTransformer):
    count = 0

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        self.generic_visit(node)
        self.count += 1
        subject = f"{SUBJECT}{self.count}"
        first = nodes.at(nodes.assign(subject, node.subject), node.subject)
        return [first, *self.chain(subject, node.cases)]

    def chain(self, subject: str, cases: list[ast.match_case]) -> list[ast.stmt]:
        """The statements for the cases, of which the first that matches runs."""
        if not cases:
            return []
        case, rest = cases[0], cases[1:]
        if case.guard is None and ast.unparse(case.pattern) == "_":
            return case.body  # what remains, as an `else`
        self.count += 1
        held = f"{CASE}{self.count}"
        names = captured(case.pattern)
        given = (nodes.name(subject), encoded(case.pattern), nodes.strings(tuple(names)))
        out: list[ast.stmt] = [
            nodes.at(
                nodes.assign(held, nodes.at(nodes.call("match", *given), case.pattern)),
                case.pattern,
            )
        ]
        test: ast.expr = nodes.at(_item(held, 0), case.pattern)
        takes: list[ast.stmt] = [
            nodes.at(nodes.assign(name, _item(held, index)), case.pattern)
            for index, name in enumerate(names, 1)
        ]
        if case.guard is not None and not names:
            test = nodes.at(ast.BoolOp(ast.And(), [test, case.guard]), case.guard)
        elif case.guard is not None:
            flag = f"{MATCHED}{self.count}"
            matched = nodes.at(nodes.assign(flag, ast.Constant(True)), case.pattern)
            inner = nodes.at(ast.If(case.guard, [matched, *case.body], []), case.guard)
            out.insert(0, nodes.at(nodes.assign(flag, ast.Constant(False)), case.pattern))
            out.append(nodes.at(ast.If(test, [*takes, inner], []), case.pattern))
            if rest:
                done: list[ast.stmt] = [nodes.at(ast.Pass(), case.pattern)]
                other = ast.If(nodes.name(flag), done, self.chain(subject, rest))
                out.append(nodes.at(other, case.pattern))
            return out
        out.append(
            nodes.at(ast.If(test, [*takes, *case.body], self.chain(subject, rest)), case.pattern)
        )
        return out


def _item(name: str, index: int) -> ast.Subscript:
    return ast.Subscript(nodes.name(name), ast.Constant(index), ast.Load())


def captured(pattern: ast.pattern) -> list[str]:
    """The names that a pattern binds, in order."""
    found: dict[str, None] = {}
    for inner in nodes.walk(pattern):
        if isinstance(inner, (ast.MatchAs, ast.MatchStar)) and inner.name:
            found[inner.name] = None
        elif isinstance(inner, ast.MatchMapping) and inner.rest:
            found[inner.rest] = None
    return list(found)


def encoded(pattern: ast.pattern) -> ast.expr:
    """A pattern as an expression."""

    def made(kind: str, *parts: ast.expr) -> ast.expr:
        return nodes.at(_tuple([ast.Constant(kind), *parts]), pattern)

    match pattern:
        case ast.MatchValue():
            return made("value", pattern.value)
        case ast.MatchSingleton():
            return made("is", ast.Constant(pattern.value))
        case ast.MatchSequence():
            return made("sequence", *map(encoded, pattern.patterns))
        case ast.MatchStar():
            return made("star", ast.Constant(pattern.name))
        case ast.MatchMapping():
            pairs = [
                _tuple([key, encoded(one)])
                for key, one in zip(pattern.keys, pattern.patterns, strict=True)
            ]
            return made("mapping", ast.Constant(pattern.rest), *pairs)
        case ast.MatchClass():
            named = [
                _tuple([ast.Constant(name), encoded(one)])
                for name, one in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)
            ]
            return made(
                "class", pattern.cls, _tuple([*map(encoded, pattern.patterns)]), _tuple(named)
            )
        case ast.MatchAs():
            inner = ast.Constant(None) if pattern.pattern is None else encoded(pattern.pattern)
            return made("as", inner, ast.Constant(pattern.name))
        case ast.MatchOr():
            return made("or", *map(encoded, pattern.patterns))
    raise AssertionError(type(pattern))


def _tuple(parts: list[ast.expr]) -> ast.expr:
    return ast.Tuple(parts, ast.Load())
