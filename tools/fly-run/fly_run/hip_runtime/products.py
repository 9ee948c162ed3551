"""What HIP tells about devices that the emulator does not have: names, processors, clocks, caches.

The numbers are those of a product with the chip, from its public data sheet, so that programs that
divide by them or choose a grid behave as there. Nothing here affects what a kernel computes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from fly_target.target import Target

MIB = 1 << 20
INT_MAX, SHORT_MAX = (1 << 31) - 1, (1 << 16) - 1
TIMER = 100_000  # kHz of s_memrealtime


@dataclass(frozen=True)
class Product:
    """`processors` are compute units, or work-group processors of two units on gfx11 and gfx12, as
    HIP counts them there. `clock` and `memory_clock` are in MHz, `l2` in bytes, `bus` in bits."""

    name: str
    processors: int
    clock: int
    memory_clock: int
    bus: int
    l2: int
    xccs: int = 1
    ecc: bool = False


PRODUCTS = {
    "gfx908": Product("AMD Instinct MI100", 120, 1502, 1200, 4096, 8 * MIB, ecc=True),
    "gfx90a": Product("AMD Instinct MI210", 104, 1700, 1600, 4096, 8 * MIB, ecc=True),
    "gfx942": Product("AMD Instinct MI300X", 304, 2100, 1300, 8192, 4 * MIB, 8, ecc=True),
    "gfx950": Product("AMD Instinct MI355X", 256, 2400, 1900, 8192, 4 * MIB, 8, ecc=True),
    "gfx1100": Product("AMD Radeon RX 7900 XTX", 48, 2500, 1249, 384, 6 * MIB),
    "gfx1101": Product("AMD Radeon RX 7800 XT", 30, 2430, 1219, 256, 4 * MIB),
    "gfx1102": Product("AMD Radeon RX 7600", 16, 2655, 1124, 128, 2 * MIB),
    "gfx1151": Product("AMD Radeon 8060S", 20, 2900, 1000, 256, 2 * MIB),
    "gfx1200": Product("AMD Radeon RX 9060 XT", 16, 3130, 1258, 128, 4 * MIB),
    "gfx1201": Product("AMD Radeon RX 9070 XT", 32, 2970, 1258, 256, 8 * MIB),
}
# For chips without a product of which anything is public.
OTHER = PRODUCTS["gfx950"]
# Chips whose target id has features: sramecc on, xnack off, as in their usual configuration.
FEATURES = ("gfx908", "gfx90a", "gfx942", "gfx950")


def product(target: Target) -> Product:
    return PRODUCTS.get(target.name, OTHER)


def arch_name(target: Target) -> str:
    """Returns the target id, as in gcnArchName."""
    return target.name + (":sramecc+:xnack-" if target.name in FEATURES else "")


def shown_name(target: Target) -> str:
    name = product(target).name if target.name in PRODUCTS else f"AMD {target.name}"
    return f"{name} (emulated by fly-run)"


def identity(ordinal: int, target: Target) -> bytes:
    """Returns the 16 bytes of a device's UUID, which are the same in every process."""
    return hashlib.sha256(f"fly-run {ordinal} {target.name}".encode()).digest()[:16]


def registers(target: Target) -> int:
    """Returns the 32-bit vector registers of what HIP counts as a processor."""
    assert target.amd is not None
    files, unit = target.amd.registers, target.amd.unit
    return files.vgprs * target.wave_size * unit.simds * (1 + unit.work_group_processor)


def resident_items(target: Target) -> int:
    """Returns the work items that a processor holds at once."""
    assert target.amd is not None
    unit = target.amd.unit
    return unit.simds * unit.waves * target.wave_size * (1 + unit.work_group_processor)


