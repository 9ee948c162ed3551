"""The pass `bounds-check`: checks each access against the memory that its pointer is into.

It runs where each access is one instruction with one pointer. The memory is that of a tensor,
which `bounds-extents` has marked, of a variable, or of an alloca. An access that is not inside is
reported and not done: a load gives zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from fly_opt.passes.base import Pass

from fly_bounds.extents import BITS, MARK, NAME

_ELEMENTS = "bounds: {what} of {name}: element {{0}} is out of bounds for size {{1}}"
_VECTOR = (
    "bounds: {what} of {count} elements of {name}: elements {{0}} to {{2}} are out of bounds for"
    " size {{1}}"
)
_BYTES = (
    "bounds: {what} of {name}: bytes {{0}} to {{2}} are out of bounds for the size of {{1}} bytes"
)
_ADDRESS = "bounds: {what} of {name}: the address is outside of each of them"
SHARED = "shared memory"
_ARRAY = re.compile(r"!llvm\.array<(\d+) x (.+)>")


@dataclass(frozen=True)
class Memory:
    """What a root has: offsets of elements of `bits` bits, from `low` on and below `high`."""

    name: str
    low: object
    high: object
    bits: int


@dataclass(frozen=True)
class Check(Pass):
    """Checks each access against the memory that its pointer is into."""

    name: ClassVar[str] = "bounds-check"

    buffers: str = "check"

    def run(self, op):
        from fly_opt.passes.instrumentation.building import (
            gpu_modules,
            kernels,
            lowering_of,
            symbol_of,
        )
        from fly_opt.passes.instrumentation.reports import Reports

        lowering = lowering_of(op)
        for module in gpu_modules(op):
            reports, sizes = Reports(module), _variables(module)
            for kernel in kernels(module):
                _Kernel(kernel, lowering, reports, sizes, self.buffers == "check").run()
            for one in list(module.regions[0].blocks[0]):
                if one.operation.name == "llvm.func" and symbol_of(one.operation) == MARK:
                    one.operation.erase()
            reports.finish()


def _variables(module) -> dict[str, int]:
    """The sizes in bytes of the module's variables; dynamic ones are left out."""
    from fly_dialect.bindings import ir
    from fly_opt.passes.instrumentation.building import symbol_of

    found = {}
    for one in module.regions[0].blocks[0]:
        if one.operation.name == "llvm.mlir.global":
            size = _bytes(ir.TypeAttr(one.operation.attributes["global_type"]).value)
            if size:
                found[symbol_of(one.operation)] = size
    return found


def _bytes(type_) -> int | None:
    from fly_dialect.bindings import ir
    from fly_opt.ir import pointers

    if match := _ARRAY.fullmatch(str(type_)):
        size = _bytes(ir.Type.parse(match[2]))
        return None if size is None else int(match[1]) * size
    try:
        return -(-pointers.width(type_) // 8)
    except TypeError:
        return None


class _Kernel:
    def __init__(self, kernel, lowering, reports, sizes, buffers: bool):
        from fly_opt.passes.instrumentation.building import symbol_of

        self.kernel, self.lowering, self.reports = kernel, lowering, reports
        self.sizes, self.buffers = sizes, buffers
        self.name = symbol_of(kernel)
        self.tensors = {}

    def run(self) -> None:
        from fly_opt.ir.builder import operations
        from fly_opt.passes.instrumentation.accesses import accesses

        for op in operations(self.kernel):
            if op.name == "llvm.call" and str(op.attributes["callee"]) == f"@{MARK}":
                self._tensor(op)
        for op in operations(self.kernel):
            for access in accesses(op, self.lowering):
                if self.buffers or not access.buffer:
                    self._check(op, access)

    def _tensor(self, mark) -> None:
        from fly_dialect.bindings import ir

        pointer, low, high = mark.operands
        name = ir.StringAttr(mark.attributes[NAME]).value
        bits = ir.IntegerAttr(mark.attributes[BITS]).value
        self.tensors[pointer] = Memory(name, low, high, bits)
        mark.erase()

    def _memory(self, root) -> Memory | None:
        from fly_dialect.bindings import ir

        if root in self.tensors:
            return self.tensors[root]
        if isinstance(root, ir.BlockArgument):
            return None
        op = root.owner.operation
        if op.name == "llvm.mlir.addressof":
            name = ir.FlatSymbolRefAttr(op.attributes["global_name"]).value
            size = self.sizes.get(name)
            return None if size is None else Memory(SHARED, 0, size, 8)
        return None

    def _check(self, op, access) -> None:
        from fly_dialect.bindings import ir
        from fly_opt.passes.instrumentation.building import Arithmetic, guarded
        from fly_opt.passes.instrumentation.provenance import roots

        found = [(one, self._memory(one)) for one in roots(access.pointer) or ()]
        if not found or any(memory is None for _, memory in found):
            return
        loc = op.location
        at = Arithmetic(ir.InsertionPoint(op), loc)
        spans = [self._span(at, access, root, memory) for root, memory in found]
        fine = spans[0].fine
        for other in spans[1:]:
            fine = at.either(fine, other.fine)
        text = _text(access, [memory for _, memory in found])
        site = self.reports.site(self.name, text, loc)

        def report(then):
            values = spans[0].values(then, access, found[0][1]) if len(found) == 1 else []
            self.reports.emit(then.ip, loc, site, values)

        guarded(op, fine, report)

    def _span(self, at, access, root, memory) -> Span:
        from fly_opt.passes.instrumentation.building import SGE, SLE

        start = at.offset(access.pointer, at.again(root), narrow=access.space in (3, 5))
        for one in access.offsets:
            start = at.add(start, at.wide(one))
        low, high = (
            at.constant(one) if isinstance(one, int) else one for one in (memory.low, memory.high)
        )
        first, last = _in_bytes(at, low, memory.bits), _in_bytes(at, high, memory.bits, up=True)
        end = at.add(start, at.constant(access.nbytes))
        fine = at.both(at.compare(SGE, start, first), at.compare(SLE, end, last))
        return Span(start, end, high, last, fine)


@dataclass(frozen=True)
class Span:
    """The bytes from `start` to `end` of a memory that ends at element `high`, byte `last`; whether
    they are inside."""

    start: object
    end: object
    high: object
    last: object
    fine: object

    def values(self, at, access, memory) -> list:
        """What the message tells of it."""
        if not _in_elements(access, memory):
            return [self.start, self.last, at.sub(self.end, at.constant(1))]
        index = at.div(at.mul(self.start, at.constant(8)), at.constant(memory.bits))
        count = 8 * access.nbytes // access.bits
        return [index, self.high, at.add(index, at.constant(count - 1))]


def _in_elements(access, memory: Memory) -> bool:
    """Whether what is accessed are elements of the tensor."""
    return memory.bits == access.bits and memory.name != SHARED


def _text(access, memories: list[Memory]) -> str:
    names = " or ".join(one.name for one in memories)
    if len(memories) > 1:
        return _ADDRESS.format(what=access.kind, name=names)
    count = 8 * access.nbytes // access.bits
    form = (_ELEMENTS if count == 1 else _VECTOR) if _in_elements(access, memories[0]) else _BYTES
    return form.format(what=access.kind, name=names, count=count)


def _in_bytes(at, elements, bits: int, up: bool = False):
    if bits % 8 == 0:
        return at.mul(elements, at.constant(bits // 8))
    scaled = at.mul(elements, at.constant(bits))
    return at.div(at.add(scaled, at.constant(7 if up else 0)), at.constant(8))
