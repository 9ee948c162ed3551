"""`fly-promote-regmem-to-vectorssa`: memory in registers becomes vector values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple

from fly_dialect.bindings import ir
from fly_dialect.dialect import PREFIX, attributes_of, int_tuple_of, spec_of
from fly_dialect.infer_memory import allocation_size
from fly_dialect.integers import Int
from fly_dialect.types import PtrSpec

from fly_opt import vectors
from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.fly_builder import Builder, operations, unused
from fly_opt.passes.storage import storage_type

Value = Any  # an ir.Value

# Ops whose regions the vectors are threaded through, each of one block.
_THREADED = ("scf.for", "scf.if", "scf.while")
_TERMINATORS = ("scf.yield", "scf.condition")


@dataclass(frozen=True)
class PromoteRegmem(Pass):
    """Turns register make_ptrs into vector values threaded through scf.for, scf.if and scf.while.

    Each `make_ptr` of n register elements that only ptr.load and ptr.store at static offsets touch
    becomes one value of n elements: a store inserts into it, a load extracts from it, and a loop or
    condition that touches it carries it. Before the first store its elements are poison. Elements
    narrower than 16 bits that LLVM has no type for are held as integers. What is reached in another
    way, by a recast, a dynamic offset, a call, a region that is none of the three, stays memory.
    """

    name: ClassVar[str] = "fly-promote-regmem-to-vectorssa"

    def run(self, op: Any) -> None:
        accesses = _Accesses(op)
        if accesses.roots:
            _Promotion(accesses).run()


@dataclass(eq=False, slots=True)
class _Root:
    """A make_ptr of registers and the value that takes its place."""

    op: Any
    number: int  # in the order of the text
    block: Any
    type: Any  # vector<size x storage>
    size: int


class _Access(NamedTuple):
    """A make_ptr, ptr.load or ptr.store, in the order of the text."""

    op: Any
    root: _Root
    offset: int  # elements


@dataclass(eq=False, slots=True)
class _Threaded:
    """An scf op that vectors are threaded through, and which: a set in the order of the text."""

    op: Any
    roots: dict[_Root, None]


class _Accesses:
    """What a module does with registers: the roots that can be promoted, how they are reached."""

    def __init__(self, module: Any) -> None:
        self.roots: dict[Value, _Root] = {}
        self.places: dict[Value, tuple[_Root, int]] = {}  # pointer → what it points to
        self.uses: Counter[Value] = Counter()  # of a place, by ops that are understood
        self.kept: set[_Root] = set()  # stay memory
        self.found: list[_Access] = []
        self.helpers: list[Any] = []  # add_offset and views: unused after the promotion
        self.terminators: dict[Any, Any] = {}  # block → its scf.yield or scf.condition
        self.chains: dict[Any, list[tuple[Any, Any]]] = {}
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

    def fly_op(self, op: Any, name: str) -> None:
        if name == "make_ptr":
            self.make_ptr(op)
        elif self.places:
            for operand in op.operands:
                if operand in self.places:
                    self.use(op, name, operand)

    def make_ptr(self, op: Any) -> None:
        value = op.results[0]
        spec = spec_of(value.type)
        if not isinstance(spec, PtrSpec) or spec.space != "register":
            return
        size = allocation_size(attributes_of(op))
        if not size:
            return
        vector = ir.VectorType.get([size], storage_type(spec.element))
        root = _Root(op, len(self.roots), op.block, vector, size)
        self.roots[value] = root
        self.places[value] = root, 0
        self.found.append(_Access(op, root, 0))

    def use(self, op: Any, name: str, pointer: Value) -> None:
        root, offset = self.places[pointer]
        if name == "ptr.load" or (name == "ptr.store" and pointer == op.operands[1]):
            self.found.append(_Access(op, root, offset))
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

    def enclosing(self, access: _Access) -> list[tuple[Any, Any]] | None:
        """The ops around an access, as (op, its block) from the inside, up to the root's block.

        None if one of them is nothing that a value can be threaded through, else at least the
        access itself.
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


def _around(block: Any, inside: Any) -> list[tuple[Any, Any]]:
    """The op that holds `block`, which holds `inside`, with its own block; nothing if values can't
    be threaded through it."""
    holder = inside.parent
    if holder is None or holder.name not in _THREADED:
        return []
    holder = holder.operation
    if any(len(region.blocks) > 1 for region in holder.regions):
        return []
    return [(holder, holder.block)]


