"""The module for the host: the kernels' IR with the runtime.

What changes: triple and attributes; calling conventions; variables of shared memory, which are
filled before each block; functions of NVIDIA and CUDA's library become the runtime's. What is added
to functions is in `body`. Address spaces stay: the host has the same addresses in all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fly_common.errors import InputError
from fly_common.quoting import quoted

from fly_cpu import runtime, variables
from fly_cpu.body import Body, Site
from fly_cpu.locations import locations
from fly_cpu.operations import conversions, intrinsics, matrices, warp, warp_products
from fly_cpu.operations.generic import GENERIC
from fly_cpu.runtime import sanitizer
from fly_cpu.state import expanded
from fly_cpu.text import closing, split, take_type
from fly_cpu.variables import DYNAMIC, READABLE, SHARED, WRITABLE, Variable

TRIPLE = "x86_64-unknown-linux-gnu"
_LAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
LARGEST_SHARED = 256 << 10  # bytes reserved for dynamic shared memory
GAP = 256  # bytes between variables of shared memory

# Functions that are not intrinsics, and what is called in their place.
_KNOWN = {
    "vprintf": "define internal i32 @fly.known.vprintf(ptr %a, ptr %b) alwaysinline nounwind {\n"
    "  %r = call i32 @fly.print(ptr %a, ptr %b)\n  ret i32 %r\n}\n",
    "__nvvm_reflect": "define internal i32 @fly.known.__nvvm_reflect(ptr %a) alwaysinline nounwind"
    " {\n  ret i32 0\n}\n",
    "__assertfail": "define internal void @fly.known.__assertfail(ptr %a, ptr %b, i32 %c, ptr %d,"
    " i64 %e, i32 %site) alwaysinline nounwind {\n  call void @fly.assert(ptr %a, i32 %site)\n"
    "  ret void\n}\n",
}
# The sanitizer's reports show the stack, for which unwinding has to be possible.
_UNWOUND = re.compile(r"(?<= )nounwind(?=[ \n])")
_DROPPED = ("attributes #", "source_filename", "target ", "$", "; ", "uselistorder", "!nvvm")
_GLOBAL = re.compile(
    r"(?P<name>@(?:[\w.$-]+|\"[^\"]+\")) = (?P<words>.*?)(?:addrspace\((?P<space>\d+)\) )?"
    r"(?:externally_initialized )?(?P<kind>global|constant) (?P<rest>.*)"
)
_SKIPPED = frozenset(
    (
        *("internal", "private", "weak", "weak_odr", "linkonce", "linkonce_odr", "external"),
        *("available_externally", "common", "extern_weak", "dso_local", "dso_preemptable"),
        *("hidden", "protected", "default", "unnamed_addr", "local_unnamed_addr", "noundef"),
        *("nonnull", "zeroext", "signext", "noalias", "inreg", "ptx_device", "fastcc", "coldcc"),
        *("ccc", "spir_func"),
    )
)


@dataclass
class Module:
    """What is collected while the lines are read."""

    # The parameters' types, and the types of what is passed as a copy in memory.
    kernels: dict[str, tuple[tuple[str, str | None], ...]] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)  # definitions of functions that are called
    atomics: bool = False  # on memory that blocks share
    sanitized: bool = False  # by AddressSanitizer
    strict: bool = False  # races on shared memory are found
    # Variables that it knows: see `sanitizer.registration`.
    registered: list[tuple[str, str, int]] = field(default_factory=list)

    def site(self, what: str, function: str, location: int | None) -> int:
        self.sites.append(Site(what, function, location))
        return len(self.sites) - 1


def rewritten(
    text: str,
    offsets: Mapping[str, Sequence[int]],
    sanitized: bool = False,
    strict: bool = False,
) -> str:
    """Returns the module for the host. `offsets` are those of each kernel's arguments in the packed
    ones. InputError names what a host cannot run. `sanitized`: see `runtime.sanitizer`,
    `strict`: `runtime.races`."""
    module = Module(sanitized=sanitized, strict=strict)
    lines: list[str] = []
    source = iter(text.splitlines())
    metadata: list[str] = []
    for line in source:
        if not line or line.startswith(_DROPPED):
            continue
        if line.startswith("module asm"):
            _assembly(line)
        elif line.startswith("@"):
            lines += _global(module, line)
        elif line.startswith("declare "):
            _declare(module, line)
        elif line.startswith("define "):
            lines += _function(module, line, source)
        elif line.startswith("!"):
            metadata.append(
                re.sub(r"\b(?:DebugDirectivesOnly|LineTablesOnly)\b", "FullDebug", line)
            )
        elif line.startswith("%"):
            lines.append(line)
        else:
            raise InputError(f"the LLVM IR has a line that the device cpu does not know: {line}")
    missing = [name for name in offsets if name not in module.kernels]
    if missing:
        raise InputError(f"the section .fly.llvm has no kernel {quoted(missing[0])}")
    whole = _assembled(module, lines, metadata, offsets)
    return _UNWOUND.sub("nounwind uwtable", whole) if sanitized else whole


def _assembly(line: str) -> None:
    """Comments are sections of the PTX."""
    content = line.partition('"')[2]
    if not content.startswith("//"):
        raise InputError(f"assembly of the module can't run on the host: {quoted(content)}")


def _global(module: Module, line: str) -> Iterable[str]:
    if line.startswith("@llvm."):
        return ()
    match = _GLOBAL.fullmatch(line)
    if match is None:
        raise InputError(f"the device cpu does not know this variable: {quoted(line)}")
    name, space, rest = match["name"], match["space"] or "0", match["rest"]
    kind, value = take_type(rest)
    value = re.sub(r", (?:section|comdat|partition|!\w+)\b.*?(?=, |$)", "", value)
    align = re.search(r", align (\d+)", value)
    external = "external" in match["words"].split()
    if space == "3":
        if external:
            return _dynamic(module, name, kind, align[1] if align else "16")
        module.variables.append(Variable(name, SHARED, size_of_whole(kind)))
        end = f", align {align[1]}" if align else ""
        # The space behind it keeps the next variable away, so that an access past the end faults.
        whole = f"{{ {kind}, [{GAP} x i8] }}"
        if module.sanitized:
            module.registered.append((name, kind, 3))
            whole = sanitizer.padded(kind)
            end = f", align {max(32, int(align[1]) if align else 0)}"
        return (f"{name} = internal addrspace(3) global {whole} zeroinitializer{end}",)
    if external:
        raise InputError(f"the variable {name[1:]} is not in the module")
    constant = match["kind"] == "constant" or space == "4"
    variable = Variable(name, READABLE if constant else WRITABLE, size_of_whole(kind), int(space))
    module.variables.append(variable)
    where = f"addrspace({space}) " if space != "0" else ""
    if module.sanitized:
        module.registered.append((name, kind, int(space)))
        initial = split(value)[0]
        zone = sanitizer.padded(kind)
        value = f"{{ {kind} {initial}, [{sanitizer.REDZONE} x i8] zeroinitializer, i64 0 }}"
        value += f", align {max(32, int(align[1]) if align else 0)}"
        return (f"{name} = internal {where}{match['kind']} {zone} {value}",)
    return (f"{name} = internal {where}{match['kind']} {kind} {value}",)


def _dynamic(module: Module, name: str, kind: str, align: str) -> Iterable[str]:
    """All arrays of dynamic shared memory are the same memory."""
    first = next((one for one in module.variables if one.kind == DYNAMIC), None)
    if first is not None:
        return (f"{name} = internal alias {kind}, ptr addrspace(3) {first.name}",)
    size = str(LARGEST_SHARED)
    module.variables.append(Variable(name, DYNAMIC, size))
    array = f"[{size} x i8] zeroinitializer"
    return (f"{name} = internal addrspace(3) global {array}, align {max(16, int(align))}",)


def size_of_whole(kind: str) -> str:
    return f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"


def _declare(module: Module, line: str) -> None:
    match = re.search(r"@([\w.$-]+|\"[^\"]+\")\(", line)
    assert match, line
    name = match[1]
    if name.startswith("llvm.nvvm."):
        short = name.removeprefix("llvm.nvvm.")
        found = intrinsics.together().get(short) or intrinsics.alone().get(short)
        if found is None:
            raise InputError(
                f"the device cpu has no {name}",
                hint="the instruction needs a GPU: --device cuda",
            )
        module.used[name] = found
    elif name in _KNOWN:
        module.used[name] = _KNOWN[name]
    elif not GENERIC.match(name):  # LLVM declares its own
        what = "intrinsic" if name.startswith("llvm.") else "function"
        raise InputError(f"the device cpu does not know the {what} {name}, which is called")


def _function(module: Module, line: str, source: Iterator[str]) -> list[str]:
    match = re.search(r"@(?:[\w.$-]+|\"[^\"]+\")\(", line)
    assert match, line
    name, opening = match[0][:-1], match.end() - 1
    end = closing(line, opening)
    words = line[len("define ") : match.start()].split(" ")
    is_kernel = "ptx_kernel" in words
    kept = " ".join(word for word in words if word not in _SKIPPED and word != "ptx_kernel")
    result = re.sub(
        r"^(?:(?:range|nofpclass|align|dereferenceable)\([^)]*\) |align \d+ )+", "", kept
    )
    parameters = split(line[opening + 1 : end])
    kinds, given = [], []
    for parameter in parameters:
        kind, rest = take_type(parameter)
        value = rest.rpartition(" ")[2]
        passed = re.findall(r"\b(?:byval|sret)\((?:[^()]|\([^()]*\))*\)", rest)
        copied = passed[0].partition("(")[2][:-1] if passed and is_kernel else None
        kinds.append((kind, copied))
        extra = "" if is_kernel or not passed else f" {passed[0]}"
        given.append(f"{kind}{extra} {value}")
    location = re.search(r" (!dbg !\d+)", line[end:])
    plain = name[1:].strip('"')
    if is_kernel:
        module.kernels[plain] = tuple(kinds)
    head = f"define internal {result.strip()} {name}({', '.join(given)})"
    head += " noinline nounwind" if is_kernel else " nounwind"
    head += " sanitize_address" if module.sanitized else ""
    body = Body(module, plain)
    lines = [f"{head}{' ' + location[1] if location else ''} {{"]
    for inside in source:
        if inside == "}":
            break
        lines += body.line(inside, source)
    return [*lines, "}"]


def _assembled(
    module: Module, lines: list[str], metadata: list[str], offsets: Mapping[str, Sequence[int]]
) -> str:
    parts = [f'target datalayout = "{_LAYOUT}"', f'target triple = "{TRIPLE}"', runtime.assembly()]
    parts += [
        runtime.text(module.sanitized, module.strict),
        warp.shared(),
        conversions.library(),
        expanded(variables.fill(module.variables)),
        *([expanded(variables.is_shared(module.variables))] if module.strict else []),
    ]
    if any("@fly.shared_at" in text or "@fly.operand" in text for text in module.used.values()):
        parts += [matrices.library(), variables.shared_at(module.variables)]
    parts += [warp_products.needed(name.removeprefix("llvm.nvvm.") for name in module.used)]
    parts += [f"@fly.cache = internal global [{len(module.sites) + 1} x i64] zeroinitializer"]
    parts += [*lines, *dict.fromkeys(module.used.values())]
    entries = [_entry(number, name, module, offsets) for number, name in enumerate(offsets)]
    parts += entries
    names = ", ".join(f"ptr @fly.entry.{number}" for number in range(len(entries)))
    parts += [f"@fly_entries = protected constant [{len(entries)} x ptr] [{names}]"]
    parts += [
        variables.table(module.variables),
        _notes(module, offsets, metadata),
        "declare i32 @clock_gettime(i32, ptr)",
    ]
    if module.sanitized:
        parts += [sanitizer.registration(module.registered)]
    return "\n".join([*parts, *metadata]) + "\n"


def _entry(number: int, name: str, module: Module, offsets: Mapping[str, Sequence[int]]) -> str:
    """A function that takes the arguments from packed ones."""
    kinds, places = module.kernels[name], offsets[name]
    if len(kinds) != len(places):
        raise InputError(
            f"kernel {quoted(name)} has {len(places)} parameters, but {len(kinds)} in .fly.llvm"
        )
    lines, given = [], []
    for n, ((kind, copied), at) in enumerate(zip(kinds, places, strict=True)):
        lines.append(f"  %a{n} = getelementptr i8, ptr %arguments, i64 {at}")
        if copied is not None:
            # Each thread has a copy of its own.
            lines.append(f"  %c{n} = alloca {copied}, align 64")
            given_copy = f"ptr %c{n}, ptr %a{n}, i64 {size_of_whole(copied)}, i1 false"
            lines.append(f"  call void @llvm.memcpy.p0.p0.i64({given_copy})")
            cast = "bitcast" if kind == "ptr" else "addrspacecast"
            lines.append(f"  %v{n} = {cast} ptr %c{n} to {kind}")
            given.append(f"{kind} %v{n}")
        else:
            lines.append(f"  %v{n} = load {kind}, ptr %a{n}, align 1")
            given.append(f"{kind} %v{n}")
    symbol = f"@{name}" if re.fullmatch(r"[\w.$-]+", name) else f'@"{name}"'
    body = "\n".join([*lines, f"  call void {symbol}({', '.join(given)})", "  ret void"])
    return f"define internal void @fly.entry.{number}(ptr %arguments) nounwind {{\n{body}\n}}"


def _notes(module: Module, offsets: Mapping[str, Sequence[int]], metadata: list[str]) -> str:
    """What Python needs to know of the library, as JSON in it."""
    wanted = {one.location for one in module.sites if one.location is not None}
    found = locations(metadata, wanted)
    content = {
        "kernels": list(offsets),
        "variables": [[one.name[1:], one.kind] for one in module.variables],
        "sites": [[one.what, one.function, found.get(one.location or 0)] for one in module.sites],
        "in_order": module.atomics or any(one.kind == WRITABLE for one in module.variables),
    }
    data = json.dumps(content).encode() + b"\0"
    text = "".join(f"\\{byte:02X}" for byte in data)
    return f'@fly_notes = protected constant [{len(data)} x i8] c"{text}"'
