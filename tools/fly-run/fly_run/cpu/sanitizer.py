"""AddressSanitizer on the device: `fly-run --sanitize address`, FLY_CPU_SANITIZE=address.

Its run-time library has to be loaded before Python, whose memory it allocates. fly-run starts
itself again with it; applications are started with it by their users.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shlex
import sys
from collections.abc import Iterator

from fly_common.errors import MissingError, UsageError

VARIABLE = "FLY_CPU_SANITIZE"
RUNTIME = "FLY_ASAN_RUNTIME"
KINDS = ("address",)
PRELOAD, OPTIONS = "LD_PRELOAD", "ASAN_OPTIONS"
# Python keeps memory until it ends; a request for too much memory has an error of its own; after a
# report the launch ends as a fault does; memory between arrays of a few rows; every fault is told.
DEFAULTS = (
    *("detect_leaks=0", "allocator_may_return_null=1", "halt_on_error=0", "redzone=2048"),
    *("suppress_equal_pcs=0", "detect_stack_use_after_return=0"),
)
_MARK = "FLY_ASAN_STARTED"  # in the environment of a process that `restart` started
_NO_RANDOM_ADDRESSES = 0x40000  # ADDR_NO_RANDOMIZE of Linux
_CXX = "libstdc++.so.6"
_COMPILERS = (
    *(("gcc", "libasan.so"), ("cc", "libasan.so")),
    *(("clang", "libclang_rt.asan-x86_64.so"), ("clang", "libclang_rt.asan.so")),
)
# A folder's name, of which each part may be a pattern, and a file.
_FOLDERS = (
    (r"/usr/lib/x86_64-linux-gnu", r"libasan\.so\.(\d+)"),
    (r"/usr/lib64", r"libasan\.so\.(\d+)"),
    (r"/usr/lib", r"libasan\.so\.(\d+)"),
    (r"/usr/lib/gcc/x86_64-[\w-]+/(\d+)[\d.]*", r"libasan\.so"),
    (r"/usr/lib/llvm-(\d+)/lib/clang/[\d.]+/lib/linux", r"libclang_rt\.asan-x86_64\.so"),
    (r"/usr/lib/llvm-(\d+)/lib/clang/[\d.]+/lib/x86_64-[\w-]+", r"libclang_rt\.asan\.so"),
)


def asked() -> bool:
    """Whether the environment asks for it. UsageError for another value."""
    given = os.environ.get(VARIABLE, "")
    if given in ("", "0"):
        return False
    check_kind(given, f"{VARIABLE}={given}")
    return True


def check_kind(kind: str, given: str) -> None:
    """UsageError for a sanitizer that there is not."""
    if kind not in KINDS:
        raise UsageError(f"{given}: expected address")


@functools.cache
def process() -> ctypes.CDLL:
    """What this process has loaded."""
    return ctypes.CDLL(None)


def is_loaded() -> bool:
    """Whether the run-time library is in this process."""
    return hasattr(process(), "__asan_region_is_poisoned")


def check_loaded() -> None:
    """MissingError, with the command that helps, if the run-time library is not loaded."""
    if is_loaded():
        return
    if (tried := os.environ.get(_MARK)) is not None:
        raise MissingError(
            f"AddressSanitizer's run-time library {tried.partition(':')[0]} could not be loaded",
            hint=f"name another one: {RUNTIME}=FILE",
        )
    words = [
        f"{PRELOAD}={shlex.quote(_joined(_libraries(find()), PRELOAD))}",
        f"{OPTIONS}={shlex.quote(_joined('detect_leaks=0', OPTIONS))}",
        shlex.join(sys.orig_argv),
    ]
    raise MissingError(
        f"{VARIABLE}=address needs AddressSanitizer's run-time library, which has to be loaded"
        " before Python",
        hint=f"start the process with it: {' '.join(words)}",
    )


def _libraries(path: str) -> str:
    """What is loaded before Python. The library looks for the function that throws C++ exceptions
    when it is loaded, and ends the process at the first exception if it was not there."""
    try:
        ctypes.CDLL(_CXX)
    except OSError:
        return path
    return f"{path}:{_CXX}"


def _joined(first: str, variable: str) -> str:
    """What is put in front of a variable's value."""
    return ":".join(filter(None, (first, os.environ.get(variable))))


# -- starting fly-run again


