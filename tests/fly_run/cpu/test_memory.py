"""Checks of memory: what is inside works, what is outside is a fault with the emulator's words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cpu_support import INDEX, kernel, launch, load, run
from fly_common.errors import Fault, InputError

GLOBALS = """
@s = internal addrspace(3) global [64 x i32] undef, align 16
@c = internal addrspace(4) constant [4 x i32] [i32 1, i32 2, i32 3, i32 4], align 16
@g = internal addrspace(1) global [4 x i32] [i32 5, i32 6, i32 7, i32 8], align 16
@d = external addrspace(3) global [0 x i32], align 16
"""
# One access, at a byte offset that the kernel reads from B.
ACCESSES = {
    "load": "%v = load volatile i32, ptr %at, align 4",
    "store": "store i32 1, ptr %at, align 4",
    "add": "%v = atomicrmw add ptr %at, i32 1 monotonic, align 4",
    "cas": "%v = cmpxchg ptr %at, i32 0, i32 1 monotonic monotonic, align 4",
    "copy": "call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %at, i64 12, i1 false)",
    "set": "call void @llvm.memset.p0.i64(ptr %at, i8 1, i64 12, i1 false)",
    "vector": "%v = load volatile <4 x float>, ptr %at, align 16",
    "byte": "%v = load volatile i8, ptr %at",
    "atomic load": "%v = load atomic i64, ptr %at acquire, align 8",
}
BASES = {
    "A": "%base = addrspacecast ptr addrspace(1) %p0 to ptr",
    "shared": "%base = addrspacecast ptr addrspace(3) @s to ptr",
    "constant": "%base = addrspacecast ptr addrspace(4) @c to ptr",
    "global": "%base = addrspacecast ptr addrspace(1) @g to ptr",
    "dynamic": "%base = addrspacecast ptr addrspace(3) @d to ptr",
    "null": "%base = inttoptr i64 0 to ptr",
}
_loaded: dict[tuple[str, str], tuple] = {}


def access(base: str, name: str, offset: int, shared: int = 0, writable: bool = True) -> None:
    """Makes one access at an offset from a base; A has 64 bytes."""
    body = f"""
  %to = alloca [12 x i8], align 16
  %offset = load i64, ptr addrspace(1) %p1
  {BASES[base]}
  %at = getelementptr i8, ptr %base, i64 %offset
  {ACCESSES[name]}
  %kept = load volatile i8, ptr %to
  ret void"""
    if (base, name) not in _loaded:
        _loaded[base, name] = load(kernel(body, 2, GLOBALS))
    memory = np.zeros(32, np.int32)
    a = memory[-(memory.ctypes.data % 16 // 4) % 4 :][:16]
    arrays = [a, np.array([offset], np.int64)]
    launch(*_loaded[base, name], arrays, 1, 1, shared, [writable, False])


@pytest.mark.parametrize(
    ("base", "name", "offset", "shared"),
    [
        *(("A", "load", 60, 0), ("A", "store", 0, 0), ("A", "add", 60, 0), ("A", "cas", 60, 0)),
        *(("A", "copy", 52, 0), ("A", "set", 52, 0), ("A", "vector", 48, 0), ("A", "byte", 63, 0)),
        *(("A", "atomic load", 56, 0), ("shared", "store", 252, 0), ("constant", "load", 12, 0)),
        *(("global", "store", 12, 0), ("dynamic", "store", 96, 100)),
    ],
)
def test_inside(base, name, offset, shared):
    access(base, name, offset, shared)


@pytest.mark.parametrize(
    ("base", "name", "offset", "said"),
    [
        ("A", "load", 64, "memory fault: 4 bytes at 0x…: at the end of `A` (64 bytes); kernel k "),
        ("A", "store", 68, "memory fault: 4 bytes at 0x…: 4 bytes past the end of `A` (64 bytes);"),
        ("A", "add", 64, "memory fault: 4 bytes at 0x…: at the end of `A` (64 bytes);"),
        ("A", "cas", -4, "memory fault: 4 bytes at 0x…: 4 bytes before the start of `A` (64 bytes"),
        ("A", "copy", 56, "memory fault: 12 bytes at 0x…: the last 4 of its bytes are past the en"),
        ("A", "set", 56, "memory fault: 12 bytes at 0x…: the last 4 of its bytes are past the end"),
        ("A", "vector", 64, "memory fault: 16 bytes at 0x…: at the end of `A` (64 bytes);"),
        ("A", "byte", 64, "memory fault: 1 bytes at 0x…: at the end of `A` (64 bytes); kernel k"),
        ("A", "atomic load", 64, "memory fault: 8 bytes at 0x…: at the end of `A` (64 bytes);"),
        ("A", "vector", 8, "misaligned access: 16 bytes at 0x…; kernel k 'load <4 x float>' block"),
        ("A", "add", 2, "misaligned access: 4 bytes at 0x…; kernel k 'atomicrmw i32' block (0, 0"),
        ("shared", "store", 256, "memory fault: 4 bytes at 0x…: at the end of `shared memory s` ("),
        ("constant", "store", 0, "write to read-only memory: 4 bytes at 0x…: `variable c` may onl"),
        ("constant", "load", 16, "memory fault: 4 bytes at 0x…: at the end of `variable c` (16 by"),
        ("null", "load", 8, "memory fault: 4 bytes at 0x…: a null pointer, or an offset from one;"),
    ],
)
def test_outside(base, name, offset, said):
    with pytest.raises(Fault) as caught:
        access(base, name, offset)
    found = re.sub(r"0x[0-9a-f]+", "0x…", caught.value.message)
    assert found.startswith(said)
    assert found.endswith(" block (0, 0, 0) thread (0, 0, 0)")


@pytest.mark.parametrize("shared", [0, 96])
def test_dynamic_shared_memory_has_the_launch_s_size(shared):
    with pytest.raises(Fault, match=f"shared memory d` \\({shared} bytes\\)"):
        access("dynamic", "store", shared, shared)
    access("dynamic", "store", shared, shared + 4)


@pytest.mark.parametrize("name", ["store", "add", "cas", "set"])
def test_read_only_buffers(name):
    access("A", "load", 0, writable=False)
    with pytest.raises(Fault, match=r"^write to read-only memory: .*: `A` may only be read;"):
        access("A", name, 0, writable=False)


def test_memory_that_was_released_is_not_accessible():
    """The code remembers where it found a buffer; that must not outlive the launch."""
    device, module = load(
        kernel(
            """
  %address = load ptr, ptr addrspace(1) %p0
  %v = load volatile i32, ptr %address
  ret void""",
            8,
        )
    )
    other = np.zeros(4, np.int32)
    where = np.array([other.ctypes.data], np.int64)
    more = [np.zeros(1, np.int32) for _ in range(6)]
    launch(device, module, [where, *more, other])
    with pytest.raises(Fault, match="memory fault: 4 bytes"):
        launch(device, module, [where])
    launch(device, module, [where, *more, other])


def test_shared_memory_begins_with_a_pattern_in_each_block():
    body = f"""{INDEX}
  %s = getelementptr i32, ptr addrspace(3) @s, i32 %tid
  %d = getelementptr i32, ptr addrspace(3) @d, i32 %tid
  %x = load i32, ptr addrspace(3) %s
  %y = load i32, ptr addrspace(3) %d
  store i32 1, ptr addrspace(3) %s
  store i32 2, ptr addrspace(3) %d
  %a = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  %b = getelementptr i32, ptr addrspace(1) %p1, i64 %i
  store i32 %x, ptr addrspace(1) %a
  store i32 %y, ptr addrspace(1) %b"""
    arrays = [np.zeros(192, np.uint32) for _ in range(2)]
    run(kernel(body, 2, GLOBALS), arrays, 3, 64, shared=256)
    assert (np.stack(arrays) == 0x7FF7BAD0).all()


def test_too_much_shared_memory():
    with pytest.raises(InputError, match=r"k requests 300256 bytes of shared memory, but sm_90a"):
        access("shared", "store", 0, 300_000)


def test_the_stack_has_a_limit():
    text = """
