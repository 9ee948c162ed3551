"""`link` makes a cubin from PTX with NVIDIA's ptxas.

Sections of the PTX, such as the host program, go into the cubin, together with what ptxas says of
the kernels and with their declarations. Without ptxas, the PTX itself is the image: the driver
compiles it when it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fly_common.artifact import PTX, Artifact
from fly_common.errors import InputError

if TYPE_CHECKING:
    from fly_common.diagnostics import Warn

    from fly_link.backends.nvidia.module import Module
    from fly_link.options import Options


class Ptxas:
    """The `fly_link.backends.interface.Linker` of the backend `cuda`."""

    reads: tuple[Artifact, ...] = (PTX,)

    def link(
        self,
        objects: Sequence[bytes],
        names: Sequence[str],
        options: Options,
        warn: Warn | None,
    ) -> bytes:
        from fly_common.programs import cuda_toolkit

        from fly_link.backends.nvidia import module, undefined

        read = module.read(objects, names)
        undefined.check(read)
        if warn and not read.entries:
            warn("the PTX defines no kernel: nothing can be launched")
        if options.emit == "ptx":
            return read.text.encode()
        program = cuda_toolkit.find_optional("ptxas")
        if program is None and options.emit == "image":
            if warn:
                how = cuda_toolkit.HOW_TO_GET["ptxas"]
                warn(f"ptxas was not found; the result is PTX, which the driver compiles; {how}")
            return read.text.encode()
        program = program or cuda_toolkit.find_program("ptxas")
        if options.emit == "sass":
            return _disassembled(program, read, options, warn)
        return _cubin(program, read, options, warn)

    def fingerprint(self, options: Options) -> str:
        from fly_common.programs import cuda_toolkit
        from fly_store import file_digests

        parts = [f"fly-link cuda 1 {options.emit} {options.flags!r}"]
        for name in ("ptxas", "nvdisasm") if options.emit == "sass" else ("ptxas",):
            path = cuda_toolkit.find_optional(name)
            parts.append(f"{name} {file_digests.digest_of(path) if path else 'none'}")
        return " ".join(parts)

    def ahead(self) -> None:
        """ptxas opens its input several times, so that it can't wait for it on a pipe."""
        return None


def _cubin(program: str, read: Module, options: Options, warn: Warn | None) -> bytes:
    from fly_host.section import SECTION
    from fly_image.elf import Elf
    from fly_image.nvidia import resources
    from fly_image.nvidia.cubin import ENTRIES
    from fly_image.nvidia.sections import with_sections

    from fly_link.backends.nvidia import ptxas

    code, said = ptxas.compile(program, read, options.flags, warn)
    declared = "\n".join(one.text for one in read.entries)
    added = {
        **read.sections,
        ENTRIES: declared.encode(),
        resources.SECTION: resources.without_times(said).encode(),
    }
    made = with_sections(code, added)
    section = Elf.parse(made).section(SECTION)
    if (section.data if section else b"") != read.sections.get(SECTION, b""):
        raise InputError(f"the cubin lost the host program, in its section {SECTION}")
    return made


def _disassembled(program: str, read: Module, options: Options, warn: Warn | None) -> bytes:
    """Returns the machine code as text, with lines of the source where the PTX has them."""
    from fly_common.programs import cuda_toolkit

    from fly_link.backends.nvidia import ptxas

    disassembler = cuda_toolkit.find_program("nvdisasm")
    code, _ = ptxas.compile(program, read, options.flags, warn)
    lines = ["--print-line-info"] if read.has_lines else []
    done = ptxas.run(disassembler, ["--print-code", *lines, ptxas.INPUT], code)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise InputError(f"nvdisasm: {' '.join(reason)}")
    return done.stdout


PTXAS = Ptxas()
