"""A linked AMD GPU code object (HSACO): its kernels, their arguments, its launch plan.

Source: LLVM's "User Guide for AMDGPU Backend", "Code Object V5 Metadata" and "Kernel Descriptor".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from fly_common import artifact
from fly_common.errors import InputError, Place
from fly_common.quoting import quoted
from fly_host import plan
from fly_host.plan import Plan
from fly_target.registry import BUILT_IN

from fly_image.elf import EM_AMDGPU, ET_DYN, SHT_NOTE, Elf, Relocation, Segment, Symbol

NOTE_METADATA = 32  # NT_AMDGPU_METADATA
# The 64 bytes of "Kernel Descriptor": LDS, scratch and argument sizes, reserved, entry offset,
# reserved, compute_pgm_rsrc 3, 1 and 2, properties, kernarg preload, reserved.
DESCRIPTOR = struct.Struct("<III4xq20xIIIHH4x")

# Bounds that no working code object reaches: what lies beyond is damage, and must not make a
# device allocate gigabytes.
MOST_LOADED = 1 << 30  # bytes of segments
MOST_KERNARG = 1 << 16  # bytes
MOST_LDS = max(target.lds for target in BUILT_IN.values())
MOST_SCRATCH = 1 << 17  # bytes a lane; hardware's limit is 2^13 dwords times 4
MOST_WORKGROUP = 1024  # work items


@dataclass(frozen=True)
class Argument:
    """An entry of a kernel's `.args`. `value_kind` is LLVM's word: `global_buffer`, `by_value`,
    `dynamic_shared_pointer`, `hidden_block_count_x`, …"""

    name: str
    offset: int
    size: int
    value_kind: str
    type_name: str = ""
    address_space: str = ""

    @property
    def hidden(self) -> bool:
        """Whether the device fills it, not the caller."""
        return self.value_kind.startswith("hidden_")


@dataclass(frozen=True)
class Kernel:
    """A kernel: its descriptor, which the hardware reads, and its metadata, which the host reads.

    Sizes are in bytes, `private_segment_fixed_size` a lane's. `descriptor` and `entry` are
    addresses in the code object's numbering.
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

    @property
    def explicit_args(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.args if not argument.hidden)


@dataclass(frozen=True)
class CodeObject:
    data: bytes
    target: str
    features: tuple[str, ...]  # as in a target id: "xnack+", "sramecc-"; none where either will do
    segments: tuple[Segment, ...]
    kernels: dict[str, Kernel]
    symbols: dict[str, Symbol]
    relocations: tuple[Relocation, ...]
    plan: Plan | None

    @staticmethod
    def parse(data: bytes, name: str = "<stdin>") -> CodeObject:
        """Reads a HSACO. InputError, with `name` as its place, says what is wrong with it."""
        try:
            return _parse(data, name)
        except InputError as error:
            error.place = error.place or Place(name)
            raise

    def kernel(self, name: str | None) -> Kernel:
        """The kernel `name`; for None the only one. InputError lists what there is."""
        if name is None and len(self.kernels) == 1:
            return next(iter(self.kernels.values()))
        if name in self.kernels:
            return self.kernels[name]
        what = f"no kernel {quoted(name)}" if name else "several kernels"
        listed = ", ".join(self.kernels) or "none at all"
        raise InputError(f"{what} in the code object", hint=f"its kernels: {listed}")

    def executable(self) -> tuple[Segment, ...]:
        return tuple(segment for segment in self.segments if segment.executable)


def _parse(data: bytes, name: str) -> CodeObject:
    elf = Elf.parse(data) if data[:4] == b"\x7fELF" else None
    if elf is None or elf.machine != EM_AMDGPU or elf.type != ET_DYN:
        artifact.refuse(artifact.identify(data), artifact.HSACO, name)
    target = elf.processor
    if sum(segment.size for segment in elf.segments) > MOST_LOADED:
        raise InputError(f"the segments are larger than {MOST_LOADED >> 20} MiB together")
    said = metadata(elf)
    kernels: dict[str, Kernel] = {}
    for entry in _list(said.get("amdhsa.kernels", []), "amdhsa.kernels"):
        kernel = _kernel(elf, _map(entry, "a kernel"))
        if kernel.name in kernels:
            raise InputError(f"the metadata describes kernel {quoted(kernel.name)} twice")
        kernels[kernel.name] = kernel
    if not kernels:
        raise InputError("the code object holds no kernel")
    return CodeObject(
        data=data,
        target=target,
        features=_features(elf.flags),
        segments=elf.segments,
        kernels=kernels,
        symbols=elf.symbols,
        relocations=elf.relocations(),
        plan=_plan(elf, target),
    )


def _features(flags: int) -> tuple[str, ...]:
    """xnack (bits 8-9) and sramecc (10-11) of e_flags: 2 is off, 3 is on."""
    made = []
    for feature, shift in (("xnack", 8), ("sramecc", 10)):
        setting = (flags >> shift) & 3
        if setting >= 2:
            made.append(f"{feature}{'-+'[setting - 2]}")
    return tuple(made)


