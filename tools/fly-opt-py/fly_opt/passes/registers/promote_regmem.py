"""`fly-promote-regmem-to-vectorssa`: promotes register memory to vector values."""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record
from fly_dialect.bindings import ir

from fly_opt.ir import vectors
from fly_opt.ir.builder import Builder, unused
from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.registers.accesses import Access, Accesses, Piece, Root


@record
class PromoteRegmem(Pass):
    """Turns register make_ptrs into vector values threaded through scf.for, scf.if and scf.while.

    Each `make_ptr` of n register elements that is only accessed by ptr.load and ptr.store at static
    offsets becomes one value of n elements: a store inserts into it, a load extracts from it, and a
    loop or condition that accesses it carries it. Its elements are poison before the first store.
    Elements narrower than 16 bits without an LLVM type are stored as integers. Registers accessed
    in another way (a recast, a dynamic offset, a call, another region) stay memory.

    With the option `pieces`, a make_ptr becomes several values if that reduces insertions and
    extractions: a sum of 64 elements that multiplications write 4 at a time becomes sixteen values.
    """

    name: ClassVar[str] = "fly-promote-regmem-to-vectorssa"
    only_with: ClassVar[tuple[str, ...]] = ("register",)

    pieces: bool = False

    def run(self, op: ir.Operation) -> bool:
        accesses = Accesses(op)
        if accesses.roots:
            accesses.cut(self.pieces)
            # Without pieces, emit FlyDSL's text: a slice that covers its whole vector is emitted
            # too.
            _Promotion(accesses, whole_slices=not self.pieces).run()
        return bool(accesses.roots)


@record(frozen=False, eq=False)
class _Threaded:
    """An scf op through which vectors are threaded, and those vectors."""

    op: ir.Operation
    pieces: set[Piece]


