"""The shared library: how it is built, and where it is kept.

prototypes → LLVM IR (`code`) → llc → ld.lld → CACHE/hip-runtime-KEY.so
                                               CACHE/hip-runtime-KEY/libamdhip64.so …, links
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from fly_common import paths
from fly_common.errors import FlyError, MissingError
from fly_common.programs import process, toolchain
from fly_store import built_library, identity

from fly_run.hip_runtime import code
from fly_run.hip_runtime.interface import NAME
from fly_run.hip_runtime.prototypes import FIRST_VERSION as FIRST
from fly_run.hip_runtime.prototypes import VERSIONS, prototypes

NAMES = (NAME, f"{NAME}.6", f"{NAME}.7")  # under which programs look for it
SONAME = f"{NAME}.7"
TRIPLE = "x86_64-unknown-linux-gnu"  # the emulator runs on no other


def folder() -> Path:
    """Returns the folder with the library under all its names. Builds it if it is missing, or not
    what was built. MissingError if nothing can be kept."""
    name = f"hip-runtime-{key()}.so"
    recipe = built_library.Recipe(name, build, "the HIP runtime library", "about 1 s")
    built_library.obtain(recipe)
    kept = Path(paths.private_cache_dir(), name)
    if not kept.is_file():
        raise MissingError(
            f"the HIP runtime library can't be kept in {kept.parent}",
            hint="set FLY_CACHE_DIR to a writable directory with 10 MB of free space",
        )
    made = kept.with_suffix("")
    made.mkdir(mode=0o700, exist_ok=True)
    for one in NAMES:
        _link(made / one, f"../{name}")
    return made


def _link(path: Path, target: str) -> None:
    """Makes `path` a link to `target`, in a way that other processes may do the same."""
    with contextlib.suppress(OSError):
        if os.readlink(path) == target:
            return
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    os.symlink(target, temporary)
    os.replace(temporary, path)


@functools.cache
def key() -> str:
    """Identifies the library: its text, and what compiles it."""
    parts = (code.text(), version_script(), SONAME, identity.program("llc"))
    return sha256("\0".join(parts).encode()).hexdigest()[:32]


def build() -> bytes:
    """Compiles and links the library."""
    words = ["-O2", "-filetype=obj", "-relocation-model=pic", f"-mtriple={TRIPLE}", "-o", "-", "-"]
    made = _run("llc", words, code.text().encode())
    with contextlib.ExitStack() as ending:
        handles = []
        for data in (version_script().encode(), made):
            handles.append(process.in_memory(data))
            ending.callback(os.close, handles[-1])
        script, object_file = (f"/proc/self/fd/{handle}" for handle in handles)
        words = ["-shared", "-soname", SONAME, "--version-script", script, "-o", "-", object_file]
        return _run("ld.lld", words, None, handles)


def _run(program: str, words: list[str], data: bytes | None, handles: Sequence[int] = ()) -> bytes:
    done = toolchain.run_program(program, words, data, pass_fds=handles)
    if done.returncode:
        first = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise FlyError(f"{program} does not accept the HIP runtime library: {first}")
    return done.stdout


def version_script() -> str:
    """The linker's version script: each function in its version, and nothing else is exported."""
    nodes: dict[str, list[str]] = {FIRST: [], **{version: [] for version in VERSIONS}}
    for one in prototypes().values():
        nodes[one.version].append(one.name)
    lines, before = [], ""
    for version, names in nodes.items():
        listed = " ".join(f"{name};" for name in names)
        hidden = "" if before else " local: *;"
        lines.append(f"{version} {{ global: {listed}{hidden} }} {before};")
        before = version
    return "\n".join(lines)


def shared_python() -> str | None:
    """Returns the path of this Python's shared library, which other processes may load; None if it
    has none."""
    folder = sysconfig.get_config_var("LIBDIR") or ""
    for name in (sysconfig.get_config_var(key) for key in ("INSTSONAME", "LDLIBRARY")):
        path = os.path.join(sys.base_prefix, "lib", name or "")
        for found in (os.path.join(folder, name or ""), path):
            if name and ".so" in name and os.path.isfile(found):
                return found
    return None
