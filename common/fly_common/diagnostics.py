"""Errors and warnings on standard error: text, or with --diagnostics=json one JSON object a line.

    {"source": "fly-trace", "severity": "error", "message": "…", "file": "k.py",
     "range": {"start": {"line": 6, "character": 8}, "end": {"line": 6, "character": 27}},
     "hint": "…", "related": [{"message": "called in outer", "file": …, "range": …}]}

Names and numbers are those of the Language Server Protocol: lines and characters count from 0, and
characters are UTF-16 code units. What is not known is null. FLY_DIAGNOSTICS=json has the same
effect on all tools of a pipe.
"""

from __future__ import annotations

import os
import sys

from fly_common.record import record

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fly_common.errors import FlyError, Place, Related

    Warn = Callable[["str | Warning"], None]  # prints or keeps a warning

FLAG = "--diagnostics"
VARIABLE = "FLY_DIAGNOSTICS"
FORMATS = ("text", "json")

_chosen: str | None = None  # by the command line


def take(words: Sequence[str]) -> list[str]:
    """Reads --diagnostics from a command line, and returns the other words. Raises UsageError for
    an unknown format."""
    global _chosen
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        flag, equals, text = word.partition("=")
        if word == "--":
            kept += [word, *rest]
        elif flag != FLAG:
            kept.append(word)
        else:
            _chosen = _checked(text if equals else next(rest, ""), FLAG)
    return kept


def is_json() -> bool:
    """Whether diagnostics are JSON."""
    if _chosen is not None:
        return _chosen == "json"
    return os.environ.get(VARIABLE, "") == "json"


def _checked(text: str, where: str) -> str:
    if text in FORMATS:
        return text
    from fly_common.errors import UsageError
    from fly_common.quoting import quoted

    raise UsageError(f"{where} {quoted(text)}: must be {' or '.join(FORMATS)}")


@record
class Warning:
    """Something that is not as the user may expect, although there is a result."""

    message: str
    place: Place | None = None
    hint: str | None = None
    related: tuple[Related, ...] = ()

    def render(self, tool: str) -> str:
        """The warning as text, in the form of an error."""
        from fly_common.errors import rendered

        return rendered(tool, "warning", self)


def print_error(error: FlyError, tool: str) -> None:
    """Prints an error. The caller handles a closed standard error."""
    if not is_json():
        print(error.render(tool), file=sys.stderr, flush=True)
        return
    for one in error.parts():
        _print(as_dict(one, tool, "error"))


def print_failure(tool: str, message: str, hint: str | None = None) -> None:
    """Prints an error of the tool itself or of its environment."""
    if is_json():
        _print(as_dict(Warning(message, hint=hint), tool, "error"))
        return
    text = f"{tool}: error: {message}"
    print(f"{text}\n  {hint}" if hint else text, file=sys.stderr, flush=True)


def warner(tool: str) -> Warn:
    """A function that prints warnings of a tool."""

    def warn(said: str | Warning) -> None:
        made = Warning(said) if isinstance(said, str) else said
        if is_json():
            _print(as_dict(made, tool, "warning"))
        else:
            print(made.render(tool), file=sys.stderr)

    return warn


def as_dict(said: FlyError | Warning, tool: str, severity: str) -> dict[str, object]:
    """A diagnostic as JSON's values."""
    from fly_common.errors import related_of

    return {
        "source": tool,
        "severity": severity,
        "message": said.message,
        **_where(said.place),
        "hint": said.hint,
        "related": [{"message": one.message, **_where(one.place)} for one in related_of(said)],
    }


def _where(place: Place | None) -> dict[str, object]:
    if place is None:
        return {"file": None, "range": None}
    if place.line is None:
        return {"file": place.file, "range": None}
    if place.column is None:
        start, end = 0, _units(place.text or "")
    else:
        text = place.text or ""
        start = _units(text[: place.column - 1]) if text else place.column - 1
        end = start + max(1, _units(text[place.column - 1 :][: place.width]))
    line = place.line - 1
    return {
        "file": place.file,
        "range": {
            "start": {"line": line, "character": start},
            "end": {"line": line, "character": end},
        },
    }


def _units(text: str) -> int:
    """The length of a text in UTF-16."""
    return len(text.encode("utf-16-le", "replace")) // 2


def _print(value: dict[str, object]) -> None:
    import json

    print(json.dumps(value), file=sys.stderr, flush=True)
