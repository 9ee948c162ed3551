"""A shared library from images: their host programs, the runtime, the images themselves.

LLVM's opt and llc compile what is LLVM IR, and ld.lld links. The same inputs make the same bytes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from importlib import resources
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from fly_common.errors import FlyError, InputError, MissingError, Place
from fly_common.programs import process, toolchain
from fly_host.native import engine
from fly_host.native.c_interface import function
from fly_host.native.unavailable import Unavailable
from fly_image.limits import limits_of

from fly_link.options import Options
from fly_link.shared import cpu, header, inputs, modules

if TYPE_CHECKING:
    from fly_common.diagnostics import Warn

# Functions of the C library that generated code calls are in these.
NEEDED = ("libc.so.6", "libdl.so.2", "libpthread.so.0")
NEEDED_ON_CPU = ("libm.so.6",)
FLAGS = [
    *("-shared", "-z", "now", "-z", "noexecstack", "-z", "nodelete", "--build-id=none"),
    *("--no-dynamic-linker", "--hash-style=gnu", "--no-as-needed"),
]


class Library(NamedTuple):
    """A library, and the header that declares its functions."""

    data: bytes
    header: str


def make(
    objects: Sequence[bytes],
    names: Sequence[str],
    *,
    for_cpu: bool = False,
    options: Options | None = None,
    backend: str | None = None,
    warn: Warn | None = None,
) -> Library:
    """Makes a library of `objects`: what fly-llc or fly-link made, one for each target. `for_cpu`:
    the kernels are also compiled for the host's processor.

    InputError for inputs that can't be in a library, or not in the same one; MissingError for a
    program that is not found, or a host for which there are no libraries.
    """
    options = options or Options()
    with process.limited(options.timeout):
        held = inputs.images(objects, names, options, backend, warn)
        _check_name(held[0])
        kernels = _for_cpu(held) if for_cpu else None
        parts = _compiled(held, kernels)
        program = held[0].program
        targets = modules.listed(held, kernels)
        return Library(_linked(program.entry, parts, kernels), header.text(program, targets))


def _for_cpu(held: Sequence[inputs.Held]) -> cpu.Kernels:
    if _target()[0] != cpu.TRIPLE:
        raise MissingError("--cpu makes code for x86-64 with Linux, and this is another host")
    return cpu.compile(held)


def _compiled(held: Sequence[inputs.Held], kernels: cpu.Kernels | None) -> list[bytes]:
    """The objects of a library."""
    found: dict[str, str] = {}  # text of a program → its name
    programs: list[str] = []
    pairs = [(one, False) for one in held]
    if kernels is not None:
        pairs.append((kernels.held, True))
    for one, checked in pairs:
        name = f"fly_program_{len(found)}"
        text = _program(name, one, checked)
        programs.append(found.setdefault(text.replace(name, "fly_program"), name))
    texts = [text.replace("@fly_program(", f"@{name}(") for text, name in found.items()]
    texts.append(modules.functions(held[0].program, programs))
    objects = [_object(text, optimise=True) for text in texts]
    objects.append(_object(modules.tables(held, kernels)))
    objects.append(_object(runtime("library")))
    if kernels is not None:
        objects += [_object(runtime("cpu")), kernels.object]
    return objects


def _program(name: str, held: inputs.Held, checked: bool) -> str:
    try:
        limits = limits_of(held.program, held.image)
        return function.write(name, held.program, limits, checked=checked)
    except Unavailable as error:
        raise InputError(str(error), place=Place(held.name)) from None


def _check_name(held: inputs.Held) -> None:
    """InputError for a function that would stand for one of the C library in a whole program."""
    entry = held.program.entry
    for library in (*NEEDED, *NEEDED_ON_CPU):
        try:
            known = hasattr(ctypes.CDLL(library), entry)
        except OSError:
            continue
        if known:
            raise InputError(
                f"the host function has the name of a function of the C library, {entry}",
                place=Place(held.name),
                hint="give it another one",
            )


def runtime(name: str) -> str:
    """The LLVM IR of a part of the runtime."""
    return (resources.files("fly_link.shared") / "runtime" / f"{name}.ll").read_text()


def _target() -> tuple[str, str]:
    try:
        return engine.target()
    except Unavailable as error:
        raise MissingError(f"{error}: libraries are for Linux on x86-64 and AArch64") from None


def _object(text: str, optimise: bool = False) -> bytes:
    triple, processor = _target()
    words = [f"-mtriple={triple}", f"-mcpu={processor}", "-o", "-", "-"]
    data = text.encode()
    if optimise:
        data = _run("opt", ["-O1", *words], data)
    return _run("llc", ["-O2", "-filetype=obj", "-relocation-model=pic", *words], data)


def _run(program: str, words: list[str], data: bytes = b"") -> bytes:
    done = toolchain.run_program(program, words, data)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise FlyError(
            f"{program} does not accept a part of the library: {said[0] if said else ''}",
            hint="this is a bug in fly-link or in this LLVM; LLVM 22 is known to work",
        )
    return done.stdout


def _linked(entry: str, parts: Sequence[bytes], kernels: cpu.Kernels | None) -> bytes:
    exported = "; ".join((entry, f"{entry}_error", f"{entry}_targets", f"{entry}_abi"))
    with TemporaryDirectory(prefix="fly-link-") as folder:

        def file(name: str, data: bytes) -> str:
            path = os.path.join(folder, name)
            with open(path, "wb") as stream:
                stream.write(data)
            return path

        script = file("exported", f"{{ global: {exported}; local: *; }};\n".encode())
        given = [file(f"{number}.o", part) for number, part in enumerate(parts)]
        # Libraries without functions, which make the loader look for those of this name.
        empty = file("empty.o", _object(""))
        stubs = []
        for name in (*NEEDED, *(NEEDED_ON_CPU if kernels else ())):
            stubs.append(os.path.join(folder, name))
            _run("ld.lld", ["-shared", "-soname", name, "-o", stubs[-1], empty])
        result = os.path.join(folder, "library.so")
        _run("ld.lld", [*FLAGS, "--version-script", script, "-o", result, *given, *stubs])
        with open(result, "rb") as stream:
            return stream.read()
