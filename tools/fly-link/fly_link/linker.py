"""The stage: `link` makes a HSACO of objects by running LLVM's `ld.lld`.

The checks come first, and say what the linker would not: who defines a missing symbol, which two
objects don't fit. ld.lld's own refusals are the net below.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fly_common.errors import InputError, MissingError

if TYPE_CHECKING:
    from fly_common.process import Done

    from fly_link.inputs import Input

# What clang passes for this target, without its -plugin-opt, which is for bitcode.
FLAGS = ("-shared", "--no-undefined")


def link(
    objects: Sequence[bytes],
    names: Sequence[str] | None = None,
    *,
    warn: Callable[[str], None] | None = None,
) -> bytes:
    """The HSACO that holds `objects`; `names` stand for them in messages. `warn` is given what is
    doubtful but no error, a line each.

    InputError where an object is none, where two don't fit each other (target, symbol defined
    twice, two launch plans), where a symbol is defined by none, and where the launch plan is
    damaged or does not fit the code. MissingError where there is no LLVM.
    """
    from fly_host import plan
    from fly_image.elf import Elf

    from fly_link import inputs, undefined

    read = inputs.read(objects, names or _numbered(len(objects)))
    inputs.check_targets(read)
    inputs.check_duplicates(read)
    undefined.check(read)
    manifest = inputs.the_manifest(read)
    result = _run(read)
    section = Elf.parse(result).section(plan.SECTION)
    if manifest != (section.data if section else b""):
        raise InputError(
            "the linker lost the launch plan",
            hint=f"its section {plan.SECTION} must not be changed",
        )
    if warn and not any(item.kernels for item in read):
        warn("the HSACO defines no kernel: nothing can be launched")
    return result


def fingerprint() -> str:
    """What this stage's result depends on besides its input."""
    from fly_store import identity

    return f"fly-link 1 {' '.join(FLAGS)} {identity.program('ld.lld')}"


# Of one object: it is read from the standard input, and the result written to the output.
ARGUMENTS = (*FLAGS, "-o", "-", "/dev/stdin")


def _run(read: Sequence[Input]) -> bytes:
    """ld.lld opens its inputs by name. They are given as its standard input or as files in memory:
    no folder is needed, no name of ours reaches the result, and nothing is left behind even by
    kill -9."""
    from fly_common import toolchain

    if len(read) == 1:
        held = {"/dev/stdin": read[0].name}
        done = toolchain.run_program("ld.lld", ARGUMENTS, read[0].data)
    else:
        held, done = _run_several(read)
    if done.returncode:
        raise _refused(done.stderr.decode(errors="replace"), held)
    return done.stdout


def _run_several(read: Sequence[Input]) -> tuple[dict[str, str], Done]:
    """The names that ld.lld knows the objects by, with ours, and what it did."""
    from fly_common import process, toolchain

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


def _numbered(count: int) -> list[str]:
    return ["<stdin>"] if count == 1 else [f"object {n + 1}" for n in range(count)]


def _refused(stderr: str, held: dict[str, str]) -> InputError:
    """ld.lld's first error, with the objects by their own names."""
    for path, name in sorted(held.items(), key=lambda item: -len(item[0])):
        stderr = stderr.replace(path, name)
    match = re.search(r"^ld\.lld: error: (.+(?:\n>>> .+)*)", stderr, re.MULTILINE)
    what = match[1].replace("\n>>>", ";") if match else stderr.strip() or "no reason given"
    return InputError(f"ld.lld: {what}")
