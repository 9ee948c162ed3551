"""The handler library: generated from the semantics tables, cached, and loaded.

    semantics tables → LLVM IR (four modules) → llc, … → ld.lld -shared → handlers-<key>-<cpu>.so

The key is a digest of the generator's sources and of LLVM's identity, so nothing is generated to
find out whether the library exists. The bytes loaded are the bytes verified (`built_library`).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from fly_common import paths
from fly_common.errors import FlyError, MissingError, UsageError
from fly_common.programs import process, toolchain
from fly_store import built_library, identity

MODULES = 4  # the number of llc processes that run in parallel
LEVELS = ("x86-64-v3", "x86-64-v4")

# Flags of processors of each level (x86-64 psABI, "micro-architecture levels"), as /proc/cpuinfo
# spells them; `abm` includes LZCNT.
NEEDS = {
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}


@dataclass(frozen=True)
class Library:
    """The loaded library: handler addresses by name, and the grid driver. `path` is its place in
    the cache, if it could be stored."""

    path: Path
    handlers: dict[str, int]
    run: ctypes._CFuncPtr  # type: ignore[name-defined]
    cpu: str


@functools.cache
def load() -> Library:
    """Builds the library if it is not cached, and loads it. If it can't be stored, it is built for
    this process alone, with a warning: a full disk costs seconds, not the result."""
    cpu = host_level()
    path = library_path(cpu)
    recipe = built_library.Recipe(
        path.name, lambda: build(cpu), "the emulator's instruction handlers", "about 5 s"
    )
    return _open(built_library.obtain(recipe), path, cpu)


def host_level() -> str:
    """Returns the micro-architecture level to generate code for: `FLY_EMULATOR_CPU`, else the
    highest that this processor supports. MissingError below x86-64-v3."""
    flags = _cpu_flags()
    chosen = os.environ.get("FLY_EMULATOR_CPU")
    if chosen and chosen not in LEVELS:
        raise UsageError(
            f"FLY_EMULATOR_CPU={chosen} is not a level that the emulator supports",
            hint=f"set it to {' or '.join(LEVELS)}, or unset it",
        )
    best = None
    for level in LEVELS:
        lacking = [flag for flag in NEEDS[level].split() if flag not in flags]
        if lacking:
            if level == chosen or best is None:
                raise MissingError(
                    f"the emulator needs an {level} processor; this one lacks {', '.join(lacking)}",
                    hint="unset FLY_EMULATOR_CPU"
                    if level == chosen and best
                    else "run on an x86-64 processor with AVX2, FMA and F16C (any since 2015)",
                )
            break
        best = level
        if level == chosen:
            break
    assert best is not None
    return best


@functools.cache
def _cpu_flags() -> frozenset[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


@functools.cache
def library_path(cpu: str) -> Path:
    digest = hashlib.sha256(identity.program("llc").encode())
    here = Path(__file__).parent.parent
    for source in [here / "irgen.py", here / "state.py", Path(__file__)]:
        digest.update(source.read_bytes())
    for source in sorted((here / "semantics").rglob("*.py")):
        digest.update(source.read_bytes())
    return Path(paths.cache_dir()) / f"handlers-{digest.hexdigest()[:32]}-{cpu}.so"


def build(cpu: str) -> bytes:
    """Generates, compiles and links the library. Writes to no permanent file."""
    from fly_run.emulator.semantics import table

    command = ["-O2", "-filetype=obj", "-relocation-model=pic", f"-mcpu={cpu}", "-o", "-", "-"]
    # Handlers pass upper halves of vector registers to each other, so they must not be zeroed.
    command += ["-mtriple=x86_64-unknown-linux-gnu", "-mattr=-vzeroupper,+fast-gather"]
    command.append("-disable-verify")  # a test verifies the same IR
    with contextlib.ExitStack() as ending:
        running = []
        for text in table.modules(MODULES):
            running.append(toolchain.start_program("llc", command, text.encode()))
            ending.callback(running[-1].end)
        objects = []
        for program in running:
            done = program.wait()
            if done.returncode:
                raise FlyError(
                    f"llc does not accept the emulator's handlers: {_first_line(done.stderr)}",
                    hint="this is a bug in the emulator or in this LLVM; LLVM 22 is known to work",
                )
            objects.append(process.in_memory(done.stdout))
            ending.callback(os.close, objects[-1])
        # No undefined symbols: a call of libm or the like would only be found at load time.
        words = ["-shared", "-z", "defs", "-o", "-"]
        words += [f"/proc/self/fd/{handle}" for handle in objects]
        linked = toolchain.run_program("ld.lld", words, None, pass_fds=objects)
    if linked.returncode:
        raise FlyError(f"ld.lld can't link the handlers: {_first_line(linked.stderr)}")
    return linked.stdout


def _first_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else "no message"


def _open(data: bytes, path: Path, cpu: str) -> Library:
    _, name = built_library.in_memory(data)
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise MissingError(
            f"the emulator's handlers can't be loaded: {error}",
            hint="the system may forbid running code that is not in a file (SELinux: execmem)",
        ) from None
    handlers: dict[str, int] = {}
    for number in range(MODULES):
        text = ctypes.string_at(
            ctypes.addressof(ctypes.c_char.in_dll(library, f"fly_names_{number}"))
        )
        names = text.decode().split("\n")
        pointers = (ctypes.c_uint64 * len(names)).in_dll(library, f"fly_handlers_{number}")
        handlers.update(zip(names, pointers, strict=True))
    run = library.fly_run
    run.argtypes, run.restype = [ctypes.c_void_p], ctypes.c_int
    return Library(path, handlers, run, cpu)
