"""Values that LLVM's StructurizeCFG would hoist to paths on which they are wrong.

Of the two successors of a conditional branch, the pass takes the one that comes later for an `else`
block. It moves instructions without cost from there to before the branch if a phi of the following
block uses them, and then gives the phis of its new blocks these values where their own are poison
(`hoistZeroCostElseBlockPhiValues` and `simplifyHoistedPhis`, new in LLVM 21). That is right for

        branch
       /      \\
     then    else      with no other way into `then`, `else` and `join`.
       \\      /
         join

and for several blocks instead of `then`, if only one edge leads to them and only one leaves them.
If other paths reach one of these blocks, the value replaces those of other paths, or is lost.

A `freeze` of the value keeps the pass from it: the freeze's operand is in the same block, so that
it can't be moved. It becomes a copy, which the register coalescer removes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from fly_llc.codegen.ir_text import FUNCTION, LABEL, NAME

# Operations for which AMDGPU's cost model can say that they cost nothing (LLVM 22).
_FREE = (
    "addrspacecast|alloca|bitcast|call|extractelement|extractvalue|fneg|fpext|freeze"
    "|getelementptr|insertelement|insertvalue|inttoptr|ptrtoaddr|ptrtoint|sext|shufflevector|trunc"
    "|zext"
)
# Intrinsics that cost something, as calls of functions do.
_COSTLY = re.compile(
    r" @llvm\.(?:amdgcn\.(?!work)|[su](?:min|max|add|sub|mul|cmp|shl)|abs|bitreverse|bswap|ct|f[ms]"
    r"|m|ceil|copysign|cos|exp|floor|ldexp|log|pow|rint|round|sin|sqrt|trunc|vector)| @(?!llvm\.)"
)
_TARGET = re.compile(rf"\blabel ({NAME})")
_CONDITIONAL = re.compile(rf"^ +br i1 .*?, label ({NAME}), label ({NAME})", re.MULTILINE)
_DEFINITION = re.compile(rf"^ +({NAME}) = (?:(?:tail|musttail|notail) )?(\w+)(.*)$", re.MULTILINE)
_PHI = re.compile(
    rf"^ +{NAME} = phi (?:(?:nnan|ninf|nsz|arcp|contract|afn|reassoc|fast) )*(.+?) (?=\[ ).*$",
    re.MULTILINE,
)
_INCOMING = re.compile(rf"\[ ({NAME}), ({NAME}) \]")
_ANY_NAME = re.compile(NAME)
# What is not a `br` of two ways becomes some before the pass runs.
_OTHER_BRANCHES = re.compile(r"^ +(?:switch|indirectbr|br i1 (?:true|false|undef|poison),)", re.M)

ENTRY = ""  # the name of a function's first block, which is printed only if it has one


class _Graph:
    """A function's control flow. `text` has the instructions of each block. All blocks are named
    with their `%`."""

    def __init__(self, body: str):
        labels = [*LABEL.finditer(body)]
        starts = [0, *(label.end() for label in labels)]
        ends = [*(label.start() for label in labels), len(body)]
        names = [ENTRY, *(f"%{label[1]}" for label in labels)]
        self.text = {
            name: body[start:end] for name, start, end in zip(names, starts, ends, strict=True)
        }
        if labels and not self.text[ENTRY].strip():
            del self.text[ENTRY]
        self.successors: dict[str, list[str]] = {}
        self.predecessors: dict[str, list[str]] = {name: [] for name in self.text}
        self.branches: dict[str, tuple[str, str]] = {}  # blocks that end with a branch of two ways
        for name, text in self.text.items():
            targets = list(dict.fromkeys(_TARGET.findall(text)))
            self.successors[name] = [to for to in targets if to in self.text]
            for to in self.successors[name]:
                self.predecessors[to].append(name)
            if len(self.successors[name]) == 2 and (found := _CONDITIONAL.search(text)):
                self.branches[name] = (found[1], found[2])

    @functools.cached_property
    def _walk(self) -> tuple[set[tuple[str, str]], dict[str, int]]:
        """The edges back to a block of the path to them, and the order in which a depth-first
        search leaves the blocks."""
        back: set[tuple[str, str]] = set()
        left: dict[str, int] = {}
        first = next(iter(self.text))
        path, entered = [(first, iter(self.successors[first]))], {first}
        open_ = {first}
        while path:
            name, rest = path[-1]
            to = next(rest, None)
            if to is None:
                path.pop()
                open_.discard(name)
                left[name] = len(left)
            elif to in open_:
                back.add((name, to))
            elif to not in entered:
                entered.add(to)
                open_.add(to)
                path.append((to, iter(self.successors[to])))
        return back, left

    @functools.cached_property
    def _loops(self) -> list[set[str]]:
        """The blocks of each natural loop."""
        loops = []
        for end, head in self._walk[0]:
            blocks, waiting = {head}, [end]
            while waiting:
                if (name := waiting.pop()) not in blocks:
                    blocks.add(name)
                    waiting += self.predecessors[name]
            loops.append(blocks)
        return loops

    def _leads(self, start: str, end: str) -> bool:
        """Whether a path without edges back leads from one block to another."""
        back, left = self._walk
        if start not in left or end not in left:
            return False
        waiting, seen = [start], {start}
        while waiting:
            name = waiting.pop()
            if name == end:
                return True
            for to in self.successors[name]:
                if to not in seen and (name, to) not in back and left[to] >= left[end]:
                    seen.add(to)
                    waiting.append(to)
        return False

    def elses(self) -> Iterator[tuple[str, str, str]]:
        """(branch, then, else) of the blocks that the pass can take for these. The pass comes to
        the blocks in an order that follows all edges but those back, loop by loop, and comes to
        `then` before."""
        for name, (first, second) in self.branches.items():
            for then, other in ((first, second), (second, first)):
                if len(self.successors[other]) != 1 or self._leads(other, then):
                    continue
                if any(name in loop and other in loop and then not in loop for loop in self._loops):
                    continue
                yield name, then, other

    def is_simple(self, branch: str, then: str, other: str) -> bool:
        """Whether the pass is right about these blocks: an `if` with `else`, as above, where `then`
        may be several blocks, which only `then` leads to and only one edge leaves; or an `else`
        before a loop of one block, whose phis have no value of a new block."""
        join = self.successors[other][0]
        if sorted(self.predecessors[join]) == sorted((other, join)):
            return not any("poison" in phi[0] for phi in _PHI.finditer(self.text[join]))
        if self.predecessors[then] != [branch] or self.predecessors[other] != [branch]:
            return False
        if len(self.predecessors[join]) != 2 or join == branch:
            return False
        waiting, inside = [then], {then}
        while waiting:
            name = waiting.pop()
            if not self.successors[name] or name in (branch, other):
                return False
            new = [to for to in self.successors[name] if to != join and to not in inside]
            inside.update(new)
            waiting += new
        entries = {at for name in inside - {then} for at in self.predecessors[name]}
        return entries <= inside


def may_occur(ir: str) -> bool:
    """Returns whether such values can be in a module at the pass, by its control flow: passes that
    run before make instructions without cost, and merge blocks."""
    if " phi " not in ir and " alloca " not in ir:
        return False
    if _OTHER_BRANCHES.search(ir):
        return True
    return any(True for function in FUNCTION.finditer(ir) for _ in _Graph(function[1]).elses())


def frozen(ir: str) -> str | None:
    """Returns the module, as it is right before the pass, with a `freeze` of each such value. None
    if there is none."""
    parts: list[str] = []
    end = 0
    for function in FUNCTION.finditer(ir):
        body = _frozen(function[1])
        if body is not None:
            parts += [ir[end : function.start(1)], body]
            end = function.end(1)
    return "".join([*parts, ir[end:]]) if parts else None


def _frozen(body: str) -> str | None:
    graph = _Graph(body)
    # Of each block, the values that are frozen, and their types.
    found: dict[str, dict[str, str]] = {}
    for branch, then, other in graph.elses():
        if other in found or graph.is_simple(branch, then, other):
            continue
        phis = _PHI.finditer(graph.text[graph.successors[other][0]])
        used = {
            value: phi[1] for phi in phis for value, at in _INCOMING.findall(phi[0]) if at == other
        }
        if used and (values := _movable(graph.text[other]) & used.keys()):
            found[other] = {value: kind for value, kind in used.items() if value in values}
    if not found:
        return None
    names: dict[tuple[str, str], str] = {}
    for block, values in found.items():
        for value in values:
            names[value, block] = f"%fly.frozen.{len(names)}"

    def renamed(phi: re.Match[str]) -> str:
        return _INCOMING.sub(
            lambda one: f"[ {names.get((one[1], one[2]), one[1])}, {one[2]} ]", phi[0]
        )

    texts = []
    for name, text in graph.text.items():
        new = _PHI.sub(renamed, text)
        for value, kind in found.get(name, {}).items():
            new = re.sub(
                r"^ +br label ",
                lambda br, v=value, k=kind, n=name: f"  {names[v, n]} = freeze {k} {v}\n{br[0]}",
                new,
                flags=re.MULTILINE,
            )
        texts.append((text, new))
    return _replaced(body, texts)


def _movable(text: str) -> set[str]:
    """The values of a block without cost whose operands are all from other blocks."""
    rows = [(row[1], row[2], row[3]) for row in _DEFINITION.finditer(text)]
    own = {name for name, _, _ in rows}
    return {
        name
        for name, operation, rest in rows
        if re.fullmatch(_FREE, operation)
        and own.isdisjoint(_ANY_NAME.findall(rest))
        and not (operation == "call" and _COSTLY.search(rest))
    }


def _replaced(body: str, texts: list[tuple[str, str]]) -> str:
    """A function's body with other texts of its blocks, which are in order."""
    parts, end = [], 0
    for old, new in texts:
        at = body.index(old, end)
        parts += [body[end:at], new]
        end = at + len(old)
    return "".join([*parts, body[end:]])
