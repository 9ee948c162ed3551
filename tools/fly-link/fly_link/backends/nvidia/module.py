"""The PTX to link, parsed once, and the checks before ptxas."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fly_common import artifact
from fly_common.errors import InputError, Place
from fly_common.record import record
from fly_host.section import SECTION
from fly_image.nvidia import entries, ptx
from fly_image.nvidia.program import read_program

# ", debug" in .target makes ptxas compile without optimisation. LLVM writes it where there are line
# tables; -lineinfo takes the lines of optimised code from the same directives.
_DEBUG = re.compile(r"^([ \t]*\.target[ \t]+\w+)[ \t]*,[ \t]*debug\b", re.MULTILINE)
_LINES = re.compile(r"^[ \t]*\.loc[ \t]", re.MULTILINE)


@record
class Module:
    """PTX and its name in messages. `text` is for optimised code; `code` lacks its comments."""

    name: str
    text: str
    code: str
    target: str
    entries: tuple[entries.Entry, ...]
    sections: dict[str, bytes]

    @property
    def has_lines(self) -> bool:
        return _LINES.search(self.code) is not None


def read(objects: Sequence[bytes], names: Sequence[str]) -> Module:
    """Parses the PTX. Raises InputError if it is damaged, or if there is more than one input."""
    for data, name in zip(objects, names, strict=True):
        kind = artifact.identify(data)
        if kind != artifact.PTX:
            artifact.refuse(kind, artifact.PTX, name)
    if len(objects) > 1:
        raise InputError(
            f"{names[0]} and {names[1]} are two PTX modules, and fly-link compiles one at a time",
            hint="link their LLVM IR before code generation: llvm-link -S a.ll b.ll",
        )
    (data,), (name,) = objects, names
    try:
        return _parse(data, name)
    except InputError as error:
        raise InputError(error.message, place=Place(name), hint=error.hint) from None


def _parse(data: bytes, name: str) -> Module:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} is not UTF-8: this is not PTX") from None
    text = _DEBUG.sub(r"\1", text)
    code = entries.without_comments(text)
    target = entries.target(code)
    if target is None:
        raise InputError("the PTX names no .target")
    held = ptx.sections(text)
    declared = entries.entries(code)
    read_program(held.get(SECTION, b""), target, {one.name for one in declared})
    return Module(name, text, code, target, declared, held)
