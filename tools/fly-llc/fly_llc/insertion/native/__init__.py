"""Native machine passes inside llc's own pipeline, without MIR in between.

A pass of a plugin can run as a filter (`llc -run-pass`) wherever llc can stop and go on. Where it
can't, or where going on would allocate registers otherwise, it has to run in llc's process. llc has
no option for that; a small library, `shim.cpp`, gives it one. It is built when it is first wanted,
against the headers of the very LLVM whose llc runs.
"""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from fly_common import toolchain
from fly_common.errors import MissingError, UsageError

from fly_llc.codegen import points
from fly_llc.codegen.points import Point
from fly_llc.insertion import insertions as insertion

if TYPE_CHECKING:
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.source import Source

SOURCE = Path(__file__).with_name("shim.cpp")
HEADER = "llvm/Target/RegisterTargetPassConfigCallback.h"


def flags(options: Options, source: Source) -> tuple[str, ...]:
    """llc's options that run the native passes of `options` in its process; none where there are
    none."""
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
    """The pass behind whose only run the point is. LLVM inserts after every run of a pass, and
    after no analysis; UsageError where that can't be this point."""
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
        raise UsageError(
            f"in llc's process nothing can be inserted {point}: that is behind {anchor}, which runs"
            f" {len(runs)} times",
            hint=f"the next place is after:{single[0]}" if single else None,
        )
    return anchor


def shim() -> Path:
    """The library that gives llc the option, built unless it is there. MissingError says what is
    needed to build it."""
    from fly_common.paths import cache_dir

    llc = toolchain.find_program("llc")
    identity = sha256(SOURCE.read_bytes() + toolchain.fingerprint("llc").encode()).hexdigest()
    built = Path(cache_dir(), f"llc-shim-{identity[:16]}.so")
    if built.is_file():
        return built
    include = _headers(llc)
    compiler = _compiler(llc)
    temporary = built.with_name(f"{built.name}.{os.getpid()}")
    words = [compiler, "-std=c++17", "-fno-rtti", "-fPIC", "-shared", "-O1", f"-I{include}"]
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [*words, str(SOURCE), "-o", str(temporary)], capture_output=True, text=True
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise MissingError(
                "the library for passes in llc's process can't be built: "
                + (lines[0] if lines else "the compiler said nothing"),
                hint=f"{' '.join(words)} {SOURCE} shows it all",
            )
        os.replace(temporary, built)
    except OSError as error:
        raise MissingError(f"{built}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return built


def _headers(llc: str) -> Path:
    """LLVM's headers, which belong to the llc that runs."""
    prefix = Path(llc).resolve().parent.parent
    for folder in (prefix / "include", Path(f"/usr/include/llvm-{toolchain.version_of(llc)}")):
        if (folder / HEADER).is_file():
            return folder
    raise MissingError(
        f"LLVM's C++ headers ({HEADER}) were not found in {prefix / 'include'}",
        hint="they are needed for passes in llc's process (Debian: apt-get install llvm-22-dev);"
        " without --in-process a native pass runs as a filter, which needs none",
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
        hint="one is needed for passes in llc's process (Debian: apt-get install g++), or set CXX;"
        " without --in-process a native pass runs as a filter, which needs none",
    )