def restart() -> None:
    """Starts this process again with the run-time library, unless it has it. MissingError if there
    is none. Standard input must not have been read."""
    marked = os.environ.get(_MARK)
    if is_loaded():
        if marked is not None:
            _clean()
        return
    if marked is not None:
        check_loaded()
    libraries = _libraries(find())
    environment = {
        **os.environ,
        PRELOAD: _joined(libraries, PRELOAD),
        OPTIONS: _joined(":".join(DEFAULTS), OPTIONS),
        VARIABLE: "address",
        _MARK: libraries,
    }
    _fix_addresses()
    try:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    except OSError as error:
        raise MissingError(f"{sys.executable} can't be started: {error.strerror}") from None


def _clean() -> None:
    """Programs that this process starts do without the library."""
    added = os.environ.pop(_MARK)
    others = os.environ.get(PRELOAD, "").removeprefix(added).removeprefix(":")
    if others:
        os.environ[PRELOAD] = others
    else:
        os.environ.pop(PRELOAD, None)


def _fix_addresses() -> None:
    """Turns the system's random addresses off in the next program. With many random bits (Linux
    with vm.mmap_rnd_bits=32) older libraries fail now and then, because something lies where they
    have their shadow memory."""
    personality = process().personality
    personality.argtypes = [ctypes.c_ulong]
    current = personality(0xFFFFFFFF)
    if current >= 0:
        personality(current | _NO_RANDOM_ADDRESSES)  # a sandbox may refuse it


# -- finding it


def find() -> str:
    """Returns the path of a run-time library: FLY_ASAN_RUNTIME, what compilers tell of theirs, or
    one in a known folder. MissingError if there is none."""
    if chosen := os.environ.get(RUNTIME):
        if not _is_library(chosen):
            raise MissingError(
                f"{RUNTIME}={chosen} is not a shared library",
                hint="name GCC's libasan.so.8 or Clang's libclang_rt.asan-x86_64.so",
            )
        return os.path.abspath(chosen)
    for path in (*_of_compilers(), *_in_folders()):
        if _is_library(path):
            return os.path.realpath(path)
    raise MissingError(
        "AddressSanitizer's run-time library was not found",
        hint="install GCC's (Debian: apt-get install libasan8) or Clang's, or name the file:"
        f" {RUNTIME}=FILE",
    )


def _is_library(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"  # Fedora's libasan.so is a script of the linker
    except OSError:
        return False


def _of_compilers() -> Iterator[str]:
    import shutil
    import subprocess

    for compiler, name in _COMPILERS:
        program = shutil.which(compiler)
        if program is None:
            continue
        words = [program, f"-print-file-name={name}"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if os.path.isabs(path := done.stdout.strip()):
            yield path


def _in_folders() -> Iterator[str]:
    """The newest of each kind first."""
    for folder, file in _FOLDERS:
        found = [
            ([int(number) for number in numbers], path)
            for numbers, path in _matching("/", [*folder.strip("/").split("/"), file])
        ]
        yield from (path for _, path in sorted(found, reverse=True))


def _matching(folder: str, parts: list[str]) -> Iterator[tuple[list[str], str]]:
    if not parts:
        yield [], folder
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if match := re.fullmatch(parts[0], name):
            for numbers, path in _matching(os.path.join(folder, name), parts[1:]):
                yield [*match.groups(), *numbers], path


# -- libraries

_reporting = ctypes.c_uint64()  # whether a host thread reports


def share_lock(pointer: int) -> None:
    """Gives a library the lock that reports take."""
    ctypes.c_uint64.from_address(pointer).value = ctypes.addressof(_reporting)


def allocate(nbytes: int) -> int:
    """Returns the address of zeroed memory with redzones. MissingError if there is not so much."""
    calloc = process().calloc
    calloc.argtypes, calloc.restype = [ctypes.c_size_t] * 2, ctypes.c_void_p
    address = calloc(1, max(1, nbytes))
    if not address:
        raise MissingError(f"there is no memory for {nbytes} more bytes")
    return address


def free(address: int) -> None:
    """Gives memory of `allocate` back."""
    process().free(ctypes.c_void_p(address))


def set_accessible(address: int, nbytes: int, accessible: bool = True) -> None:
    """Poisons memory, or ends that."""
    name = "__asan_unpoison_memory_region" if accessible else "__asan_poison_memory_region"
    process()[name](ctypes.c_void_p(address), ctypes.c_size_t(nbytes))