def _plan(elf: Elf, target: str) -> Plan | None:
    section = elf.section(plan.SECTION)
    if section is None or not section.data.strip(b"\0"):
        return None
    made = plan.from_text(section.data.rstrip(b"\0"))
    if made.target != target:
        raise InputError(
            f"the launch plan is for {made.target}, the code for {target}",
            hint="compile the kernel again; --target is said once, to fly-opt-py",
        )
    return made


# -- metadata ------------------------------------------------------------------------------------


def metadata(elf: Elf) -> dict[str, Any]:
    """The code object metadata of an object or a code object, as LLVM's guide for AMDGPU describes
    it ("Code Object V6 Metadata"). InputError where there is none, or none that can be read."""
    for section in elf.sections:
        if section.type == SHT_NOTE:
            found = _note(section.data)
            if found is not None:
                return _unpack(found)
    raise InputError(
        "the code object has no AMD GPU metadata (a note of type 32)",
        hint="link with fly-link or ld.lld -shared, and do not strip notes",
    )


def _note(data: bytes) -> bytes | None:
    """The content of the metadata note. A note is: sizes of name and content, type, name,
    content, the last two padded to 4 bytes."""
    at = 0
    while at + 12 <= len(data):
        name_size, size, type = struct.unpack_from("<III", data, at)
        start = at + 12 + (name_size + 3 & ~3)
        if start + size > len(data):
            raise InputError("a note reaches past the end of its section")
        name = data[at + 12 : at + 12 + name_size].rstrip(b"\0")
        if type == NOTE_METADATA and name == b"AMDGPU":
            return data[start : start + size]
        at = start + (size + 3 & ~3)
    return None


def _unpack(data: bytes) -> dict[str, Any]:
    import msgpack

    try:
        made = msgpack.unpackb(data, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"the metadata is damaged: {reason}") from None
    return _map(made, "the metadata")


def _map(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InputError(f"the metadata is damaged: {what} is no map")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"the metadata is damaged: {what} is no list")
    return value


def _number(
    source: dict[str, Any], key: str, most: int, default: int | None = None, least: int = 0
) -> int:
    value = source.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"the metadata is damaged: {key} is {_shown(value)}")
    return value


def _word(source: dict[str, Any], key: str, default: str | None = None) -> str:
    value = source.get(key, default)
    if not isinstance(value, str):
        raise InputError(f"the metadata is damaged: {key} is {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# -- kernels -------------------------------------------------------------------------------------


def _kernel(elf: Elf, said: dict[str, Any]) -> Kernel:
    name = _word(said, ".name")
    label = _word(said, ".symbol", f"{name}.kd")
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
            f"kernel {quoted(name)} begins at 0x{entry & (1 << 64) - 1:x}, where no code is"
        )
    for value, most, what in (
        (lds, MOST_LDS, "LDS"),
        (scratch, MOST_SCRATCH, "scratch a lane"),
        (kernarg, MOST_KERNARG, "arguments"),
    ):
        if value > most:
            raise InputError(
                f"kernel {quoted(name)} asks for {value} bytes of {what}; {most} is most"
            )
    arguments = tuple(
        _argument(name, _map(item, "an argument"), kernarg)
        for item in _list(said.get(".args", []), ".args")
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
        sgpr_count=_number(said, ".sgpr_count", 1 << 16, 0),
        vgpr_count=_number(said, ".vgpr_count", 1 << 16, 0),
        agpr_count=_number(said, ".agpr_count", 1 << 16, 0),
        sgpr_spill_count=_number(said, ".sgpr_spill_count", 1 << 32, 0),
        vgpr_spill_count=_number(said, ".vgpr_spill_count", 1 << 32, 0),
        max_flat_workgroup_size=_number(
            said, ".max_flat_workgroup_size", MOST_WORKGROUP, MOST_WORKGROUP, least=1
        ),
        required_workgroup_size=_triple(said, ".reqd_workgroup_size"),
        wavefront_size=_wavefront(said),
        uses_dynamic_stack=bool(said.get(".uses_dynamic_stack", False)),
    )


def _wavefront(said: dict[str, Any]) -> int:
    size = _number(said, ".wavefront_size", 64, 64)
    if size not in (32, 64):
        raise InputError(f"the metadata is damaged: .wavefront_size is {size}")
    return size


def _triple(said: dict[str, Any], key: str) -> tuple[int, int, int] | None:
    if key not in said:
        return None
    value = _list(said[key], key)
    if len(value) != 3 or not all(isinstance(n, int) and 0 < n <= MOST_WORKGROUP for n in value):
        raise InputError(f"the metadata is damaged: {key} is {_shown(value)}")
    return value[0], value[1], value[2]


def _argument(kernel: str, said: dict[str, Any], kernarg: int) -> Argument:
    made = Argument(
        name=_word(said, ".name", ""),
        offset=_number(said, ".offset", MOST_KERNARG),
        size=_number(said, ".size", MOST_KERNARG),
        value_kind=_word(said, ".value_kind"),
        type_name=_word(said, ".type_name", ""),
        address_space=_word(said, ".address_space", ""),
    )
    if made.offset + made.size > kernarg:
        raise InputError(
            f"argument {quoted(made.name or made.value_kind)} of kernel {quoted(kernel)} ends at"
            f" byte {made.offset + made.size} of an argument segment of {kernarg}"
        )
    return made