define internal i32 @deeper(i32 %n, ptr %from) noinline #0 {
  %room = alloca [1000 x i32]
  %zero = icmp eq i32 %n, 0
  br i1 %zero, label %end, label %go
go:
  %at = getelementptr i32, ptr %room, i32 %n
  store volatile i32 %n, ptr %at
  %less = sub i32 %n, 1
  %r = call i32 @deeper(i32 %less, ptr %at)
  %x = load volatile i32, ptr %at
  %sum = add i32 %r, %x
  ret i32 %sum
end:
  ret i32 0
}
define ptx_kernel void @k(ptr addrspace(1) %p0) #0 {
  %n = load i32, ptr addrspace(1) %p0
  %r = call i32 @deeper(i32 %n, ptr null)
  store i32 %r, ptr addrspace(1) %p0
  ret void
}
"""
    device, module = load(text)
    n = np.array([50], np.int32)
    launch(device, module, [n], 1, 1)
    assert n[0] == 50 * 51 // 2
    with pytest.raises(Fault, match="private memory fault: each thread has 262144 bytes of stack;"):
        launch(device, module, [np.array([900], np.int32)], 1, 1)
    n = np.array([50], np.int32)
    launch(device, module, [n], 1, 1)  # the device still works
    assert n[0] == 50 * 51 // 2
