"""The pass `sanitize-shared`: calls before each access of shared memory, which look for races."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import ClassVar

from fly_opt.passes.base import Pass

from fly_sanitize import shadow

TEXT = (
    "sanitize: race on shared memory: this {what} and the {{0:what}} at {{0:site}} by thread"
    " {{1:thread}} are not ordered by a barrier; byte {{2}}"
)
_SHARED = 3  # the address space
# A barrier of all threads of a block.
_BARRIERS = frozenset(("gpu.barrier", "rocdl.barrier", "rocdl.s.barrier", "nvvm.barrier0"))
# What orders some threads only, or in several steps.
_OTHERS = ("nvvm.barrier", "nvvm.mbarrier", "nvvm.cluster", "rocdl.s.barrier.", "rocdl.cluster")
_INTRINSICS = ("llvm.nvvm.barrier", "llvm.nvvm.mbarrier", "llvm.amdgcn.s.barrier")


@dataclass(frozen=True)
class Instrument(Pass):
    """Instruments the accesses of shared memory to find races."""

    name: ClassVar[str] = "sanitize-shared"

    blocks: int = 64
    dynamic: int = 65536
    skip: str = ""

    def run(self, op):
        from fly_opt.passes.instrumentation.building import gpu_modules, kernels, lowering_of
        from fly_opt.passes.instrumentation.reports import Reports
        from fly_opt.passes.target.set_target import target_of

        lowering, target = lowering_of(op), target_of(op)
        skipped = set(filter(None, self.skip.split(",")))
        for module in gpu_modules(op):
            found = [Kernel(one, lowering) for one in kernels(module)]
            found = [one for one in found if one.name not in skipped and one.accesses]
            if not found:
                continue
            for one in found:
                one.check()
            layout = Layout.of(module, found, self.dynamic)
            reports = Reports(module)
            for one in found:
                _Code(one, layout, reports, target, max(1, self.blocks)).build()
            _finish(module, layout, reports, target.wave_size, lowering, max(1, self.blocks))


@dataclass
class Layout:
    """Where variables of shared memory are in a block's shadow memory: `places` in bytes. A granule
    has `granule` bytes."""

    places: dict[str, int]
    nbytes: int
    granule: int

    @property
    def granules(self) -> int:
        return -(-self.nbytes // self.granule)

    @staticmethod
    def of(module, found, dynamic: int) -> Layout:
        from fly_dialect.bindings import ir
        from fly_opt.passes.instrumentation.building import symbol_of

        sizes, used = {}, {access.variable for one in found for access in one.accesses}
        for one in module.regions[0].blocks[0]:
            op = one.operation
            if op.name == "llvm.mlir.global" and symbol_of(op) in used:
                text = str(ir.TypeAttr(op.attributes["global_type"]).value)
                sizes[symbol_of(op)] = int(text.removeprefix("!llvm.array<").split(" ")[0])
        places, end = {}, 0
        for name, size in sizes.items():
            if size:
                places[name], end = end, end + -(-size // 16) * 16
        # All dynamic arrays are the same memory, behind the others.
        places |= {name: end for name, size in sizes.items() if not size}
        end += dynamic if len(places) > len([one for one in sizes.values() if one]) else 0
        granule = 16
        for one in found:
            for access in one.accesses:
                granule = gcd(granule, access.alignment)
        return Layout(places, end, granule)


@dataclass
class Shared:
    """An access of the variable `variable`, whose address is `root`."""

    op: object
    access: object
    root: object
    variable: str

    @property
    def alignment(self) -> int:
        from fly_dialect.bindings import ir

        attributes = self.op.attributes
        aligned = ir.IntegerAttr(attributes["alignment"]).value if "alignment" in attributes else 16
        return gcd(aligned, self.access.nbytes)


@dataclass
class Kernel:
    """A kernel, with its accesses of shared memory."""

    op: object
    lowering: object
    name: str = ""
    accesses: list[Shared] = field(default_factory=list)
    barriers: list = field(default_factory=list)

    def __post_init__(self) -> None:
        from fly_dialect.bindings import ir
        from fly_opt.ir.builder import operations
        from fly_opt.passes.instrumentation.accesses import accesses
        from fly_opt.passes.instrumentation.building import symbol_of
        from fly_opt.passes.instrumentation.provenance import maker, root

        self.name = symbol_of(self.op)
        for op in operations(self.op):
            if op.name in _BARRIERS:
                self.barriers.append(op)
            for access in accesses(op, self.lowering):
                found = root(access.pointer) if access.space == _SHARED else None
                made = None if found is None else maker(found)
                if made is not None and made.name == "llvm.mlir.addressof":
                    variable = ir.FlatSymbolRefAttr(made.attributes["global_name"]).value
                    self.accesses.append(Shared(op, access, found, variable))

    def check(self) -> None:
        """InputError for a kernel whose threads are ordered by other means."""
        from fly_dialect.bindings import ir
        from fly_opt.ir.builder import operations
        from fly_opt.passes.base import refuse

        for op in operations(self.op):
            what = op.name
            if what == "llvm.call_intrinsic":
                what = ir.StringAttr(op.attributes["intrin"]).value
            if what in _BARRIERS or not what.startswith((*_OTHERS, *_INTRINSICS)):
                continue
            raise refuse(
                op,
                f"sanitize: kernel {self.name} orders its threads by {what}, which it can't follow",
                f"leave it alone: --sanitize-skip={self.name}",
            )


class _Code:
    """The code of one kernel."""

    def __init__(self, kernel: Kernel, layout: Layout, reports, target, blocks: int):
        self.kernel, self.layout, self.reports = kernel, layout, reports
        self.target, self.blocks = target, blocks

    def build(self) -> None:
        from fly_dialect.bindings import ir
        from fly_opt.passes.instrumentation.building import Arithmetic

        entry = self.kernel.op.regions[0].blocks[0]
        ip, loc = ir.InsertionPoint.at_block_begin(entry), self.kernel.op.location
        at = Arithmetic(ip, loc)
        self.thread = at.number("thread")
        number, count = at.number("block"), at.constant(self.blocks)
        tag = at.op("arith.andi", at.i64, [at.div(number, count), at.constant(shadow.BLOCKS)])
        who = at.add(at.shl(tag, shadow.BLOCK_AT), at.shl(self.thread, shadow.THREAD_AT))
        size = at.constant(self.layout.granules * shadow.PER_GRANULE)
        self.shadow = _element(at, _address(at, shadow.SHADOW), at.mul(at.rem(number, count), size))
        self.counter = at.op(
            "llvm.alloca",
            ir.Type.parse("!llvm.ptr<5>"),
            [at.constant(1)],
            {"elem_type": ir.TypeAttr.get(at.i64)},
        )
        first = at.add(who, at.constant(1 << shadow.EPOCH_AT))
        _store(at, first, self.counter)
        for barrier in self.kernel.barriers:
            after = Arithmetic(ir.InsertionPoint.after(barrier), barrier.location)
            mine = after.op("llvm.load", after.i64, [self.counter])
            epoch = after.add(mine, after.constant(1 << shadow.EPOCH_AT))
            # The epoch has 20 bits; the block above them stays.
            mask = (1 << shadow.BLOCK_AT) - (1 << shadow.EPOCH_AT)
            kept = after.op("arith.andi", after.i64, [mine, after.constant(~mask)])
            moved = after.op("arith.andi", after.i64, [epoch, after.constant(mask)])
            _store(after, after.op("arith.ori", after.i64, [kept, moved]), self.counter)
        self._accesses()

    def _accesses(self) -> None:
        from fly_dialect.dialect import file_position
        from fly_opt.passes.base import refuse

        numbers, base = {}, None
        for one in self.kernel.accesses:
            what = one.access.kind
            key = what, file_position(one.op.location)
            if key not in numbers:
                text = TEXT.format(what=what)
                site = self.reports.site(self.kernel.name, text, one.op.location, what)
                base = site if base is None else base
                numbers[key] = site - base
        if len(numbers) > shadow.MOST_ACCESSES:
            raise refuse(self.kernel.op, f"{self.kernel.name} has too many lines for sanitize")
        for one in self.kernel.accesses:
            key = one.access.kind, file_position(one.op.location)
            self._access(one, numbers[key], base)

    def _access(self, one: Shared, number: int, base: int) -> None:
        from fly_dialect.bindings import ir
        from fly_opt.passes.instrumentation.accesses import ATOMIC, LOAD
        from fly_opt.passes.instrumentation.building import EQ, Arithmetic, call

        access, granule = one.access, self.layout.granule
        ip, loc = ir.InsertionPoint(one.op), one.op.location
        at = Arithmetic(ip, loc)
        offset = at.offset(access.pointer, at.again(one.root), narrow=True)
        if access.per_lane:
            lane = at.rem(self.thread, at.constant(self.target.wave_size))
            offset = at.add(offset, at.mul(lane, at.constant(access.nbytes)))
        offset = at.add(offset, at.constant(self.layout.places[one.variable]))
        first = at.div(offset, at.constant(granule))
        me = at.op("llvm.load", at.i64, [self.counter])
        bits = number << shadow.ACCESS_AT | (shadow.ATOMIC if access.kind == ATOMIC else 0)
        me = at.op("arith.ori", at.i64, [me, at.constant(bits)])
        i32 = ir.IntegerType.get_signless(32)
        sites = at.op("arith.constant", i32, [], {"value": ir.IntegerAttr.get(i32, base)})
        given = [self.shadow, first, at.constant(access.nbytes // granule), me, sites]
        if access.kind == LOAD:
            call(ip, loc, shadow.LOADED, given)
        elif access.kind == ATOMIC:
            call(ip, loc, shadow.UPDATED, given)
        else:
            call(ip, loc, shadow.STORED, [*given, _same(at, access, EQ)])


def _same(at, access, equal: int):
    """Whether a store changes nothing."""
    from fly_dialect.bindings import ir
    from fly_opt.ir import pointers

    if access.value is None:
        return at.op("arith.constant", at.i1, [], {"value": ir.IntegerAttr.get(at.i1, 0)})
    kind = access.value.type
    integer = ir.IntegerType.get_signless(pointers.width(kind))
    held = at.op("llvm.load", kind, [access.pointer], {"alignment": _number(at, 1)})
    if kind != integer:
        held = at.op("llvm.bitcast", integer, [held])
    value = access.value if kind == integer else at.op("llvm.bitcast", integer, [access.value])
    predicate = {"predicate": ir.IntegerAttr.get(at.i64, equal)}
    return at.op("arith.cmpi", at.i1, [held, value], predicate)


def _number(at, value: int):
    from fly_dialect.bindings import ir

    return ir.IntegerAttr.get(at.i64, value)


def _address(at, name: str):
    from fly_dialect.bindings import ir

    attributes = {"global_name": ir.FlatSymbolRefAttr.get(name)}
    return at.op("llvm.mlir.addressof", ir.Type.parse("!llvm.ptr<1>"), [], attributes)


def _element(at, base, offset):
    from fly_dialect.bindings import ir

    attributes = {
        "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(1 << 31)]),
    }
    return at.op("llvm.getelementptr", base.type, [base, offset], attributes)


def _store(at, value, pointer) -> None:
    from fly_dialect.bindings import ir

    ir.Operation.create("llvm.store", [], [value, pointer], loc=at.loc, ip=at.ip)


def _finish(module, layout: Layout, reports, wave: int, lowering, blocks: int) -> None:
    """Adds the shadow memory and the functions."""
    from fly_opt.passes.instrumentation.building import add_functions
    from fly_opt.passes.instrumentation.reports import variable

    nbytes = blocks * layout.granules * shadow.PER_GRANULE
    variable(module.regions[0].blocks[0], shadow.SHADOW, nbytes)
    reports.clear_before_launch(shadow.SHADOW)
    reports.finish()
    text = shadow.functions(layout.granules, layout.granule, wave, lowering.block_scope)
    add_functions(module, text, *shadow.FUNCTIONS)
