"""Probes of scalar memory: loads through a resource, stores and atomics of both kinds.

A wave's own memory is that of its records: bytes 64 to 127, which belong to lanes without a scalar
result, so that stored data is compared as well.
"""

from __future__ import annotations

from oracle.memory import atomics
from oracle.probes.probe import Probe

WAIT = "s_waitcnt lgkmcnt(0)"
# s[36:37]: the wave's records; s[40:43]: a resource of them, of {records}, with {stride}.
OWN = ("s_lshl_b32 s36, s2, 10", "s_add_u32 s36, s6, s36", "s_addc_u32 s37, s7, 0")
RESOURCE = (
    *OWN,
    "s_mov_b32 s40, s36",
    "s_and_b32 s41, s37, 0xffff",
    "s_or_b32 s41, s41, {stride} << 16",
    "s_mov_b32 s42, {records}",
    "s_mov_b32 s43, 0x27000",
)
# The two lowest bits of an address are ignored.
UNALIGNED = "s_or_b32 s40, s40, 3"
# Such an address, and an offset larger than any signed number.
FAR = (
    *(UNALIGNED, "s_sub_u32 s40, s40, 0x80000000", "s_subb_u32 s41, s41, 0"),
    "s_mov_b32 s11, 0x80000010",
)
# The records and strides of resources: in bytes, and in strides, of which 14 bits count.
BOUNDS = ((0x400, 0), (0x48, 0), (0x58, 0), (0x12, 0x4004), (2, 40), (1, 0x2000))


def scalar_memory() -> list[Probe]:
    return [*_loads(), *_stores(), *_atomics()]


def _probe(about: str, *lines: str, scalar: bool = True) -> Probe:
    return Probe("\n  ".join(lines), ("64", "64"), scalar=scalar, about=about)


def _resource(records: int, stride: int) -> list[str]:
    return [line.format(records=records, stride=stride) for line in RESOURCE]


def _span(first: int, count: int) -> str:
    return f"s[{first}:{first + count - 1}]" if count > 1 else f"s{first}"


def _named(count: int) -> str:
    return f"dwordx{count}" if count > 1 else "dword"


def _folded(count: int) -> list[str]:
    """Folds `count` registers from s48 on into s[16:17], each at its own position."""
    lines = ["s_mov_b32 s16, s48", f"s_mov_b32 s17, s{47 + count}"]
    for k in range(1, count - 1):
        lines += ["s_lshl1_add_u32 s16, s16, s17", f"s_xor_b32 s17, s17, s{48 + k}"]
    return lines


def _loads() -> list[Probe]:
    """Loads from the operands; the bound may be after a wave's first lanes."""
    probes = []
    offsets = ("0x0", "0x44", "0x50", "0x20", "s11", "s11 offset:0x1c", "m0")
    for count in (1, 2, 4, 8, 16):
        old = [f"s_mov_b64 s[{k}:{k + 1}], s[26:27]" for k in range(48, 48 + count, 2)]
        for records, stride in BOUNDS:
            resource = _resource(records, stride)
            resource[3:5] = "s_mov_b32 s40, s4", "s_and_b32 s41, s5, 0xffff"
            for offset in offsets:
                name = f"s_buffer_load_{_named(count)}"
                load = f"{name} {_span(48, count)}, s[40:43], {offset}"
                head = (*resource, *old, UNALIGNED, "s_movk_i32 s11, 0x10", "s_movk_i32 m0, 0x2f")
                probes.append(_probe(name, *head, load, WAIT, *_folded(count)))
        name = f"s_load_{_named(count)}"
        base = ("s_add_u32 s40, s4, 64", "s_addc_u32 s41, s5, 0", "s_movk_i32 s11, 0x13")
        for *more, offset in (("-0x20",), ("s11 offset:0x1c",), (*FAR, "s11 offset:0x1c")):
            load = f"{name} {_span(48, count)}, s[40:41], {offset}"
            probes.append(_probe(name, *base, *more, load, WAIT, *_folded(count)))
    return probes


def _stores() -> list[Probe]:
    probes = []
    back = ("s_dcache_wb", "s_load_dwordx4 s[48:51], s[36:37], 0x40", WAIT, *_folded(4))
    for count in (1, 2, 4):
        clear = ("s_mov_b64 s[48:49], 0", "s_mov_b64 s[50:51], 0", WAIT)
        clear = (*clear, "s_store_dwordx4 s[48:51], s[36:37], 0x40", WAIT, "s_movk_i32 m0, 0x43")
        far = ("s_mov_b64 s[40:41], s[36:37]", *FAR)
        data = _span(24, count)
        name = f"s_store_{_named(count)}"
        for *more, place in (("s[36:37], m0",), (*far, "s[40:41], s11 offset:0x30")):
            store = f"{name} {data}, {place}"
            probes.append(_probe(name, *OWN, *clear, *more, store, WAIT, *back))
        name = f"s_buffer_store_{_named(count)}"
        for records, stride in BOUNDS:
            for place in ("0x44", "m0"):
                store = f"{name} {data}, s[40:43], {place}"
                lines = (*_resource(records, stride), UNALIGNED, *clear, store, WAIT, *back)
                probes.append(_probe(name, *lines))
    return probes


def _atomics() -> list[Probe]:
    """Atomics on a, with b (and values near b, so that comparands are sometimes equal). Once per
    wave."""
    probes = []
    for operation, atomic in atomics.GLOBAL.items():
        if atomic.kind[0] == "f" or "pk" in operation:
            continue  # the scalar unit has the integer ones
        registers = int(atomic.kind[1:]) // 32
        count = registers * atomic.sources
        # The two lowest bits of either part of an address are ignored.
        fill = ("s_store_dwordx2 s[24:25], s[36:37], 0x40", WAIT, "s_movk_i32 m0, 0x43")
        far = ("s_mov_b64 s[40:41], s[36:37]", *FAR)
        moved = ("s_mov_b64 s[48:49], s[26:27]", "s_mov_b64 s[50:51], s[26:27]")
        if operation == "cmpswap":
            moved = ("s_mov_b32 s48, s27", "s_mov_b32 s49, s26")
        elif operation == "cmpswap_x2":
            moved = ("s_not_b64 s[48:49], s[26:27]", "s_mov_b64 s[50:51], s[26:27]")
        after = ("s_load_dwordx2 s[52:53], s[36:37], 0x40", WAIT)
        result = ("s_xor_b32 s16, s48, s53", "s_xor_b32 s17, s49, s52")
        data = _span(48, count)
        name = f"s_atomic_{operation}"
        for place in ("s[40:41], s11 offset:0x30", "s[36:37], m0"):
            for glc in ("", " glc"):
                one = f"{name} {data}, {place}{glc}"
                lines = (*OWN, *far, *fill, *moved, one, WAIT, *after, *result)
                probes.append(_probe(name, *lines, scalar=False))
        name = f"s_buffer_atomic_{operation}"
        end = 0x40 + 4 * registers
        # The bound is the operation's end, one byte less, far before it, slightly more in strides,
        # slightly less in strides with an extra high bit, and far after it in one long stride.
        strides = ((end // 5 + 1, 5), (end // 5, 0x4005), (1, 0x2000))
        for records, stride in ((end, 0), (end - 1, 0), (0x20, 0), *strides):
            resource = [*_resource(records, stride), UNALIGNED]
            for place in ("m0", "m0 glc", "0x40 glc"):
                one = f"{name} {data}, s[40:43], {place}"
                lines = (*resource, *fill, *moved, one, WAIT, *after, *result)
                probes.append(_probe(name, *lines, scalar=False))
    return probes