def values(ordinal: int, target: Target, memory: int) -> dict[str, Any]:
    """Returns the properties of a device by the names of the structures' fields. `memory` is its
    size in bytes."""
    assert target.amd is not None
    one, version = product(target), target.amd.isa_version
    integer_atomics_and_doubles = 0b1_1111 | 0b11 << 5 | 1 << 7
    votes, fence, grids = 0b111 << 8, 1 << 12, 1 << 15
    return {
        "name": shown_name(target).encode(),
        "uuid": tuple(identity(ordinal, target)),
        "totalGlobalMem": memory,
        "sharedMemPerBlock": target.lds,
        "sharedMemPerBlockOptin": target.lds,
        "sharedMemPerMultiprocessor": target.lds * one.processors,  # of all, as hip_device.cpp
        "maxSharedMemoryPerMultiProcessor": target.lds,
        "regsPerBlock": registers(target),
        "regsPerMultiprocessor": registers(target),
        "warpSize": target.wave_size,
        "memPitch": INT_MAX,
        "maxThreadsPerBlock": target.max_workgroup,
        "maxThreadsDim": (target.max_workgroup,) * 3,
        "maxGridSize": (INT_MAX, SHORT_MAX, SHORT_MAX),
        "clockRate": one.clock * 1000,
        "memoryClockRate": one.memory_clock * 1000,
        "memoryBusWidth": one.bus,
        "totalConstMem": min(memory, INT_MAX),
        "major": version // 1000,
        "minor": version // 100 % 10,
        "textureAlignment": 256,
        "texturePitchAlignment": 256,
        "surfaceAlignment": 256,
        "multiProcessorCount": one.processors,
        "canMapHostMemory": 1,
        "concurrentKernels": 1,
        "ECCEnabled": int(one.ecc),
        "pciBusID": ordinal + 1,
        "l2CacheSize": one.l2,
        "persistingL2CacheMaxSize": one.l2,
        "maxThreadsPerMultiProcessor": resident_items(target),
        "maxBlocksPerMultiProcessor": resident_items(target) // target.max_workgroup,
        "streamPrioritiesSupported": 1,
        "globalL1CacheSupported": 1,
        "localL1CacheSupported": 1,
        "managedMemory": 1,
        "concurrentManagedAccess": 1,
        "directManagedMemAccessFromHost": 1,
        "unifiedAddressing": 1,
        "hostNativeAtomicSupported": 1,
        "pageableMemoryAccess": 1,
        "pageableMemoryAccessUsesHostPageTables": 1,
        "canUseHostPointerForRegisteredMem": 1,
        "hostRegisterSupported": 1,
        "cooperativeLaunch": 1,
        "memoryPoolsSupported": 1,
        "gcnArchName": arch_name(target).encode(),
        "gcnArch": int(target.name[3:]) if target.name[3:].isdecimal() else 0,
        "clockInstructionRate": TIMER,
        "arch": integer_atomics_and_doubles | votes | fence | grids,
        "isLargeBar": 1,
    }


# hipDeviceAttribute_t → a name in `values`, or a position in a tuple there. Those of textures and
# surfaces, and the others up to LAST and from FIRST_AMD to LAST_AMD, are 0.
LAST, FIRST_AMD, LAST_AMD = 91, 10000, 10020
ATTRIBUTES: dict[int, str | tuple[str, int]] = {
    0: "ECCEnabled",
    3: "canMapHostMemory",
    4: "canUseHostPointerForRegisteredMem",
    5: "clockRate",
    8: "concurrentKernels",
    9: "concurrentManagedAccess",
    10: "cooperativeLaunch",
    13: "directManagedMemAccessFromHost",
    14: "globalL1CacheSupported",
    15: "hostNativeAtomicSupported",
    19: "l2CacheSize",
    20: "localL1CacheSupported",
    23: "major",
    24: "managedMemory",
    25: "maxBlocksPerMultiProcessor",
    26: ("maxThreadsDim", 0),
    27: ("maxThreadsDim", 1),
    28: ("maxThreadsDim", 2),
    29: ("maxGridSize", 0),
    30: ("maxGridSize", 1),
    31: ("maxGridSize", 2),
    55: ("maxThreadsDim", 0),
    56: "maxThreadsPerBlock",
    57: "maxThreadsPerMultiProcessor",
    58: "memPitch",
    59: "memoryBusWidth",
    60: "memoryClockRate",
    61: "minor",
    63: "multiProcessorCount",
    65: "pageableMemoryAccess",
    66: "pageableMemoryAccessUsesHostPageTables",
    67: "pciBusID",
    70: "persistingL2CacheMaxSize",
    71: "regsPerBlock",
    72: "regsPerMultiprocessor",
    74: "sharedMemPerBlock",
    75: "sharedMemPerBlockOptin",
    76: "sharedMemPerMultiprocessor",
    78: "streamPrioritiesSupported",
    79: "surfaceAlignment",
    81: "textureAlignment",
    82: "texturePitchAlignment",
    83: "totalConstMem",
    84: "totalGlobalMem",
    85: "unifiedAddressing",
    87: "warpSize",
    88: "memoryPoolsSupported",
    90: "hostRegisterSupported",
    10000: "clockInstructionRate",
    10002: "maxSharedMemoryPerMultiProcessor",
    10011: "isLargeBar",
    10013: "streamPrioritiesSupported",  # CanUseStreamWaitValue
    10015: "multiProcessorCount",  # PhysicalMultiProcessorCount
    10016: "hostNativeAtomicSupported",  # FineGrainSupport
    10017: "clockInstructionRate",  # WallClockRate
}
XCCS, VGPRS = 10018, 10019


def attribute(number: int, target: Target, known: dict[str, Any]) -> int | None:
    """Returns an attribute as an `int` of C; None if there is none of this number."""
    assert target.amd is not None
    if number == XCCS:
        return product(target).xccs
    if number == VGPRS:
        return min(512, target.amd.registers.vgprs)
    place = ATTRIBUTES.get(number)
    if place is None:
        return 0 if 0 <= number <= LAST or FIRST_AMD <= number <= LAST_AMD else None
    value = known[place] if isinstance(place, str) else known[place[0]][place[1]]
    return min(value, INT_MAX)
