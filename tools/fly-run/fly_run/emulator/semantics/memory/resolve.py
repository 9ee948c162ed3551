"""Checked translation of addresses, which the memory handlers call when their fast path fails
(`resolver` documents the calling convention).
"""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Function, Value
from fly_run.emulator.semantics.base.access import FLAT, WRITES
from fly_run.emulator.semantics.memory.resolve_buffer import resolve_buffer
from fly_run.emulator.semantics.memory.resolver import (
    BoundedResolver,
    Resolver,
    check_alignment,
    cleared_sink,
    mapped,
    private_place,
)
from fly_run.emulator.semantics.memory.transfer import last_lane

CHUNK = 16
SCALAR_SIGNATURE = "ptr %wave, ptr %op, i64 %address, i64 %size, i64 %flags"


def functions() -> list[Function]:
    return [
        _find_region(),
        _record_fault(),
        _resolve_global(),
        _resolve_bounded("lds"),
        _resolve_bounded("scratch"),
        resolve_buffer(),
        _resolve_scalar(),
    ]


def _record_fault() -> Function:
    f = Function("fly_record_fault", "ptr %wave, i32 %kind, i64 %lane, i64 %address, i64 %size")
    wave = f.named("ptr", "%wave")
    wave.at(state.FAULT_KIND).store(f.named("i32", "%kind"))
    wave.at(state.FAULT_LANE).store(f.named("i64", "%lane").trunc("i32"))
    wave.at(state.FAULT_SIZE).store(f.named("i64", "%size").trunc("i32"))
    wave.at(state.FAULT_ADDRESS).store(f.named("i64", "%address"))
    f.ret()
    return f


def _find_region() -> Function:
    """Finds the region that contains all `size` bytes at a guest address; null if there is none."""
    f = Function("fly_find_region", "ptr %wave, i64 %address, i64 %size", "ptr")
    context = f.named("ptr", "%wave").at(state.CONTEXT).load("ptr")
    address, size = f.named("i64", "%address"), f.named("i64", "%size")
    count = context.at(state.CTX.region_count).load("i64")
    table = context.at(state.CTX.regions).load("ptr")
    null = f.named("ptr", "null")
    f.when(count.compare("eq", 0), lambda: f.ret(null))

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (region,) = carried
        offset = address - region.at(state.REGION_LOW).load("i64")
        length = region.at(state.REGION_LENGTH).load("i64")
        inside = offset.compare("ult", length) & size.compare("ule", length - offset)
        f.when(inside, lambda: f.ret(region))
        after = region.at(state.REGION_SIZE)
        return [after], after.compare("ne", end)

    end = table.at(count * state.REGION_SIZE)
    f.loop([table], turn)
    f.ret(null)
    return f


def _resolve_global() -> Function:
    f = Resolver("fly_resolve_global")
    mask = f.exec_mask()
    first = f.intrinsic("llvm.cttz", mask, f.constant("i1", 0), result=mask)
    last = last_lane(f, mask)

    # The usual case is one region for all lanes: this site's last one, otherwise the first lane's.
    def try_region(region: Value) -> None:
        low = region.at(state.REGION_LOW).load("i64")
        length = region.at(state.REGION_LENGTH).load("i64")
        writable = (region.at(state.REGION_FLAGS).load("i64") & state.WRITABLE).compare("ne", 0)
        fits = length.compare("uge", f.size) & (writable | ~f.has(WRITES))

        def scan() -> None:
            room = (length - f.size).splat(CHUNK)
            # Address bits that must be clear if the access has to be aligned.
            low_bits = f.aligned().select(f.size - 1, f.constant("i64", 0)).splat(CHUNK)

            def turn(carried: list[Value]) -> tuple[list[Value], Value]:
                lane, good = carried
                address = f.address(lane).load("i64", CHUNK, align=64)
                ok = (address - low).compare("ule", room)
                ok = ok & (address & low_bits).compare("eq", 0)
                bits = ok.cast(f"i{CHUNK}", 0).zext("i64") << lane
                after = lane + CHUNK
                return [after, good | bits], after.compare("ule", last)

            zero = f.constant("i64", 0)
            _, good = f.loop([zero, zero], turn)

            def translate() -> None:
                delta = region.at(state.REGION_DELTA).load("i64")

                def move(carried: list[Value]) -> tuple[list[Value], Value]:
                    (lane,) = carried
                    place = f.address(lane)
                    place.store(place.load("i64", CHUNK, align=64) + delta, align=64)
                    after = lane + CHUNK
                    return [after], after.compare("ule", last)

                f.loop([zero], move)
                f.op.at(state.OP_LINK).store_shared(region)
                f.ret(f.constant("i1", 1))

            f.when((good & mask).compare("eq", mask), translate)

        f.when(fits, scan)

    try_region(f.op.at(state.OP_LINK).load_shared("ptr"))
    found = f.call("fly_find_region", "ptr", f.wave, f.address(first).load("i64"), f.size)
    f.when(found.compare("ne", f.null), lambda: try_region(found))

    # Lane by lane: several regions, apertures, or a fault.
    def resolve(lane: Value) -> None:
        place = f.address(lane)
        address = place.load("i64")
        check_alignment(f, lane, address)
        upper, lower = address.lshr(32), address & 0xFFFFFFFF
        flat = f.has(FLAT)
        shared = flat & upper.compare("eq", state.SHARED_APERTURE)
        private = flat & upper.compare("eq", state.PRIVATE_APERTURE)
        base = f.wave.at(state.PRIVATE_BASE).load("i64")
        named = address.lshr(state.GLOBAL_SCRATCH_SHIFT).compare(
            "eq", base.lshr(state.GLOBAL_SCRATCH_SHIFT)
        )
        named = flat & base.compare("ne", 0) & named
        after = f"next{f.fresh()}"

        def in_shared() -> None:
            limit = f.wave.at(state.LDS_SIZE).load("i64")
            good = lower.compare("ult", limit) & f.size.compare("ule", limit - lower)
            f.fault_unless(good, "lds", lane, lower)
            place.store(f.wave.at(state.LDS_BASE).load("i64") + lower)
            f.branch(after)

        def in_private() -> None:
            place.store(private_place(f, lane, lower))
            f.branch(after)

        def in_named() -> None:
            """The address names a lane of this wave."""
            owner = address.lshr(state.GLOBAL_SCRATCH_LANE) & 31
            offset = (address - base) & ((1 << state.GLOBAL_SCRATCH_LANE) - 1)
            place.store(private_place(f, lane, offset, owner))
            f.branch(after)

        f.when(shared, in_shared)
        f.when(private, in_private)
        f.when(named, in_named)
        place.store(mapped(f, lane, address, f.size))
        f.branch(after)
        f.block(after)

    f.for_lanes(mask, resolve)
    f.ret(f.constant("i1", 1))
    return f


