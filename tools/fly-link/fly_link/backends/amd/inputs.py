"""The objects to link, parsed once, and the checks among them."""

from __future__ import annotations

from collections.abc import Sequence

from fly_common import artifact
from fly_common.errors import InputError, Place
from fly_common.record import record
from fly_host import text
from fly_host.section import SECTION
from fly_image.elf import ET_REL, SHT_SYMTAB, Elf, Symbol

KERNEL_DESCRIPTOR = ".kd"  # suffix of the symbol that marks a function as a kernel
UNDEFINED = 0  # the section of a symbol that is defined elsewhere
LOCAL, GLOBAL = 0, 1  # symbol bindings

# The bit position of each setting in e_flags, two bits each: 2 is off, 3 is on, less is any (LLVM's
# AMDGPU guide, "AMDGPU e_flags for code object V4 and above").
_SETTINGS = {"xnack": 8, "sramecc": 10}


@record
class Input:
    """An object and its name in messages. `symbols` are in the order of its symbol table."""

    name: str
    data: bytes
    elf: Elf
    symbols: tuple[Symbol, ...]

    @property
    def manifest(self) -> bytes:
        """The text of its host program, empty where it has none."""
        return b"".join(part.data for part in self.elf.sections if part.name == SECTION)

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(
            symbol.name.removesuffix(KERNEL_DESCRIPTOR)
            for symbol in self.symbols
            if symbol.name.endswith(KERNEL_DESCRIPTOR) and symbol.section != UNDEFINED
        )


def read(objects: Sequence[bytes], names: Sequence[str]) -> tuple[Input, ...]:
    """Parses the objects. Raises InputError for the first that is damaged or not an object."""
    inputs = []
    for data, name in zip(objects, names, strict=True):
        kind = artifact.identify(data)
        if kind != artifact.OBJECT:
            artifact.refuse(kind, artifact.OBJECT, name)
        try:
            parsed = Elf.parse(data)
            tables = [part for part in parsed.sections if part.type == SHT_SYMTAB]
            symbols = tuple(symbol for table in tables for symbol in parsed.table(table))
            parsed.processor  # noqa: B018  (refuses what it does not know)
        except InputError as error:
            raise InputError(error.message, place=Place(name), hint=error.hint) from None
        if parsed.type != ET_REL:
            raise InputError("this ELF file is not a relocatable object", place=Place(name))
        inputs.append(Input(name, data, parsed, symbols))
    return tuple(inputs)


def check_targets(inputs: Sequence[Input]) -> None:
    """Checks that all objects are for one processor. A setting (xnack, sramecc) may be unspecified
    in some objects, but must not be on in one and off in another."""
    first, *others = inputs
    for other in others:
        if other.elf.processor != first.elf.processor:
            raise InputError(
                f"{first.name} is code for {first.elf.processor}, {other.name} for "
                f"{other.elf.processor}",
                hint="a HSACO contains code for one GPU: compile everything with the same --target",
            )
    for feature, shift in _SETTINGS.items():
        says = {item.elf.flags >> shift & 3: item for item in reversed(inputs)}
        if 2 in says and 3 in says:
            raise InputError(f"{says[3].name} needs {feature} on, {says[2].name} needs it off")


def check_duplicates(inputs: Sequence[Input]) -> None:
    """Checks that no strong symbol is defined twice."""
    definer: dict[str, Input] = {}
    for item in inputs:
        for symbol in item.symbols:
            if symbol.bind != GLOBAL or symbol.section == UNDEFINED:
                continue
            name = symbol.name.removesuffix(KERNEL_DESCRIPTOR)
            first = definer.setdefault(symbol.name, item)
            if first is not item:
                raise InputError(
                    f"{name} is defined twice: in {first.name} and in {item.name}",
                    hint="remove one of them, or rename the kernel",
                )


def the_manifest(inputs: Sequence[Input]) -> bytes:
    """Returns the text of the host program; empty if there is none. Raises InputError if there are
    two, or if it is damaged or does not match the code."""
    holders = [item for item in inputs if item.manifest]
    if not holders:
        return b""
    if len(holders) > 1:
        raise InputError(
            f"{holders[0].name} and {holders[1].name} each contain a host program, but a HSACO"
            " can only have one",
            hint="link each into its own HSACO, or remove one program with"
            f" llvm-objcopy --remove-section={SECTION}",
        )
    (holder,) = holders
    try:
        read = text.read(holder.manifest)
    except InputError as error:
        raise InputError(error.message, place=Place(holder.name), hint=error.hint) from None
    target, _, _ = read.target.partition(":")
    if target != holder.elf.processor:
        raise InputError(
            f"the host program is for {target}, but the code is for {holder.elf.processor}",
            place=Place(holder.name),
            hint="fly-opt-py --target sets both; no later stage may change it",
        )
    kernels = {name for item in inputs for name in item.kernels}
    for launch in read.launches:
        if launch.kernel not in kernels:
            raise InputError(
                f"the host program launches the kernel {launch.kernel}, which no object defines",
                place=Place(holder.name),
                hint="link the object that defines it, or make sure that no pass removes it",
            )
    return holder.manifest
