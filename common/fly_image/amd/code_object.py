"""A linked AMD GPU code object (HSACO): its kernels, their arguments, its host program.

Implements `fly_image.image`. It also has what only AMD's devices, such as the emulator, and
statistics need: descriptors, hidden arguments, waves, registers.

Source: LLVM's "User Guide for AMDGPU Backend", "Code Object V5 Metadata" and "Kernel Descriptor".
"""

from __future__ import annotations

import functools
import struct
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from fly_common import artifact
from fly_common.errors import InputError, Place
from fly_common.quoting import quoted
from fly_host import text
from fly_host.program import Program
from fly_host.section import SECTION
from fly_target.registry import BUILT_IN

from fly_image.amd.metadata import as_list, as_map, metadata, number, shown, word
from fly_image.elf import EM_AMDGPU, ET_DYN, Elf, Relocation, Segment, Symbol
from fly_image.image import POINTER, SHARED, VALUE, Image, find_kernel

if TYPE_CHECKING:
    from fly_image.dwarf import LineTable

# The fields of the 64-byte kernel descriptor: LDS, scratch and argument sizes, reserved, entry
# offset, reserved, compute_pgm_rsrc 3, 1 and 2, properties, kernarg preload, reserved.
DESCRIPTOR = struct.Struct("<III4xq20xIIIHH4x")

# Limits that no working code object reaches. A larger value means that the file is damaged, and
# must not make a device allocate gigabytes.
MOST_LOADED = 1 << 30  # bytes of all segments
MOST_KERNARG = 1 << 16  # bytes
MOST_LDS = max(target.lds for target in BUILT_IN.values())
MOST_SCRATCH = 1 << 17  # bytes per lane; the hardware's limit is 2^13 dwords
MOST_WORKGROUP = 1024  # work items

# LLVM's kinds of arguments that callers pass → the interface's kinds.
ARGUMENT_KINDS = {
    "global_buffer": POINTER,
    "by_value": VALUE,
    "dynamic_shared_pointer": SHARED,
}


@dataclass(frozen=True)
class Argument:
    """An entry of a kernel's `.args`. `value_kind` is LLVM's: `global_buffer`, `by_value`,
    `dynamic_shared_pointer`, `hidden_block_count_x`, …"""

    name: str
    offset: int
    size: int
    value_kind: str
    type_name: str = ""
    address_space: str = ""

    @property
    def hidden(self) -> bool:
        """Whether the device fills it in, rather than the caller."""
        return self.value_kind.startswith("hidden_")

    @property
    def kind(self) -> str:
        return ARGUMENT_KINDS.get(self.value_kind, self.value_kind)

    @property
    def description(self) -> str:
        """A description such as `a global_buffer (float*)` or `8 bytes by value (struct S)`."""
        by_value = self.value_kind == "by_value"
        told = f"{self.size} bytes by value" if by_value else f"a {self.value_kind}"
        return told + (f" ({self.type_name})" if self.type_name else "")


