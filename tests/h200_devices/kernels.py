"""Kernels in PTX, and the images and programs around them."""

from __future__ import annotations

from typing import Any

from fly_host import program as host
from gpu_support.images import FakeImage, kernel

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"

# C[i] = A[i] + B[i] for i < n.
ADD = """
.visible .entry add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pn)
{
  .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<5>; .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc];
  ld.param.u64 %rd4, [pn];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd5, %r1, %r2; cvt.u64.u32 %rd6, %r3; add.u64 %rd5, %rd5, %rd6;
  setp.ge.u64 %p, %rd5, %rd4;
  @%p bra done;
  shl.b64 %rd6, %rd5, 2;
  add.u64 %rd7, %rd1, %rd6; add.u64 %rd8, %rd2, %rd6; add.u64 %rd9, %rd3, %rd6;
  ld.global.f32 %f1, [%rd7]; ld.global.f32 %f2, [%rd8];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd9], %f3;
done:
  ret;
}
"""

# Stores far outside of the array.
WILD = """
.visible .entry wild(.param .u64 pa)
{
  .reg .b32 %r<2>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [pa];
  mov.u64 %rd2, 1099511627776; add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r1, 7;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""

NONE = """
.visible .entry none()
{
  ret;
}
"""

# out[i] = i by way of the last bytes of dynamic shared memory; `n` is its size in bytes.
SHARED = """
.extern .shared .align 16 .b8 room[];
.visible .entry shared(.param .u64 pout, .param .u64 pn)
{
  .reg .b32 %r<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [pout]; ld.param.u64 %rd2, [pn];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x;
  cvt.u64.u32 %rd3, %r1; shl.b64 %rd3, %rd3, 2;
  cvt.u64.u32 %rd4, %r2; shl.b64 %rd4, %rd4, 2;
  mov.u64 %rd5, room; add.u64 %rd5, %rd5, %rd2; sub.u64 %rd5, %rd5, %rd4;
  add.u64 %rd6, %rd5, %rd3;
  cvt.u32.u64 %r3, %rd6;
  st.shared.u32 [%r3], %r1;
  bar.sync 0;
  ld.shared.u32 %r4, [%r3];
  add.u64 %rd7, %rd1, %rd3;
  st.global.u32 [%rd7], %r4;
  ret;
}
"""

KERNELS = {
    "add": kernel("add", "p", "p", "p", 8),
    "wild": kernel("wild", "p"),
    "none": kernel("none"),
    "shared": kernel("shared", "p", 8),
}
BLOCK = 256


def program(target: str, *, makes: bool = False, streams: bool = False) -> host.Program:
    """C = A + B; with `makes` it allocates and returns C."""
    tensors: list[Any] = [
        host.Tensor("A", "f32", ("n",), (1,), "r", contiguous=True),
        host.Tensor("B", "f32", ("n",), (1,), "r", contiguous=True),
    ]
    if not makes:
        tensors.append(host.Tensor("C", "f32", ("n",), (1,), "w", contiguous=True))
    if streams:
        tensors.append(host.Stream("s"))
    pointers = tuple((host.Word("pointer", name),) for name in "ABC")
    launch = host.Launch(
        "add",
        (2, 3, 3),
        (1, 3, 3),
        4,
        (*pointers, (host.Word("integer", expression=0, size=8),)),
        *(("s",) if streams else ()),
    )
    expressions: tuple[Any, ...] = (
        ("extent", "A", 0),
        ("const", BLOCK),
        ("ceildiv", 0, 1),
        ("const", 1),
        ("const", 0),
    )
    if not makes:
        return host.Program("add", target, tuple(tensors), expressions, (launch,))
    return host.Program(
        *("add", target, tuple(tensors), expressions),
        (host.Allocate("C"), launch),
        (host.Buffer("C", "f32", (0,), (3,), 0),),
        host.Operand("tensor", "C"),
        ("C",),
    )


def none_program(target: str) -> host.Program:
    """Launches the kernel without arguments."""
    expressions = (("const", 1), ("const", 0))
    launch = host.Launch("none", (0, 0, 0), (0, 0, 0), 1, ())
    return host.Program("none", target, (), expressions, (launch,))


def image(target: str = "sm_80", made: host.Program | None = None) -> FakeImage:
    """All kernels."""
    text = HEADER + ADD + WILD + NONE + SHARED
    return FakeImage(KERNELS, target, made or program(target), text.encode())
