"""Common parts of the functions that resolve addresses: their arguments, and checks of one lane.

`fly_resolve_X(wave, op, size, flags)` replaces the guest addresses of the active lanes in the
wave's ADDRESS list by host addresses. It returns false if it has recorded a fault in the wave. For
LDS and private memory the last argument is an i1: whether the access has to be aligned.
"""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Function, Value
from fly_run.emulator.semantics.base.access import ALIGNED, WRITES

SIGNATURE = "ptr %wave, ptr %op, i64 %size, i64 %flags"
BOUNDED_SIGNATURE = "ptr %wave, ptr %op, i64 %size, i1 %aligned"


class Resolver(Function):
    def __init__(self, name: str, parameters: str = SIGNATURE, result: str = "i1"):
        super().__init__(name, parameters, result)
        self.wave = self.named("ptr", "%wave")
        self.op = self.named("ptr", "%op")
        self.size = self.named("i64", "%size")
        self.flags = self.named("i64", "%flags")
        self.null = self.named("ptr", "null")

    def address(self, lane: Value) -> Value:
        return self.wave.at(state.ADDRESS).at(lane << 3)

    def exec_mask(self) -> Value:
        return self.wave.at(state.EXEC).load("i64")

    def has(self, flag: int) -> Value:
        return (self.flags & flag).compare("ne", 0)

    def aligned(self) -> Value:
        """Returns an i1: whether the access has to be aligned."""
        return self.has(ALIGNED)

    def fault_unless(self, good: Value, kind: str, lane: Value, address: Value) -> None:
        def record() -> None:
            self.call_void(
                "fly_record_fault",
                self.wave,
                self.constant("i32", state.FAULT[kind]),
                lane,
                address,
                self.size,
            )
            self.ret(self.null if self.header.startswith("define ptr") else self.constant("i1", 0))

        self.when(~good, record)


class BoundedResolver(Resolver):
    def __init__(self, name: str):
        super().__init__(name, BOUNDED_SIGNATURE)

    def aligned(self) -> Value:
        return self.named("i1", "%aligned")


def check_alignment(f: Resolver, lane: Value, address: Value) -> None:
    aligned = (address & (f.size - 1)).compare("eq", 0) | ~f.aligned()
    f.fault_unless(aligned, "misaligned", lane, address)


def mapped(f: Resolver, lane: Value, address: Value, size: Value) -> Value:
    """Returns the host address (i64) of a lane's guest address, after checking `size` bytes against
    the regions; the region becomes the site's last one."""
    region = f.call("fly_find_region", "ptr", f.wave, address, size)
    f.fault_unless(region.compare("ne", f.null), "unmapped", lane, address)
    flags = region.at(state.REGION_FLAGS).load("i64")
    writable = (flags & state.WRITABLE).compare("ne", 0) | ~f.has(WRITES)
    f.fault_unless(writable, "read-only", lane, address)
    f.op.at(state.OP_LINK).store_shared(region)
    return address + region.at(state.REGION_DELTA).load("i64")


def private_place(f: Resolver, lane: Value, offset: Value, owner: Value | None = None) -> Value:
    """Returns the host address (i64) of an offset in the private memory of a lane, `lane`'s own or
    `owner`'s, after checking it."""
    limit = f.wave.at(state.SCRATCH_SIZE).load("i64")
    good = offset.compare("ult", limit) & f.size.compare("ule", limit - offset)
    f.fault_unless(good, "scratch", lane, offset)
    own = lane if owner is None else owner
    return f.wave.at(state.SCRATCH_BASE).load("i64") + own * limit + offset


def cleared_sink(f: Resolver, lane: Value) -> Value:
    """Returns 16 bytes for the lane, all 0, which absorb stores out of range."""
    own = f.wave.at(state.SINK).at(lane << 4)
    own.store(f.constant("i64", 0))
    own.at(8).store(f.constant("i64", 0))
    return own