def _resolve_bounded(space: str) -> Function:
    """Resolves LDS and private memory: offsets into one block."""
    f = BoundedResolver(f"fly_resolve_{space}")
    mask = f.exec_mask()
    last = last_lane(f, mask)
    size_at, base_at = (
        (state.LDS_SIZE, state.LDS_BASE)
        if space == "lds"
        else (state.SCRATCH_SIZE, state.SCRATCH_BASE)
    )
    limit, base = f.wave.at(size_at).load("i64"), f.wave.at(base_at).load("i64")
    low_bits = f.aligned().select(f.size - 1, f.constant("i64", 0)).splat(CHUNK)
    zero = f.constant("i64", 0)

    def all_at_once() -> None:
        def check(carried: list[Value]) -> tuple[list[Value], Value]:
            lane, good = carried
            offset = f.address(lane).load("i64", CHUNK, align=64)
            ok = offset.compare("ule", (limit - f.size).splat(CHUNK))
            ok = ok & (offset & low_bits).compare("eq", 0)
            after = lane + CHUNK
            bits = ok.cast(f"i{CHUNK}", 0).zext("i64") << lane
            return [after, good | bits], after.compare("ule", last)

        _, good = f.loop([zero, zero], check)

        def translate() -> None:
            def move(carried: list[Value]) -> tuple[list[Value], Value]:
                (lane,) = carried
                place = f.address(lane)
                host = place.load("i64", CHUNK, align=64) + base
                if space == "scratch":
                    lanes = f.vector("i64", range(CHUNK)) + lane
                    host = host + lanes * limit
                place.store(host, align=64)
                after = lane + CHUNK
                return [after], after.compare("ule", last)

            f.loop([zero], move)
            f.ret(f.constant("i1", 1))

        f.when((good & mask).compare("eq", mask), translate)

    f.when(limit.compare("uge", f.size), all_at_once)

    # Some lane is out of bounds: find it.
    def resolve(lane: Value) -> None:
        place = f.address(lane)
        offset = place.load("i64")
        check_alignment(f, lane, offset)
        if space == "scratch":
            place.store(private_place(f, lane, offset))
            return
        own = (offset - f.op.at(state.OP_IMMEDIATE).load("i64")) & 0xFFFF_FFFF
        after = f"next{f.fresh()}"

        def masked() -> None:
            place.store(cleared_sink(f, lane).convert("ptrtoint", "i64"))
            f.branch(after)

        f.when(own.compare("eq", state.LDS_MASKED), masked)
        good = offset.compare("ult", limit) & f.size.compare("ule", limit - offset)
        f.fault_unless(good, "lds", lane, offset)
        place.store(base + offset)
        f.branch(after)
        f.block(after)

    f.for_lanes(mask, resolve)
    f.ret(f.constant("i1", 1))
    return f


def _resolve_scalar() -> Function:
    """Returns the host pointer of a scalar access's address, or null."""
    f = Resolver("fly_resolve_scalar", SCALAR_SIGNATURE, result="ptr")
    address = f.named("i64", "%address")
    zero = f.constant("i64", 0)
    check_alignment(f, zero, address)
    region = f.call("fly_find_region", "ptr", f.wave, address, f.size)
    f.fault_unless(region.compare("ne", f.null), "unmapped", zero, address)
    writable = (region.at(state.REGION_FLAGS).load("i64") & state.WRITABLE).compare("ne", 0)
    f.fault_unless(writable | ~f.has(WRITES), "read-only", zero, address)
    f.op.at(state.OP_LINK).store_shared(region)
    host = address + region.at(state.REGION_DELTA).load("i64")
    f.ret(host.convert("inttoptr", "ptr"))
    return f
