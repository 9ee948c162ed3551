"""Analysis of register memory: what can be promoted to values, and what accesses it."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import NamedTuple

from fly_common.record import record
from fly_dialect.bindings import ir
from fly_dialect.dialect import PREFIX, attributes_of, int_tuple_of, spec_of
from fly_dialect.inference.memory import allocation_size
from fly_dialect.layouts.integers import Int
from fly_dialect.types import PtrSpec, bits

from fly_opt.ir.builder import operations, unused
from fly_opt.ir.storage import storage_type
from fly_opt.passes.registers.pieces import Range, cut, reached

# Ops whose regions vectors can be threaded through; each region has one block.
_THREADED = ("scf.for", "scf.if", "scf.while")
_TERMINATORS = ("scf.yield", "scf.condition")


@record(frozen=False, eq=False)
class Root:
    """A make_ptr of registers, and the values that replace it."""

    op: ir.Operation
    block: ir.Block
    element: ir.Type  # the type in which elements are held
    bits: int  # of one element
    size: int
    pieces: list[Piece]
    known: dict[Range, list[Piece]]  # cache of `reached`

    def reached(self, range_: Range) -> list[Piece]:
        found = self.known.get(range_)
        if found is None:
            offsets = [piece.range.offset for piece in self.pieces]
            found = self.known[range_] = self.pieces[slice(*reached(offsets, range_))]
        return found


@record(frozen=False, eq=False)
class Piece:
    """Registers that become one value."""

    number: int  # in textual order
    range: Range
    type: ir.VectorType  # vector<count x storage>


class Access(NamedTuple):
    """A make_ptr, ptr.load or ptr.store, in textual order."""

    op: ir.Operation
    root: Root
    range: Range


class Accesses:
    """The register accesses of a module: the promotable roots and how they are accessed."""

    def __init__(self, module: ir.Operation) -> None:
        self.roots: dict[ir.Value, Root] = {}
        self.places: dict[ir.Value, tuple[Root, int]] = {}  # pointer → what it points to
        self.uses: Counter[ir.Value] = Counter()  # of a place, by ops that are understood
        self.kept: set[Root] = set()  # not promotable: these stay memory
        self.found: list[Access] = []
        self.helpers: list[ir.Operation] = []  # add_offset and views: unused after the promotion
        self.terminators: dict[
            ir.Block, ir.Operation
        ] = {}  # block → its scf.yield or scf.condition
        self.chains: dict[ir.Block, list[tuple[ir.Operation, ir.Block]]] = {}
        for op in operations(module):
            if op.name.startswith(PREFIX):
                self.fly_op(op, op.name[len(PREFIX) :])
            elif op.name in _TERMINATORS:
                self.terminators[op.block] = op
        for value, (root, _) in self.places.items():
            if root not in self.kept and sum(1 for _ in value.uses) != self.uses[value]:
                self.kept.add(root)
        for access in self.found:
            if access.root not in self.kept and not self.enclosing(access):
                self.kept.add(access.root)
        self.roots = {v: root for v, root in self.roots.items() if root not in self.kept}

    def fly_op(self, op: ir.Operation, name: str) -> None:
        if name == "make_ptr":
            self.make_ptr(op)
        elif self.places:
            for operand in op.operands:
                if operand in self.places:
                    self.use(op, name, operand)

    def make_ptr(self, op: ir.Operation) -> None:
        value = op.results[0]
        spec = spec_of(value.type)
        if not isinstance(spec, PtrSpec) or spec.space != "register":
            return
        size = allocation_size(attributes_of(op))
        if not size:
            return
        element = storage_type(spec.element)
        root = self.roots[value] = Root(op, op.block, element, bits(spec.element), size, [], {})
        self.places[value] = root, 0
        self.found.append(Access(op, root, Range(0, size)))

    def use(self, op: ir.Operation, name: str, pointer: ir.Value) -> None:
        root, offset = self.places[pointer]
        if name == "ptr.load" or (name == "ptr.store" and pointer == op.operands[1]):
            type_ = op.results[0].type if name == "ptr.load" else op.operands[0].type
            count = prod(type_.shape) if isinstance(type_, ir.VectorType) else 1
            self.found.append(Access(op, root, Range(offset, count)))
        elif name == "add_offset":
            leaf = int_tuple_of(op.operands[1]).value
            if not isinstance(leaf, Int) or leaf.value is None:
                return
            self.places[op.results[0]] = root, offset + leaf.value
            self.helpers.append(op)
        elif name in ("make_view", "get_iter", "recast_iter") and unused(op.results[0]):
            self.helpers.append(op)
        else:
            return
        self.uses[pointer] += 1

    def cut(self, pieces: bool) -> None:
        """Determines the values that replace each root: its pieces, or a single one."""
        counts: dict[Root, Counter[Range]] = {root: Counter() for root in self.roots.values()}
        for access in self.found if pieces else ():
            if access.root in counts and access.op is not access.root.op:
                counts[access.root][access.range] += 1
        number = 0
        for root, found in counts.items():
            for range_ in cut(root.size, root.bits, found):
                type_ = ir.VectorType.get([range_.count], root.element)
                root.pieces.append(Piece(number, range_, type_))
                number += 1

    def enclosing(self, access: Access) -> list[tuple[ir.Operation, ir.Block]] | None:
        """Returns the ops around an access as (op, its block), innermost first, up to the root's
        block.

        Returns None if a value can't be threaded through one of them; otherwise the list has at
        least the access itself.
        """
        at, chain = access.op.block, [(access.op, access.op.block)]
        while at != access.root.block:
            if at not in self.chains:
                self.chains[at] = _around(at, access.op if len(chain) == 1 else chain[-1][0])
            step = self.chains[at]
            if not step:
                return None
            chain.append(step[0])
            at = step[0][1]
        return chain


def _around(block: ir.Block, inside: ir.Operation) -> list[tuple[ir.Operation, ir.Block]]:
    """Returns the op that holds `block`, which holds `inside`, with its own block; nothing if
    values can't be threaded through it."""
    holder = inside.parent
    if holder is None or holder.name not in _THREADED:
        return []
    holder = holder.operation
    if any(len(region.blocks) > 1 for region in holder.regions):
        return []
    return [(holder, holder.block)]
