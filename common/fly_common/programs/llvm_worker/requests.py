"""The command lines that the worker executes, and the LLVM library that it needs for them.

A request is a list of words in a fixed order, which `program` reads:

    opt LEVEL
    llc LEVEL CPU FEATURES obj|asm
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence

_STREAMS = ("-disable-symbolication", "-o", "-", "-")
_LLC = re.compile(
    r"-mcpu=(?P<cpu>[a-z0-9_]+) -O(?P<level>[0-3])(?: -mattr=(?P<features>[a-z0-9_+,-]+))?"
    rf" -filetype=(?P<kind>obj|asm) {re.escape(' '.join(_STREAMS))}"
)
_OPT = re.compile(r"-S -O(?P<level>[0-3])")


def of(program: str, arguments: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the request for a command line, or None if only the program executes it."""
    name, words = os.path.basename(program), " ".join(arguments)
    if name == "opt" and (match := _OPT.fullmatch(words)):
        return ("opt", match["level"])
    if name == "llc" and (match := _LLC.fullmatch(words)):
        return ("llc", match["level"], match["cpu"], match["features"] or "", match["kind"])
    return None


@functools.lru_cache(maxsize=8)
def library_of(program: str) -> str | None:
    """Returns the path of the LLVM library that the program is linked with, if it is `libLLVM`,
    and lies in `lib` beside the program's folder."""
    real = os.path.realpath(program)
    folder = os.path.join(os.path.dirname(os.path.dirname(real)), "lib")
    try:
        if os.path.getsize(real) > 1 << 24:  # linked statically
            return None
        with open(real, "rb") as file:
            needed = re.search(rb"\0(libLLVM[-.0-9a-z]*\.so[.0-9a-z]*)\0", file.read())
    except OSError:
        return None
    path = needed and os.path.join(folder, needed[1].decode())
    return os.path.realpath(path) if path and os.path.isfile(path) else None