@dataclass(frozen=True)
class Kernel:
    """A kernel: its descriptor, which the hardware reads, and its metadata, which the host reads.

    Sizes are in bytes; `private_segment_fixed_size` is per lane. `descriptor` and `entry` are
    addresses relative to the code object. `cluster` is the size of a cluster in workgroups, if the
    kernel was compiled for one.
    """

    name: str
    descriptor: int
    entry: int
    group_segment_fixed_size: int
    private_segment_fixed_size: int
    kernarg_size: int
    kernel_code_entry_byte_offset: int
    compute_pgm_rsrc1: int
    compute_pgm_rsrc2: int
    compute_pgm_rsrc3: int
    kernel_code_properties: int
    kernarg_preload: int
    args: tuple[Argument, ...]
    sgpr_count: int
    vgpr_count: int
    agpr_count: int
    sgpr_spill_count: int
    vgpr_spill_count: int
    max_flat_workgroup_size: int
    required_workgroup_size: tuple[int, int, int] | None
    wavefront_size: int
    uses_dynamic_stack: bool
    cluster: tuple[int, int, int] | None = None

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments that the caller passes."""
        return tuple(argument for argument in self.args if not argument.hidden)

    @property
    def argument_bytes(self) -> int:
        return self.kernarg_size

    @property
    def shared_bytes(self) -> int:
        return self.group_segment_fixed_size

    @property
    def max_threads(self) -> int:
        return self.max_flat_workgroup_size

    @property
    def required_block(self) -> tuple[int, int, int] | None:
        return self.required_workgroup_size

    @property
    def spilled(self) -> str:
        """The registers that did not suffice, as text; empty if all did."""
        parts = []
        if self.vgpr_spill_count:
            size = self.private_segment_fixed_size
            parts.append(f"{self.vgpr_spill_count} VGPRs to scratch memory ({size} bytes a lane)")
        if self.sgpr_spill_count:
            parts.append(f"{self.sgpr_spill_count} SGPRs to lanes of VGPRs")
        return " and ".join(parts)

    def details(self) -> list[tuple[str, str]]:
        """See `KernelInterface`."""
        block = f"at most {self.max_flat_workgroup_size} work items"
        if self.required_workgroup_size:
            block = "×".join(map(str, self.required_workgroup_size)) + " work items"
        clusters = ""
        if self.cluster:
            clusters = f", in clusters of {'×'.join(map(str, self.cluster))} workgroups"
        spilled = self.sgpr_spill_count + self.vgpr_spill_count
        stack = ", and a dynamic stack" if self.uses_dynamic_stack else ""
        return [
            ("entry", f"0x{self.entry:x}"),
            ("block", f"{block} in waves of {self.wavefront_size}{clusters}"),
            (
                "registers",
                f"{self.vgpr_count} VGPR ({self.agpr_count} of them AGPR),"
                f" {self.sgpr_count} SGPR, {spilled} spilled",
            ),
            (
                "memory",
                f"{self.group_segment_fixed_size} bytes LDS,"
                f" {self.private_segment_fixed_size} scratch per lane{stack},"
                f" {self.kernarg_size} of arguments",
            ),
        ]

    def argument_rows(self) -> list[tuple[int, int, str]]:
        """See `KernelInterface`."""
        told = ((a, (a.value_kind, a.name, a.type_name)) for a in self.args)
        return [(a.offset, a.size, " ".join(filter(None, words))) for a, words in told]


@dataclass(frozen=True)
class CodeObject:
    data: bytes
    target: str
    features: tuple[str, ...]  # as in a target id: "xnack+"; absent if unspecified
    segments: tuple[Segment, ...]
    kernels: dict[str, Kernel]
    symbols: dict[str, Symbol]
    relocations: tuple[Relocation, ...]
    program: Program | None

    @staticmethod
    def parse(data: bytes, name: str = "<stdin>") -> CodeObject:
        """Parses a HSACO. Raises InputError, located at `name`, if it is invalid."""
        try:
            return _parse(data, name)
        except InputError as error:
            error.place = error.place or Place(name)
            raise

    def kernel(self, name: str | None) -> Kernel:
        """Returns the kernel `name`, or with None the only one. InputError lists the kernels."""
        return find_kernel(self.kernels, name)

    @functools.cached_property
    def digest(self) -> str:
        return sha256(self.data).hexdigest()

    @property
    def variant(self) -> str:
        """The target id: "gfx942:xnack+"."""
        return ":".join([self.target, *self.features])

    def document(self) -> dict[str, Any]:
        """See `Image`."""
        return {
            "target": self.target,
            "features": self.features,
            "size": len(self.data),
            "kernels": [asdict(kernel) for kernel in self.kernels.values()],
        }

    @functools.cached_property
    def lines(self) -> LineTable:
        """The source lines of the code, read on first use."""
        from fly_image import dwarf as lines

        return lines.table_of(self.data)

    def line(self, pc: int) -> Place | None:
        """See `Image`."""
        return self.lines.place(pc)

    def same_code(self, other: Image) -> bool:
        """See `Image`."""
        return isinstance(other, CodeObject) and other.executable() == self.executable()

    def executable(self) -> tuple[Segment, ...]:
        return tuple(segment for segment in self.segments if segment.executable)


def read(data: bytes, name: str = "<stdin>") -> CodeObject:
    """`CodeObject.parse`, for the registry."""
    return CodeObject.parse(data, name)


def _parse(data: bytes, name: str) -> CodeObject:
    elf = Elf.parse(data) if data[:4] == b"\x7fELF" else None
    if elf is None or elf.machine != EM_AMDGPU or elf.type != ET_DYN:
        artifact.refuse(artifact.identify(data), artifact.HSACO, name)
    target = elf.processor
    if sum(segment.size for segment in elf.segments) > MOST_LOADED:
        raise InputError(f"the segments are larger than {MOST_LOADED >> 20} MiB together")
    said = metadata(elf)
    kernels: dict[str, Kernel] = {}
    for entry in as_list(said.get("amdhsa.kernels", []), "amdhsa.kernels"):
        kernel = _kernel(elf, as_map(entry, "a kernel"))
        if kernel.name in kernels:
            raise InputError(f"the metadata describes kernel {quoted(kernel.name)} twice")
        kernels[kernel.name] = kernel
    program = _program(elf, target)
    if not kernels and (program is None or program.launches):
        raise InputError("the code object contains no kernel")
    return CodeObject(
        data=data,
        target=target,
        features=_features(elf.flags),
        segments=elf.segments,
        kernels=kernels,
        symbols=elf.symbols,
        relocations=elf.relocations(),
        program=program,
    )


def _features(flags: int) -> tuple[str, ...]:
    """Returns the xnack (bits 8-9) and sramecc (10-11) settings of e_flags: 2 is off, 3 is on."""
    made = []
    for feature, shift in (("xnack", 8), ("sramecc", 10)):
        setting = (flags >> shift) & 3
        if setting >= 2:
            made.append(f"{feature}{'-+'[setting - 2]}")
    return tuple(made)


def _program(elf: Elf, target: str) -> Program | None:
    section = elf.section(SECTION)
    if section is None or not section.data.strip(b"\0"):
        return None
    made = text.read(section.data.rstrip(b"\0"))
    if made.target != target:
        raise InputError(
            f"the host program is for {made.target}, but the code is for {target}",
            hint="compile the kernel again; --target is given once, to fly-opt-py",
        )
    return made


# -- kernels -------------------------------------------------------------------------------------


def _kernel(elf: Elf, said: dict[str, Any]) -> Kernel:
    name = word(said, ".name")
    label = word(said, ".symbol", f"{name}.kd")
    symbol = elf.symbols.get(label)
    if symbol is None:
        raise InputError(
            f"kernel {quoted(name)} has no descriptor: symbol {quoted(label)} is missing"
        )
    try:
        descriptor = elf.read(symbol.value, DESCRIPTOR.size)
    except InputError as error:
        raise InputError(f"the descriptor of kernel {quoted(name)}: {error.message}") from None
    lds, scratch, kernarg, offset, rsrc3, rsrc1, rsrc2, properties, preload = DESCRIPTOR.unpack(
        descriptor
    )
    entry = symbol.value + offset
    if not any(s.executable and s.holds(entry, 4) for s in elf.segments) or entry % 4:
        raise InputError(
            f"kernel {quoted(name)} begins at 0x{entry & (1 << 64) - 1:x}, where there is no code"
        )
    for value, most, what in (
        (lds, MOST_LDS, "LDS"),
        (scratch, MOST_SCRATCH, "scratch per lane"),
        (kernarg, MOST_KERNARG, "arguments"),
    ):
        if value > most:
            raise InputError(
                f"kernel {quoted(name)} requests {value} bytes of {what}; the maximum is {most}"
            )
    arguments = tuple(
        _argument(name, as_map(item, "an argument"), kernarg)
        for item in as_list(said.get(".args", []), ".args")
    )
    return Kernel(
        name=name,
        descriptor=symbol.value,
        entry=entry,
        group_segment_fixed_size=lds,
        private_segment_fixed_size=scratch,
        kernarg_size=kernarg,
        kernel_code_entry_byte_offset=offset,
        compute_pgm_rsrc1=rsrc1,
        compute_pgm_rsrc2=rsrc2,
        compute_pgm_rsrc3=rsrc3,
        kernel_code_properties=properties,
        kernarg_preload=preload,
        args=arguments,
        sgpr_count=number(said, ".sgpr_count", 1 << 16, 0),
        vgpr_count=number(said, ".vgpr_count", 1 << 16, 0),
        agpr_count=number(said, ".agpr_count", 1 << 16, 0),
        sgpr_spill_count=number(said, ".sgpr_spill_count", 1 << 32, 0),
        vgpr_spill_count=number(said, ".vgpr_spill_count", 1 << 32, 0),
        max_flat_workgroup_size=number(
            said, ".max_flat_workgroup_size", MOST_WORKGROUP, MOST_WORKGROUP, least=1
        ),
        required_workgroup_size=_triple(said, ".reqd_workgroup_size"),
        wavefront_size=_wavefront(said),
        uses_dynamic_stack=bool(said.get(".uses_dynamic_stack", False)),
        cluster=_triple(said, ".cluster_dims"),
    )


def _wavefront(said: dict[str, Any]) -> int:
    size = number(said, ".wavefront_size", 64, 64)
    if size not in (32, 64):
        raise InputError(f"the metadata is damaged: .wavefront_size is {size}")
    return size


def _triple(said: dict[str, Any], key: str) -> tuple[int, int, int] | None:
    if key not in said:
        return None
    value = as_list(said[key], key)
    if len(value) != 3 or not all(isinstance(n, int) and 0 < n <= MOST_WORKGROUP for n in value):
        raise InputError(f"the metadata is damaged: {key} is {shown(value)}")
    return value[0], value[1], value[2]


def _argument(kernel: str, said: dict[str, Any], kernarg: int) -> Argument:
    made = Argument(
        name=word(said, ".name", ""),
        offset=number(said, ".offset", MOST_KERNARG),
        size=number(said, ".size", MOST_KERNARG),
        value_kind=word(said, ".value_kind"),
        type_name=word(said, ".type_name", ""),
        address_space=word(said, ".address_space", ""),
    )
    if made.offset + made.size > kernarg:
        raise InputError(
            f"argument {quoted(made.name or made.value_kind)} of kernel {quoted(kernel)} ends at"
            f" byte {made.offset + made.size} of an argument segment of {kernarg}"
        )
    return made
