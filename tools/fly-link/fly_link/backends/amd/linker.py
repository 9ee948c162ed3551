"""`link` makes a HSACO from objects with LLVM's `ld.lld`.

Its own checks run first, and their errors say more than the linker's: what defines a missing
symbol, which two objects do not match. Other errors are ld.lld's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fly_common.artifact import OBJECT, Artifact
from fly_common.errors import InputError, MissingError, UsageError

if TYPE_CHECKING:
    from fly_common.diagnostics import Warn
    from fly_common.programs.process import Done

    from fly_link.backends.amd.inputs import Input
    from fly_link.options import Options

# clang's flags for this target, without its -plugin-opt, which is for bitcode. ld.lld takes longer
# to start a thread for each processor than to link a few kernels; the result does not depend on it.
FLAGS = ("-shared", "--no-undefined", "--threads=1")


def link(objects: Sequence[bytes], names: Sequence[str], warn: Warn | None = None) -> bytes:
    """Links `objects` into a HSACO. See `fly_link.linker.link`."""
    from fly_host.section import SECTION
    from fly_image.elf import Elf

    from fly_link.backends.amd import inputs, undefined

    read = inputs.read(objects, names)
    inputs.check_targets(read)
    inputs.check_duplicates(read)
    undefined.check(read)
    manifest = inputs.the_manifest(read)
    result = _linked(read)
    section = Elf.parse(result).section(SECTION)
    if manifest != (section.data if section else b""):
        raise InputError(
            "the linker lost the host program",
            hint=f"its section {SECTION} must not be changed",
        )
    if warn and not manifest and not any(item.kernels for item in read):
        warn("the HSACO defines no kernel: nothing can be launched")
    return result


# The arguments for a single object: it is read from standard input.
ARGUMENTS = (*FLAGS, "-o", "-", "/dev/stdin")


def _linked(read: Sequence[Input]) -> bytes:
    """Returns ld.lld's image. It is made without ld.lld if it can be."""
    from fly_link.backends.amd import in_process

    if len(read) > 1:
        return _run(read)
    own = in_process.linked(read[0])
    if own is None:
        made = _run(read)
        in_process.learn(read[0], made)
        return made
    if in_process.is_checked() and own != _run(read):
        raise InputError(
            "the image that is linked in process differs from ld.lld's",
            hint=f"{in_process.VARIABLE}=0 leaves every object to ld.lld",
        )
    return own


def _run(read: Sequence[Input]) -> bytes:
    """Runs ld.lld, which opens its inputs by name. They are passed as standard input or as files in
    memory: no temporary folder is needed, the result contains no path, and nothing is left behind
    even after kill -9."""
    from fly_common.programs import toolchain

    if len(read) == 1:
        held = {"/dev/stdin": read[0].name}
        done = toolchain.run_program("ld.lld", ARGUMENTS, read[0].data)
    else:
        held, done = _run_several(read)
    if done.returncode:
        raise _refused(done.stderr.decode(errors="replace"), held)
    return done.stdout


def _run_several(read: Sequence[Input]) -> tuple[dict[str, str], Done]:
    """Returns ld.lld's result, and the names that it saw mapped to the objects' own names."""
    from fly_common.programs import process, toolchain

    held: dict[str, str] = {}
    handles: list[int] = []
    try:
        for item in read:
            handle = process.in_memory(item.data)
            handles.append(handle)
            held[f"/proc/self/fd/{handle}"] = item.name
        arguments = [*FLAGS, "-o", "-", *held]
        return held, toolchain.run_program("ld.lld", arguments, None, pass_fds=handles)
    except OSError as error:
        raise MissingError(f"not enough memory for the objects: {error.strerror}") from None
    finally:
        for handle in handles:
            os.close(handle)


def _refused(stderr: str, held: dict[str, str]) -> InputError:
    """Returns ld.lld's first error, with the objects' own names."""
    for path, name in sorted(held.items(), key=lambda item: -len(item[0])):
        stderr = stderr.replace(path, name)
    match = re.search(r"^ld\.lld: error: (.+(?:\n>>> .+)*)", stderr, re.MULTILINE)
    what = match[1].replace("\n>>>", ";") if match else stderr.strip() or "no reason given"
    return InputError(f"ld.lld: {what}")


class Lld:
    """The `fly_link.backends.interface.Linker` of the backend `rocm`."""

    reads: tuple[Artifact, ...] = (OBJECT,)

    def link(
        self,
        objects: Sequence[bytes],
        names: Sequence[str],
        options: Options,
        warn: Warn | None,
    ) -> bytes:
        if options.emit != "image" or options.flags:
            what = f"--emit {options.emit}" if options.emit != "image" else "--ptxas"
            raise UsageError(f"{what} is for NVIDIA's GPUs, and {names[0]} is not PTX")
        return link(objects, names, warn)

    def fingerprint(self, options: Options) -> str:
        from fly_store import identity

        return f"fly-link 1 {' '.join(FLAGS)} {identity.program('ld.lld')}"

    def ahead(self) -> tuple[str, Sequence[str]] | None:
        from fly_common.programs import toolchain

        from fly_link.backends.amd import in_process

        if in_process.expected():
            return None
        return toolchain.find_program("ld.lld"), ARGUMENTS


LLD = Lld()
