"""Explains cache misses for `FLY_CACHE=explain`.

The store keeps the origin of each key beside the result. A miss is compared with the stage's latest
results: either the input or a part of the fingerprint is different.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
from hashlib import sha256
from typing import TYPE_CHECKING

from fly_common.record import record

if TYPE_CHECKING:
    from fly_store.store import Store

LOOKED_AT = 2000  # the number of latest entries to compare
SHOWN = 60  # characters shown of a changed part
# Exceptions that reading a damaged key file may raise.
DAMAGED = (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError)
_PART = re.compile(r"[^\s|,()]+")


@record
class _Entry:
    time: float
    input: str
    fingerprint: str


def of(store: Store, label: str, origin: tuple[str, bytes]) -> str:
    """Explains why there is no result for `origin`, a fingerprint and an input, under the stage's
    `label`."""
    fingerprint, data = origin
    entries = sorted(_entries(store, label), key=lambda entry: entry.time, reverse=True)
    if not entries:
        return "it never ran, or its result was deleted"
    digest = sha256(data).hexdigest()
    for entry in entries:
        if entry.input == digest:
            return f"changed: {_difference(entry.fingerprint, fingerprint)}"
    for entry in entries:
        if entry.fingerprint == fingerprint:
            return "its input is new"
    return f"its input is new, and changed: {_difference(entries[0].fingerprint, fingerprint)}"


def _difference(old: str, new: str) -> str:
    """Returns the first part of a fingerprint that differs, before and after."""
    before, after = _PART.findall(old), _PART.findall(new)
    for first, second in zip(before, after, strict=False):
        if first != second:
            return f"{_short(first)} → {_short(second)}"
    if len(after) > len(before):
        return f"{_short(after[len(before)])} was added"
    return f"{_short(before[len(after)])} was removed" if before != after else "unknown"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _entries(store: Store, label: str) -> list[_Entry]:
    found = []
    files = []
    for path in store.files("keys"):
        with contextlib.suppress(OSError):
            files.append((os.stat(path).st_mtime, path))
    for time, path in sorted(files, reverse=True)[:LOOKED_AT]:
        with contextlib.suppress(OSError, *DAMAGED), open(path) as file:
            lines = dict(line.split(" ", 1) for line in file.read().splitlines() if " " in line)
            if lines.get("label") == label and "fingerprint" in lines:
                fingerprint = ast.literal_eval(lines["fingerprint"])
                if isinstance(fingerprint, str):
                    found.append(_Entry(time, lines["input"], fingerprint))
    return found