class _Promotion:
    """Rewrites the accesses, block by block, tracking the vectors' current values."""

    def __init__(self, accesses: Accesses, whole_slices: bool) -> None:
        self.accesses = accesses
        self.whole_slices = whole_slices
        self.builder = Builder()
        self.events: dict[
            ir.Block, list[Access | _Threaded]
        ] = {}  # block → what to do in it, in order
        # starts.
        self.threaded: dict[ir.Operation, _Threaded] = {}
        for access in accesses.found:
            if access.root not in accesses.kept:
                self.note(access)

    def note(self, access: Access) -> None:
        """Adds an access to the events of its block, and the ops around it to those of theirs."""
        chain = self.accesses.enclosing(access)
        assert chain is not None, "its root would have been kept"
        (_, block), *around = chain
        self.events.setdefault(block, []).append(access)
        for op, block in around:
            if op not in self.threaded:
                self.threaded[op] = _Threaded(op, set())
                self.events.setdefault(block, []).append(self.threaded[op])
            self.threaded[op].pieces.update(access.root.reached(access.range))

    def run(self) -> None:
        inner = {block for op in self.threaded for region in op.regions for block in region.blocks}
        for block in list(self.events):
            if block not in inner:
                self.block(block, {})
        for op in reversed(self.accesses.helpers):
            if all(unused(result) for result in op.results):
                op.erase()
        for root in self.accesses.roots.values():
            root.op.erase()

    def block(self, block: ir.Block, state: dict[Piece, ir.Value]) -> None:
        """Rewrites the events of a block; `state` is updated to the values at its end."""
        for event in self.events.get(block, ()):
            if isinstance(event, _Threaded):
                self.thread(event, state)
            elif event.op.name == "fly.make_ptr":
                self.begin(event.root, state)
            elif event.op.name == "fly.ptr.load":
                self.load(event, state)
            else:
                self.store(event, state)

    def begin(self, root: Root, state: dict[Piece, ir.Value]) -> None:
        """Sets the values before the first store."""
        self.builder.at(root.op)
        unknown: dict[ir.Type, ir.Value] = {}
        for piece in root.pieces:
            if piece.type not in unknown:
                unknown[piece.type] = vectors.poison(self.builder, piece.type)
            state[piece] = unknown[piece.type]

    def load(self, access: Access, state: dict[Piece, ir.Value]) -> None:
        op, result, wanted = access.op, access.op.results[0], access.range
        _check_inside(access)
        builder, pieces = self.builder, access.root.reached(wanted)
        builder.at(op)
        count = wanted.count if isinstance(result.type, ir.VectorType) else None
        if len(pieces) == 1:
            offset = wanted.offset - pieces[0].range.offset
            part = self.extract(state[pieces[0]], offset, count)
        else:
            type_ = ir.VectorType.get([wanted.count], access.root.element)
            part = vectors.poison(builder, type_)
            for piece in pieces:
                both = wanted.common(piece.range)
                found = self.extract(state[piece], both.offset - piece.range.offset, both.count)
                part = self.insert(found, part, both.offset - wanted.offset)
        result.replace_all_uses_with(vectors.bitcast(builder, part, result.type))
        op.erase()

    def store(self, access: Access, state: dict[Piece, ir.Value]) -> None:
        op, value, given = access.op, access.op.operands[0], access.range
        _check_inside(access)
        builder, element = self.builder, access.root.element
        builder.at(op)
        vector = isinstance(value.type, ir.VectorType)
        type_ = ir.VectorType.get([given.count], element) if vector else element
        value = vectors.bitcast(builder, value, type_)
        for piece in access.root.reached(given):
            both = given.common(piece.range)
            part = value
            if vector and both != given:
                part = self.extract(value, both.offset - given.offset, both.count)
            offset = both.offset - piece.range.offset
            state[piece] = self.insert(part, state[piece], offset)
        op.erase()

    def extract(self, vector: ir.Value, offset: int, count: int | None) -> ir.Value:
        if count == ir.VectorType(vector.type).shape[0] and not self.whole_slices:
            return vector
        return vectors.extract(self.builder, vector, offset, count)

    def insert(self, value: ir.Value, vector: ir.Value, offset: int) -> ir.Value:
        if value.type == vector.type and not self.whole_slices:
            return value
        return vectors.insert(self.builder, value, vector, offset)

    def thread(self, threaded: _Threaded, state: dict[Piece, ir.Value]) -> None:
        """Replaces an scf op by one that carries the vectors accessed in it."""
        op = threaded.op
        pieces = sorted(threaded.pieces, key=lambda piece: piece.number)
        carried = [piece.type for piece in pieces]
        inputs = [] if op.name == "scf.if" else [state[piece] for piece in pieces]
        new = ir.Operation.create(
            op.name,
            results=[*(result.type for result in op.results), *carried],
            operands=[*op.operands, *inputs],
            attributes={name: op.attributes[name] for name in op.attributes},
            regions=len(op.regions),
            loc=op.location,
            ip=ir.InsertionPoint(op),
        )
        for old_region, region in zip(op.regions, new.regions, strict=True):
            blocks = list(old_region.blocks)
            if not blocks:  # an scf.if without else: the vectors are unchanged
                with ir.InsertionPoint(region.blocks.append()), op.location:
                    ir.Operation.create("scf.yield", operands=[state[piece] for piece in pieces])
                continue
            block = blocks[0]
            block.append_to(region)
            inside = dict(state)
            if inputs:
                for piece in pieces:
                    inside[piece] = block.add_argument(piece.type, op.location)
            self.block(block, inside)
            self.end(block, [inside[piece] for piece in pieces])
        count = len(op.results)
        for old, result in zip(op.results, list(new.results)[:count], strict=True):
            old.replace_all_uses_with(result)
        state.update(zip(pieces, list(new.results)[count:], strict=True))
        op.erase()

    def end(self, block: ir.Block, values: list[ir.Value]) -> None:
        """Appends `values` to the operands of a block's terminator."""
        old = self.accesses.terminators[block]
        ir.Operation.create(
            old.name,
            operands=[*old.operands, *values],
            loc=old.location,
            ip=ir.InsertionPoint(old),
        )
        old.erase()


def _check_inside(access: Access) -> None:
    """Raises InputError for an access outside the registers."""
    wanted, root = access.range, access.root
    if wanted.offset < 0 or wanted.end > root.size:
        raise refuse(
            access.op,
            f"{access.op.name}: elements {wanted.offset} to {wanted.end - 1} are not among the"
            f" {root.size} registers that were allocated",
        )
