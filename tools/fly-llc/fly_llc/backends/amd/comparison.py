"""`--diff`: compares each kernel's code with and without the insertions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_common.record import replace
from fly_image.amd.metadata import metadata
from fly_image.elf import Elf

from fly_llc import stage
from fly_llc.codegen import assembly

if TYPE_CHECKING:
    from fly_llc.codegen.options import Options

# The rows of the table, by prefixes of instruction names.
CLASSES = (
    ("VALU", ("v_",)),
    ("MFMA, WMMA", ("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")),
    ("SALU", ("s_",)),
    ("LDS", ("ds_",)),
    ("memory", ("global_", "flat_", "buffer_", "tbuffer_", "scratch_", "s_load", "s_buffer_load")),
    ("waits", ("s_wait",)),
    ("s_nop", ("s_nop",)),
    ("branches", ("s_branch", "s_cbranch")),
)
COUNTED = (
    ("VGPRs", ".vgpr_count"),
    ("AGPRs", ".agpr_count"),
    ("SGPRs", ".sgpr_count"),
    ("spilled VGPRs", ".vgpr_spill_count"),
    ("spilled SGPRs", ".sgpr_spill_count"),
    ("LDS bytes", ".group_segment_fixed_size"),
    ("private bytes", ".private_segment_fixed_size"),
)


def report(source: bytes, made: bytes, options: Options, name: str) -> str:
    """Returns the table. `made` is the output with insertions. If it is not an object, the source
    is compiled once more to one."""
    plain = replace(
        options,
        emit="obj",
        insert=(),
        replace=(),
        disable=(),
        dump=None,
        stop_after=None,
        stop_before=None,
    )
    if options.emit != "obj":
        woven = replace(
            plain, insert=options.insert, replace=options.replace, disable=options.disable
        )
        made = stage.compile(source, woven, name)
    before = stage.compile(source, plain, name)
    if before == made:
        return "diff: nothing changed: the object has the same bytes"
    first, second = measure(before), measure(made)
    lines = []
    for kernel in dict.fromkeys([*first, *second]):
        old, new = first.get(kernel, {}), second.get(kernel, {})
        rows = [
            (what, old.get(what, 0), new.get(what, 0))
            for what in dict.fromkeys([*old, *new])
            if old.get(what) or new.get(what)
        ]
        changed = sum(a != b for _, a, b in rows)
        lines.append(f"diff: {kernel}{'' if changed else ': counts are the same, the code is not'}")
        lines += [
            f"  {what:16} {a:7} → {b:7}  {_change(a, b)}".rstrip() for what, a, b in rows if a != b
        ]
        same = [f"{what} {a}" for what, a, b in rows if a == b]
        lines += [f"  unchanged: {', '.join(same)}"] if same else []
    return "\n".join(lines)


def _change(old: int, new: int) -> str:
    sign = f"{new - old:+d}"
    return f"{sign} ({(new - old) / old:+.1%})" if old else sign


def measure(obj: bytes) -> dict[str, dict[str, int]]:
    """Returns, for each function of an object, the bytes of code and the instructions by class, and
    for kernels the registers and memory in their metadata."""
    elf = Elf.parse(obj)
    said: dict[str, dict[str, Any]] = {
        kernel[".name"]: kernel for kernel in metadata(elf).get("amdhsa.kernels", ())
    }
    symbols = elf.symbols
    found: dict[str, dict[str, int]] = {}
    for name, lines in assembly.functions(obj).items():
        row = {"code bytes": symbols[name].size if name in symbols else 0}
        row["instructions"] = len(lines)
        row |= {what: 0 for what, _ in CLASSES}
        for line in lines:
            row[_class(line)] += 1
        row |= {what: int(said[name].get(key, 0)) for what, key in COUNTED if name in said}
        found[name] = row
    return found


def _class(line: str) -> str:
    """Returns the class of an instruction, by the longest matching prefix."""
    fitting = [
        (len(prefix), what)
        for what, prefixes in CLASSES
        for prefix in prefixes
        if line.startswith(prefix)
    ]
    return max(fitting)[1] if fitting else "VALU"
