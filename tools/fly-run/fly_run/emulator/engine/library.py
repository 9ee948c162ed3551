"""The handler library: built once from the semantics tables, kept in the cache folder, loaded.

    semantics tables → LLVM IR (two modules) → llc, llc → ld.lld -shared → handlers-<key>-<cpu>.so

The key is a digest of the generator's sources and of LLVM's identity: to know whether the library
is there, nothing has to be generated.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fly_common import paths, toolchain
from fly_common.errors import FlyError, MissingError, UsageError

MODULES = 2  # as many llc processes as run side by side
LEVELS = ("x86-64-v3", "x86-64-v4")

# What a processor of each level reports (x86-64 psABI, "micro-architecture levels"), as
# /proc/cpuinfo spells it; `abm` stands for LZCNT.
NEEDS = {
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}


@dataclass(frozen=True)
class Library:
    """The loaded library: handler addresses by name, and the grid driver."""

    path: Path
    handlers: dict[str, int]
    run: ctypes._CFuncPtr  # type: ignore[name-defined]
    cpu: str


@functools.cache
def load() -> Library:
    """Builds the library if it is not in the cache, and loads it. Where it can't be kept it is
    built for this process alone, with a warning: a full disk costs seconds, not the result."""
    cpu = host_level()
    path = library_path(cpu)
    if not path.exists():
        try:
            _build_once(path, cpu)
        except OSError as error:
            return _unkept(path, cpu, error)
    return _open(path, cpu)


def _unkept(path: Path, cpu: str, error: OSError) -> Library:
    print(
        f"fly: warning: the emulator's library can't be kept in {path.parent}:"
        f" {error.strerror or error}; it is built anew each time\n"
        "  set FLY_CACHE_DIR to a folder that can be written and has 10 MB",
        file=sys.stderr,
    )
    try:
        with tempfile.TemporaryDirectory(prefix="fly-handlers-") as folder:
            made = Path(folder, path.name)
            build(made, cpu)
            return _open(made, cpu)  # what is loaded stays, when its file goes
    except OSError as failure:
        raise MissingError(
            f"the emulator's library can't be built: {failure.strerror or failure}",
            hint="make room in the temporary folder, or set TMPDIR to another",
        ) from None


def host_level() -> str:
    """The micro-architecture level to generate code for: `FLY_EMULATOR_CPU`, else the highest
    that this processor has. MissingError below x86-64-v3."""
    flags = _cpu_flags()
    chosen = os.environ.get("FLY_EMULATOR_CPU")
    if chosen and chosen not in LEVELS:
        raise UsageError(
            f"FLY_EMULATOR_CPU={chosen} is no level this emulator knows",
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
    digest = hashlib.sha256(toolchain.fingerprint("llc").encode())
    here = Path(__file__).parent.parent
    for source in [here / "irgen.py", here / "state.py", Path(__file__)]:
        digest.update(source.read_bytes())
    for source in sorted((here / "semantics").rglob("*.py")):
        digest.update(source.read_bytes())
    return Path(paths.cache_dir()) / f"handlers-{digest.hexdigest()[:32]}-{cpu}.so"


def _build_once(path: Path, cpu: str) -> None:
    """Builds under a lock, so that processes that start together build one library. OSError where
    it can't be kept."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(str(path.with_suffix(".lock"))):
        if not path.exists():
            build(path, cpu)


def build(path: Path, cpu: str) -> None:
    """Generates, compiles and links the library; it appears at `path` whole or not at all."""
    from fly_run.emulator.semantics import table

    texts = table.modules(MODULES)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".handlers-") as folder:
        objects = [Path(folder, f"{number}.o") for number in range(len(texts))]
        llc = toolchain.find_program("llc")
        command = [llc, "-O2", "-filetype=obj", "-relocation-model=pic", f"-mcpu={cpu}"]
        # Upper halves of vector registers stay in use from handler to handler.
        command += ["-mtriple=x86_64-unknown-linux-gnu", "-mattr=-vzeroupper,+fast-gather"]
        running = []
        for text, target in zip(texts, objects, strict=True):
            source = target.with_suffix(".ll")
            source.write_text(text)
            running.append(
                subprocess.Popen([*command, str(source), "-o", str(target)], stderr=subprocess.PIPE)
            )
        for process in running:
            _, errors = process.communicate()
            if process.returncode:
                _check_room(errors)
                raise FlyError(
                    f"llc does not accept the emulator's handlers: {_first_line(errors)}",
                    hint="this is a defect of the emulator or of this LLVM; LLVM 22 is known good",
                )
        made = Path(folder, "handlers.so")
        linked = toolchain.run_program(
            "ld.lld",
            # Nothing from outside: a call of libm or the like would be found at load time only.
            ["-shared", "-z", "defs", "-o", str(made), *map(str, objects)],
            None,
        )
        if linked.returncode:
            _check_room(linked.stderr)
            raise FlyError(f"ld.lld can't link the handlers: {_first_line(linked.stderr)}")
        os.replace(made, path)


def _check_room(errors: bytes) -> None:
    """A program of LLVM's that found the disk full: the same error as where Python does."""
    if os.strerror(errno.ENOSPC).encode() in errors:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _first_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else "no message"


def _open(path: Path, cpu: str) -> Library:
    library = ctypes.CDLL(str(path))
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
