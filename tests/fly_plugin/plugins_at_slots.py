"""Plugins at slots, and the tools that run them."""

from __future__ import annotations

import re

from fly_image.elf import Elf
from plugins import EXAMPLES, Site

VECTOR_ADD = EXAMPLES / "vector_add.py"


def pipe(site: Site, target: str, *flags: str, **env: str) -> dict[str, bytes]:
    """The output of each stage of a whole pipe."""
    made = {"mlir": site.ok("fly-trace", *flags, VECTOR_ADD, **env)}
    made["ll"] = site.ok("fly-opt-py", *flags, "--target", target, input=made["mlir"], **env)
    made["opt.ll"] = site.ok("opt", "-S", "-O3", input=made["ll"], **env)
    made["o"] = site.ok("fly-llc", *flags, input=made["opt.ll"], **env)
    made["image"] = site.ok("fly-link", *flags, input=made["o"], **env)
    return made


def code(data: bytes) -> object:
    """An object or image without the stamps of plugins, and what counts sections; PTX without the
    sections in its comments."""
    if not data.startswith(b"\x7fELF"):
        return re.sub(rb"^[ \t]*//\.fly.*\n", b"", data, flags=re.MULTILINE)
    names = (".fly.plugins", ".shstrtab", ".strtab", ".symtab", "")
    sections = Elf.parse(data).sections
    return {one.name: one.data for one in sections if one.name not in names}
