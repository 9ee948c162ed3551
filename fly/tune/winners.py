"""Files of winners: JSON documents, which people can read, and which can be shipped with a kernel.

    {"format": "fly-tuned 1", "function": "softmax", "winners": [
      {"key": {"n": 4096}, "types": {"X": "f32"}, "target": "gfx942", "device": "emulator",
       "config": {"BLOCK": 256}, "cost": 21904, "unit": "cycles", "method": "…"}]}

Winners are sorted by their keys, and a file contains no dates: the same measurements give the same
bytes. A file that can't be read, is damaged, or is another function's is ignored with a warning.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from fly_common import diagnostics, paths
from fly_common.errors import FlyError, UsageError
from fly_common.filter import write_atomically
from fly_common.record import record
from fly_store.store import default_store

from fly.tune.config import Setting, as_text
from fly.tune.key import Case

FORMAT = "fly-tuned 1"
SUFFIX = ".tuned.json"
LOCK_TIMEOUT = 60.0  # seconds to wait for another process that writes the same file

_warned: set[tuple[str, str]] = set()


@record
class Winner:
    """The best configuration for a case. `cost` is in `unit`; `method` says how it was
    measured."""

    case: Case
    config: dict[str, Any]
    cost: float
    unit: str
    method: str

    @property
    def as_json(self) -> dict[str, Any]:
        return {
            **self.case.as_json,
            "config": self.config,
            "cost": self.cost,
            "unit": self.unit,
            "method": self.method,
        }


def folder() -> str | None:
    """The folder for winners that are not shipped; None if nothing is stored."""
    if default_store().folder is None:
        return None
    return os.path.join(paths.cache_dir(), "tuned")


def stored_path(module: str, name: str, digest: str | None) -> str | None:
    """The file for the winners of exactly this code; None where there can be none."""
    at = folder()
    if at is None or digest is None:
        return None
    return os.path.join(at, f"{_plain(module)}.{_plain(name)}.{digest[:16]}{SUFFIX}")


def shipped_path(file: str, name: str) -> str | None:
    """The file beside the module `file`; None for a function that is in no file."""
    if not os.path.isfile(file):
        return None
    return f"{os.path.splitext(os.path.abspath(file))[0]}.{_plain(name)}{SUFFIX}"


def _plain(name: str) -> str:
    """A qualified name as part of a file's name."""
    return re.sub(r"[^\w.]+", "_", name)


def read(path: str | None, function: str) -> list[Winner]:
    """The winners in a file; none, with a warning, if it is not such a file."""
    if path is None:
        return []
    found, why = _read(path, function)
    if why:
        _warn(path, f"{path}: {why}; it is ignored")
    return found


def _read(path: str, function: str) -> tuple[list[Winner], str]:
    """The winners in a file of a function, and why there are none, if it is no such file."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError:
        return [], ""
    except OSError as error:
        return [], f"can't be read: {error.strerror}"
    except (ValueError, RecursionError):
        return [], "is damaged: it is not JSON"
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return [], f"is not a file of winners: its format is not {FORMAT!r}"
    if document.get("function") != function:
        return [], f"is of another function than {function}"
    try:
        return [_winner(entry) for entry in document["winners"]], ""
    except (KeyError, TypeError, ValueError, OverflowError):
        return [], "is damaged: an entry lacks something"


def find(winners: Sequence[Winner], case: Case, exact: bool = False) -> Winner | None:
    """The winner for a case. Unless it must be `exact`, one of the same target on another device
    serves where there is none of this device."""
    same = [one for one in winners if _is_same(one.case, case)]
    best = next((one for one in same if one.case.device == case.device), None)
    return best if best is not None or exact or not same else same[0]


def setting_for(winner: Winner, settings: Sequence[Setting], path: str) -> Setting | None:
    """The configuration that a winner names; None if there is no such any more. A warning says so,
    unless the file is in the cache folder, which nobody edits."""
    wanted = as_text(winner.config)
    for one in settings:
        if as_text(one.config.as_json) == wanted:
            return one
    if os.path.dirname(path) != folder():
        why = f"names a configuration that the function does not have: {wanted}"
        _warn(path, f"{path}: {why}; it is ignored")
    return None


def write(path: str, function: str, added: Sequence[Winner]) -> None:
    """Adds winners to a file, in the place of those for the same cases. Replaces no file that is
    not one of the function's winners, outside of the cache folder: UsageError. MissingError if it
    can't be written."""
    with locked(path):
        known, why = _read(path, function)
        is_mine = os.path.dirname(path) == folder() or not os.path.isfile(path)
        if why and not is_mine and os.path.getsize(path):
            raise UsageError(f"{path}: {why}", hint="name another file, or delete this one")
        kept = {one.case.text: one for one in (*known, *added)}
        entries = [kept[text].as_json for text in sorted(kept)]
        document = {"format": FORMAT, "function": function, "winners": entries}
        write_atomically(path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


@contextlib.contextmanager
def locked(what: str) -> Iterator[None]:
    """Holds the lock of `what`, a path or another name, between processes. Continues without where
    there can be none. The lock's file is in the cache folder, and stays there."""
    from filelock import FileLock, Timeout

    at = folder()
    if at is None:
        yield
        return
    digest = sha256(os.path.realpath(what).encode()).hexdigest()[:16]
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, Timeout):
            paths.make_private(at)
            stack.enter_context(FileLock(os.path.join(at, f"{digest}.lock"), LOCK_TIMEOUT))
        yield


def keep(path: str, function: str, winner: Winner) -> None:
    """Adds a winner to a file, if it is not there yet; a warning if that can't be done. Creates the
    folder of stored winners."""
    if winner in read(path, function):
        return
    try:
        if os.path.dirname(path) == folder():
            paths.make_private(os.path.dirname(path))
        write(path, function, [winner])
    except (OSError, FlyError) as error:
        text = error.message if isinstance(error, FlyError) else f"{path}: {error.strerror}"
        _warn(path, f"the winner is not kept: {text}")


def _winner(entry: dict[str, Any]) -> Winner:
    key, types = dict(entry["key"]), dict(entry["types"])
    target, device, config = entry["target"], entry["device"], dict(entry["config"])
    texts = (target, device, entry["unit"], entry["method"], *types.values())
    if not all(isinstance(text, str) for text in texts):
        raise TypeError
    case = Case(key, types, target, device)
    return Winner(case, config, float(entry["cost"]), entry["unit"], entry["method"])


def _is_same(a: Case, b: Case) -> bool:
    return a.target == b.target and as_text([a.key, a.types]) == as_text([b.key, b.types])


def _warn(path: str, text: str) -> None:
    if (path, text) not in _warned:
        _warned.add((path, text))
        diagnostics.warner("fly")(text)