class _Promotion:
    """Rewrites the accesses, block by block, with the vectors as they are at each place."""

    def __init__(self, accesses: _Accesses) -> None:
        self.accesses = accesses
        self.builder = Builder()
        self.events: dict[Any, list[_Access | _Threaded]] = {}  # block → what to do in it, in order
        # An operation's hash is of its operands: as a key it is good until the rewriting begins.
        self.threaded: dict[Any, _Threaded] = {}
        for access in accesses.found:
            if access.root not in accesses.kept:
                self.note(access)

    def note(self, access: _Access) -> None:
        """Puts an access into the events of its block, and the ops around it into theirs."""
        chain = self.accesses.enclosing(access)
        assert chain is not None, "its root would have been kept"
        (_, block), *around = chain
        self.events.setdefault(block, []).append(access)
        for op, block in around:
            if op not in self.threaded:
                self.threaded[op] = _Threaded(op, {})
                self.events.setdefault(block, []).append(self.threaded[op])
            self.threaded[op].roots[access.root] = None

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

    def block(self, block: Any, state: dict[_Root, Value]) -> None:
        """Rewrites the events of a block; `state` is then as at its end."""
        for event in self.events.get(block, ()):
            if isinstance(event, _Threaded):
                self.thread(event, state)
            elif event.op.name == "fly.make_ptr":
                self.builder.at(event.op)
                state[event.root] = vectors.poison(self.builder, event.root.type)
            elif event.op.name == "fly.ptr.load":
                self.load(event, state)
            else:
                self.store(event, state)

    def load(self, access: _Access, state: dict[_Root, Value]) -> None:
        op, result = access.op, access.op.results[0]
        count = _count(access, result.type)
        builder, vector = self.builder, state[access.root]
        builder.at(op)
        part = vectors.extract(builder, vector, access.offset, count)
        result.replace_all_uses_with(vectors.bitcast(builder, part, result.type))
        op.erase()

    def store(self, access: _Access, state: dict[_Root, Value]) -> None:
        op, value = access.op, access.op.operands[0]
        count = _count(access, value.type)
        element = access.root.type.element_type
        type_ = element if count is None else ir.VectorType.get([count], element)
        builder, vector = self.builder, state[access.root]
        builder.at(op)
        value = vectors.bitcast(builder, value, type_)
        state[access.root] = vectors.insert(builder, value, vector, access.offset)
        op.erase()

    def thread(self, threaded: _Threaded, state: dict[_Root, Value]) -> None:
        """Replaces an scf op by one that carries the vectors which are touched in it."""
        op = threaded.op
        roots = sorted(threaded.roots, key=lambda root: root.number)
        carried = [root.type for root in roots]
        inputs = [] if op.name == "scf.if" else [state[root] for root in roots]
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
            if not blocks:  # an scf.if without else: the vectors stay as they are
                with ir.InsertionPoint(region.blocks.append()), op.location:
                    ir.Operation.create("scf.yield", operands=[state[root] for root in roots])
                continue
            block = blocks[0]
            block.append_to(region)
            inside = dict(state)
            if inputs:
                for root in roots:
                    inside[root] = block.add_argument(root.type, op.location)
            self.block(block, inside)
            self.end(block, [inside[root] for root in roots])
        count = len(op.results)
        for old, result in zip(op.results, list(new.results)[:count], strict=True):
            old.replace_all_uses_with(result)
        state.update(zip(roots, list(new.results)[count:], strict=True))
        op.erase()

    def end(self, block: Any, values: list[Value]) -> None:
        """Lets a block give `values` as well."""
        old = self.accesses.terminators[block]
        ir.Operation.create(
            old.name,
            operands=[*old.operands, *values],
            loc=old.location,
            ip=ir.InsertionPoint(old),
        )
        old.erase()


def _count(access: _Access, type_: Any) -> int | None:
    """The elements a vector access covers, None of a scalar's; InputError beyond the registers."""
    count = prod(type_.shape) if isinstance(type_, ir.VectorType) else None
    end = access.offset + (count or 1)
    if access.offset < 0 or end > access.root.size:
        raise refuse(
            access.op,
            f"{access.op.name}: elements {access.offset} to {end - 1} are not among the"
            f" {access.root.size} registers that were allocated",
        )
    return count
