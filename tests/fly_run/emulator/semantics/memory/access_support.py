"""Kernels with one memory access each, for every memory instruction and each kind of its addresses,
for the tests of bounds and of shortcuts."""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from fly_common.errors import Fault
from fly_image.amd.code_object import CodeObject
from fly_run.emulator.engine.arena import FIRST, Region
from fly_run.emulator.machine import Emulator
from fly_run.emulator.semantics import table
from fly_run.emulator.semantics.base.access import Access, Atomic, ScalarAccess
from fly_run.emulator.semantics.base.operation import Operation
from launching_on_device import Buffers, launch
from oracle.launching import build
from oracle.probes import rdna_probe
from oracle.probes.probe import known_to

# The lane's offset is `stride` · lane + `start`. Arguments: A, stride, start, EXEC, the bits of the
# lane's number to add to a 64-bit address's high dword, and the size of a buffer resource in bytes.
BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx2 s[8:9], s[0:1], 0x10
  s_load_dword s10, s[0:1], 0x18
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_mul_lo_u32 v1, v0, s6
  v_add_u32 v1, v1, s7
  v_mov_b32_e32 v3, s5
  v_add_co_u32_e32 v2, vcc, s4, v1
  v_addc_co_u32_e32 v3, vcc, 0, v3, vcc
  v_and_b32_e32 v4, s10, v0
  v_add_u32 v3, v3, v4
  s_mov_b32 s12, s4
  s_and_b32 s13, s5, 0xffff
  s_load_dword s14, s[0:1], 0x1c
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s15, 0x27000
  s_mov_b32 m0, -1
  s_ashr_i32 s11, s7, 31
  s_add_u32 s10, s4, s7
  s_addc_u32 s11, s5, s11
{before}
  s_mov_b64 exec, s[8:9]
  {text}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_endpgm
"""
KERNEL = """
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_vgpr_workitem_id 0
  .amdhsa_next_free_vgpr 32
  .amdhsa_next_free_sgpr 40
  {more}
  .amdhsa_kernarg_size 32
  .amdhsa_private_segment_fixed_size {private}
  .amdhsa_enable_private_segment {enabled}
.end_amdhsa_kernel
"""
METADATA = """  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: {private}
    .wavefront_size: {lanes}
    .sgpr_count: 40
    .vgpr_count: 32
    .max_flat_workgroup_size: 64
    .args:
      - {{.name: A, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.name: stride, .offset: 8, .size: 4, .value_kind: by_value}}
      - {{.name: start, .offset: 12, .size: 4, .value_kind: by_value}}
      - {{.name: exec, .offset: 16, .size: 8, .value_kind: by_value}}
      - {{.name: apart, .offset: 24, .size: 4, .value_kind: by_value}}
      - {{.name: records, .offset: 28, .size: 4, .value_kind: by_value}}
"""
AT_ONCE = 40  # forms per code object
PRIVATE = 64  # bytes per lane
HALF = 1 << 32  # the range of an address's low dword
EDGE = 8192  # bytes on either side of a multiple of that
TARGETS = ("gfx942", "gfx1100", "gfx1201", "gfx1250")
LARGE = ("gfx942", "gfx1250")  # these have most forms, and a test for each space
SPACES = ("global", "flat", "buffer", "lds", "scratch", "smem")


@dataclass(frozen=True)
class Form:
    """An instruction's text; `size`: the bytes that a lane accesses; `scaled`: its offsets count
    accesses, from `start`."""

    space: str
    text: str
    size: int
    writes: bool
    atomic: bool
    scaled: bool = False

    @property
    def name(self) -> str:
        return self.text.partition(" ")[0]

    @property
    def before(self) -> str:
        """Divides the lanes' offsets from `start`, which are multiples of `size`."""
        if not self.scaled:
            return ""
        lines = ["v_mul_lo_u32 v1, v0, s6"]
        if self.size > 1:
            lines += [f"s_mov_b32 s16, {-(-(1 << 32) // self.size):#x}", "v_mul_hi_u32 v1, v1, s16"]
        return "\n".join(f"  {line}" for line in lines)


