"""A process that launches kernels with one access, which AddressSanitizer may watch:

python -m cpu_support.accesses "A read=16384" "shared write" …

Each argument is a variable or array and an access, and the address's offset in bytes. Without one
it is the distance to the neighbour, so that a process without AddressSanitizer finds the offset
that a process with it is given. What was found is written as JSON: of each argument the offset, and
what was said of two launches.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import numpy as np
from fly_common.errors import Fault

from cpu_support import kernel, launch, load

GLOBALS = """
@s = internal addrspace(3) global [64 x i32] undef, align 16
@t = internal addrspace(3) global [64 x i32] undef, align 16
@c = internal addrspace(4) constant [4 x i32] [i32 1, i32 2, i32 3, i32 4], align 16
@e = internal addrspace(4) constant [2000 x i32] zeroinitializer, align 16
@g = internal addrspace(1) global [4 x i32] [i32 5, i32 6, i32 7, i32 8], align 16
@d = external addrspace(3) global [0 x i32], align 16
"""
DYNAMIC = 100  # bytes of dynamic shared memory
NBYTES = 4096  # of each array: NumPy keeps the memory of smaller ones for itself
# Every variable is used, so that none is removed.
_BEGIN = """
  store volatile i32 0, ptr addrspace(3) @s
  store volatile i32 0, ptr addrspace(3) @t
  %kept.c = load volatile i32, ptr addrspace(4) @c
  %kept.e = load volatile i32, ptr addrspace(4) @e
  %kept.g = load volatile i32, ptr addrspace(1) @g
  %offset = load i64, ptr addrspace(1) %p2
"""
_STACK = """
  %a = alloca [16 x i32], align 16
  %b = alloca [512 x i32], align 16
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 64, i1 true)
  call void @llvm.memset.p0.i64(ptr %b, i8 0, i64 2048, i1 true)
"""
_ACCESSES = {
    "read": "%v = load volatile i32, ptr %at",
    "write": "store volatile i32 7, ptr %at",
    "add": "%v = atomicrmw add ptr %at, i32 1 monotonic",
    "copy": "call void @llvm.memcpy.p0.p1.i64(ptr %at, ptr addrspace(1) %p1, i64 24, i1 false)",
    "fill": "call void @llvm.memset.p0.i64(ptr %a, i8 1, i64 %offset, i1 true)",
    "vector": "%v = load volatile <4 x float>, ptr %at, align 16",
}
_BASES = {
    "A": "addrspacecast ptr addrspace(1) %p0",
    "shared": "addrspacecast ptr addrspace(3) @s",
    "constant": "addrspacecast ptr addrspace(4) @c",
    "variable": "addrspacecast ptr addrspace(1) @g",
    "dynamic": "addrspacecast ptr addrspace(3) @d",
    "stack": "bitcast ptr %a",
    "address": "inttoptr i64 0",
}
NEIGHBOURS = {"shared": ("shared memory s", "shared memory t"), "constant": ("c", "e")}


def text(base: str, access: str) -> str:
    if access == "trap":
        return f"{_BEGIN}{_STACK}\n  call void @llvm.trap()\n"
    more = _STACK if base == "stack" else ""
    at = f"  %base = {_BASES[base]} to ptr\n  %at = getelementptr i8, ptr %base, i64 %offset\n"
    return f"{_BEGIN}{more}{at}  {_ACCESSES[access]}"


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Two arrays, the second as close behind the first as possible."""
    every = [np.zeros(NBYTES // 4, np.int32) for _ in range(16)]
    every.sort(key=lambda one: one.ctypes.data)
    pairs = itertools.pairwise(every)
    return min(pairs, key=lambda pair: pair[1].ctypes.data - pair[0].ctypes.data)


def freed() -> tuple[int, np.ndarray]:
    """The address of an array that is no more, and another array, if possible in its place."""
    one = np.zeros(NBYTES // 4, np.int32)
    address = one.ctypes.data
    del one
    others = [np.zeros(NBYTES // 4, np.int32) for _ in range(64)]
    same = [other for other in others if other.ctypes.data == address]
    return address, (same or others)[0]


def distance(module: Any, base: str) -> int:
    first, second = NEIGHBOURS[base]
    places = {
        region.name.removeprefix("variable "): region.low
        for region in module.own_memory(module.copies(1)[0], DYNAMIC)
    }
    return places[second] - places[first]


def released(device: Any) -> int:
    """The address of memory of the device that is no more."""
    address = device.alloc(NBYTES)
    device.free(address)
    return address


def attempt(case: str, chosen: str) -> tuple[int, list[str]]:
    base, _, access = case.partition(" ")
    is_address = base in ("freed", "released", "null")
    device, module = load(kernel(text("address" if is_address else base, access), 3, GLOBALS))
    a, b = arrays()
    if chosen:
        offset = int(chosen)
    elif base in NEIGHBOURS:
        offset = distance(module, base)
    elif base == "freed":
        offset, a = freed()
    elif base == "released":
        offset = released(device)
    else:
        offset = b.ctypes.data - a.ctypes.data
    said = []
    for _ in range(2):
        try:
            launch(device, module, [a, b, np.array([offset], np.int64)], 1, 1, DYNAMIC)
            said.append("not noticed")
        except Fault as fault:
            said.append(fault.message)
    return offset, said


def main(words: list[str]) -> None:
    found = {}
    for word in words:
        case, _, chosen = word.partition("=")
        print(f"case: {word}", file=sys.stderr, flush=True)
        found[word] = attempt(case, chosen)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
