"""Runs native machine passes inside llc's own pipeline, without MIR in between.

A plugin's pass can run as a filter (`llc -run-pass`) wherever llc can stop and resume. Elsewhere,
or if resuming would change register allocation, it has to run in llc's process. llc has no option
for that; a small library, `shim.cpp`, adds one. It is built on first use, against the headers of
the LLVM whose llc runs.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from fly_common import paths
from fly_common.errors import MissingError, UsageError
from fly_common.programs import process, toolchain
from fly_store import built_library, identity

from fly_llc.codegen import points
from fly_llc.codegen.points import Point
from fly_llc.insertion import insertions as insertion

if TYPE_CHECKING:
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.source import Source

SOURCE = Path(__file__).with_name("shim.cpp")
HEADER = "llvm/Target/RegisterTargetPassConfigCallback.h"


def flags(options: Options, source: Source) -> tuple[str, ...]:
    """Returns llc's options that run the native passes of `options` in its process, or none."""
    if not options.in_process:
        return ()
    here = (source.target.cpu, source.level)
    loads: dict[str, None] = {}
    insertions = []
    for text in options.insert:
        side, name, what = insertion.parse(text, "--insert")
        if what.plugin:
            point = points.find(side or None, name, *here)
            loads[insertion.library(what)] = None
            insertions.append(f"-fly-insert={_anchor(point, *here)}={what.words[0]}")
    if not insertions:
        return ()
    return (f"-load={shim()}", *(f"-load={path}" for path in loads), *insertions)


def _anchor(point: Point, cpu: str, level: int) -> str:
    """Returns the pass after which the point is. LLVM inserts after every run of a pass, and not
    after analyses. Raises UsageError if that does not identify the point."""
    passes = [name for name in points.machine_passes(cpu, level) if not points.is_analysis(name)]
    place = passes.index(point.machine_pass) if point.machine_pass in passes else 0
    if point.side == "before":
        place -= 1
    anchor = passes[max(place, 0)]
    runs = [name for name in passes if name.partition(",")[0] == anchor.partition(",")[0]]
    if place < 0 or len(runs) > 1:
        single = [
            name
            for name in passes[max(place, 0) :]
            if sum(other.partition(",")[0] == name.partition(",")[0] for other in passes) == 1
        ]
        if place < 0:
            why = "no machine pass runs earlier"
        else:
            name = anchor.partition(",")[0]
            why = f"LLVM would insert after each of the {len(runs)} runs of {name}"
        raise UsageError(
            f"with --in-process nothing can be inserted {point}: {why}",
            hint=f"the next possible point is after:{single[0]}" if single else None,
        )
    return anchor


def shim() -> str:
    """Returns the path from which llc loads the shim, which is built if it is not in the cache.
    Raises MissingError if something needed to build it is missing.

    The path names a file descriptor that llc inherits (`llc.start`): it loads the bytes that were
    verified here, even if the file changes.
    """
    llc = toolchain.find_program("llc")
    digest = sha256(SOURCE.read_bytes() + identity.program("llc").encode()).hexdigest()
    return _in_memory(f"llc-shim-{digest[:16]}.so", llc, paths.cache_dir())


@functools.cache
def _in_memory(name: str, llc: str, folder: str) -> str:
    """Returns the shim of an llc from a cache folder. Called once per process."""
    recipe = built_library.Recipe(
        name, lambda: _build(llc), "the library for passes in llc's process", "about 3 s"
    )
    return built_library.in_memory(built_library.obtain(recipe))[1]


def _build(llc: str) -> bytes:
    words = [_compiler(llc), "-std=c++17", "-fno-rtti", "-fPIC", "-shared", "-O1"]
    words += [f"-I{_headers(llc)}", str(SOURCE)]
    limit = process.time_limit()
    with tempfile.TemporaryDirectory(prefix="fly-shim-") as folder:
        made = Path(folder, "shim.so")
        try:
            done = subprocess.run(
                [*words, "-o", str(made)], capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            raise process.TimedOut(words[0], limit) from None
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise MissingError(
                "the library for --in-process can't be built: "
                + (lines[0] if lines else "the compiler printed nothing"),
                hint=f"for the full output, run: {' '.join(words)}",
            )
        return made.read_bytes()


def _headers(llc: str) -> Path:
    """Returns the folder of the LLVM headers that belong to this llc."""
    prefix = Path(llc).resolve().parent.parent
    for folder in (prefix / "include", Path(f"/usr/include/llvm-{toolchain.version_of(llc)}")):
        if (folder / HEADER).is_file():
            return folder
    raise MissingError(
        f"LLVM's C++ headers ({HEADER}) were not found in {prefix / 'include'}",
        hint="they are needed for --in-process (Debian: apt-get install llvm-22-dev);"
        " without --in-process, a native pass runs as a filter and does not need them",
    )


def _compiler(llc: str) -> str:
    import shutil

    chosen = os.environ.get("CXX")
    beside = os.path.join(os.path.dirname(os.path.realpath(llc)), "clang++")
    for name in [chosen] if chosen else ["c++", "g++", "clang++", beside]:
        path = shutil.which(name)
        if path:
            return path
    raise MissingError(
        f"no C++ compiler{f' ({chosen})' if chosen else ''} was found",
        hint="one is needed for --in-process (Debian: apt-get install g++), or set CXX;"
        " without --in-process, a native pass runs as a filter and does not need it",
    )