def registers(first: int, count: int, bank: str = "v") -> str:
    return f"{bank}[{first}:{first + count - 1}]" if count > 1 else f"{bank}{first}"


def forms(operation: Operation, returning: str) -> Iterator[Form]:
    """Yields the forms with each kind of address, in gfx9's spelling."""
    detail, space = operation.detail, operation.form
    name = operation.mnemonic.removesuffix(".rtn")
    if isinstance(detail, ScalarAccess):
        yield scalar_form(name, detail, operation.mnemonic != name)
    if not isinstance(detail, Access | Atomic):
        return
    atomic = isinstance(detail, Atomic)
    dwords = detail.size // 4 * detail.values if atomic else detail.dwords
    result = registers(16, max(1, detail.size // 4))
    data = registers(8, dwords)
    loads = not atomic and detail.kind == "load"
    returns = loads or (atomic and detail.returns)
    more = f" {returning}" if atomic and returns else ""
    more = "" if space == "lds" else more
    head = [result] if returns else []
    tail = [] if loads else [data]
    if space == "lds" and atomic and detail.values == 2:
        half = dwords // 2
        tail = [registers(8, half), registers(8 + half, half)]
    places = {
        "global": (["v[2:3]", *tail, "off"], ["v1", *tail, "s[4:5]"]),
        "flat": (["v[2:3]", *tail],),
        "lds": (["v1", *tail],),
        "scratch": (["v1", *tail, "off"], ["off", *tail, "s7"]),
        "buffer": (["v1", "s[12:15]", "0 offen"],),
    }
    for place in places[space]:
        operands = [*head, *place]
        if space == "buffer":  # the result takes the data's place
            operands = [result if loads else data, *place]
        text = f"{name} {', '.join(operands)}{more}"
        yield Form(space, text, detail.size, atomic or not loads, atomic)


def scaled_forms(listed: Sequence[Form]) -> Iterator[Form]:
    """Yields gfx1250's other forms of these: FLAT with a scalar base; offsets that count
    accesses."""
    for form in listed:
        text = form.text
        if form.space == "flat":
            head, _, tail = text.partition("v[2:3]")
            tail, _, returning = tail.partition(" th:")
            text = f"{head}v1{tail}, s[4:5]{returning and ' th:' + returning}"
            yield replace(form, text=text)
        elif "s[4:5]" not in text or form.space != "global":
            continue
        text = text.replace("s[4:5]", "s[10:11]") + " scale_offset"
        yield replace(form, text=text, scaled=True)


def scalar_form(name: str, detail: ScalarAccess, returns: bool) -> Form:
    """Accesses `start`, in s[10:11], or through the buffer."""
    atomic = detail.atomic
    size = atomic.size if atomic else detail.size
    dwords = max(1, size // 4) * (atomic.values if atomic else 1)
    data = registers(16, dwords, "s")
    place = "s[12:15], s7" if detail.buffer else "s[10:11], 0x0"
    text = f"{name} {data}, {place}{' glc' if returns else ''}"
    return Form("smem", text, size, detail.kind != "load", atomic is not None)


@functools.cache
def all_forms(target: str) -> tuple[Form, ...]:
    """Returns the target's forms, in gfx9's spelling: for gfx11 and gfx12 only the new ones; all of
    gfx1250, whose addresses have handlers of their own."""
    returning = rdna_probe.RETURNING.get(target, "sc0")
    earlier = () if target == "gfx1250" else TARGETS[: TARGETS.index(target)]
    before = {form for one in earlier for form in all_forms(one)}
    tried = {form.name for form in before}
    found = [
        form
        for name, operation in table.operations_of(target).items()
        if operation.form in SPACES
        for form in forms(operation, returning)
        if form.name not in tried
    ]
    if target == "gfx1250":
        found = [*found, *scaled_forms(found)]
    good = known_to(target, [spelled(form.text, target) for form in found])
    return tuple(form for form, ok in zip(found, good, strict=True) if ok)


def spelled(text: str, target: str) -> str:
    return rdna_probe.spelled(text, target) if target in build.RDNA else text


def lanes_of(target: str) -> int:
    return 32 if target in build.RDNA else 64


def compiled(target: str, listed: Sequence[Form]) -> CodeObject:
    """Compiles a kernel for each form: k0, k1, …"""
    kernels, metadata = [], []
    for number, form in enumerate(listed):
        private = PRIVATE if form.space == "scratch" else 0
        fields = {"name": f"k{number}", "private": private, "enabled": int(private > 0)}
        body = spelled(BODY.format(text=form.text, before=form.before), target)
        more = "" if target in build.RDNA else ".amdhsa_accum_offset 32"
        kernels.append(KERNEL.format(**fields, body=body, more=more))
        metadata.append(METADATA.format(**fields, lanes=lanes_of(target)))
    text = "".join(kernels)
    text += "\n.amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n"
    return CodeObject.parse(
        build.assemble(text + "".join(metadata) + "...\n.end_amdgpu_metadata\n", target)
    )


def batched(items: Sequence[Form], count: int) -> list[Sequence[Form]]:
    return [items[start : start + count] for start in range(0, len(items), count)]


@dataclass(frozen=True)
class Where:
    """The addresses of a launch's lanes: the arguments of BODY after A."""

    stride: int = 0
    start: int = 0
    exec_mask: int = -1
    apart: int = 0
    records: int = 0xFFFF_FFFF


@dataclass
class Bench:
    """`device`, with one buffer of the size that a launch requests."""

    target: str
    forms: Sequence[Form]
    code: CodeObject
    device: Emulator

    def works(
        self, number: int, room: int, *places: Where, writable: bool = True, size: int = 0
    ) -> bool:
        """Whether the last of several launches ends without a fault, with `room` bytes of memory or
        LDS; the earlier ones, which let each site cache its region, must. `size`: see `ends`."""
        memory = np.zeros(room, np.uint8)
        shared = room if self.forms[number].space == "lds" else 0
        with Buffers(self.device) as buffers:
            address = buffers.add("A", memory, writable)
            for before in places[:-1]:
                assert self.ends(number, address, before, shared, size), self.forms[number].text
            return self.ends(number, address, places[-1], shared, size)

    @contextlib.contextmanager
    def high(self, writable: bool) -> Iterator[int]:
        """Yields A, a multiple of 4 GiB; memory is mapped only around A + HALF."""
        around = np.zeros(2 * EDGE, np.uint8)
        buffers = self.device._buffers
        low = FIRST + 3 * HALF & -HALF
        at = low + HALF - EDGE
        buffers.place(Region("B", at, around.nbytes, around.ctypes.data, writable))
        yield low
        buffers.remove(at)

    def signed(self, form: Form) -> bool:
        """Whether the lanes' offsets are signed numbers: on gfx1250 those to a scalar base."""
        scalar = "s[4:5]" in form.text or "s[10:11]" in form.text
        return self.target == "gfx1250" and form.space != "smem" and scalar

    def fault(self, number: int, address: int, where: Where, shared: int) -> str:
        """Returns the message of the fault that ended a launch, if any."""
        kernarg = struct.pack("<QIIqII", address, *astuple(where))
        shape = (1, 1, 1), (lanes_of(self.target), 1, 1)
        try:
            launch(self.device, self.code, f"k{number}", *shape, kernarg, shared)
        except Fault as fault:
            return str(fault)
        return ""

    def ends(self, number: int, address: int, where: Where, shared: int, size: int = 0) -> bool:
        """Whether a launch ends without an access fault, whose message gives the number of bytes:
        `size`, or that of the form."""
        told = f" {size or self.forms[number].size} bytes at 0x"
        return told not in self.fault(number, address, where, shared)
