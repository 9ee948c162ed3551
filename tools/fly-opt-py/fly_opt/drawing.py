"""The option `--draw-layout` and its options."""

from __future__ import annotations

import re
from typing import Any

from fly_common.errors import UsageError

NAMES = ("tile", "element", "vector", "target", "picture")


def svg(text: str | None, options: str | None) -> bytes:
    """Draws the layout written in `text`; `options` is the text of `--draw-with`."""
    if text is None:
        raise UsageError("--draw-with needs --draw-layout", hint="--draw-layout TEXT")
    import fly_draw

    try:
        return str(fly_draw.draw(text, **_read(options or ""))).encode()
    except (TypeError, ValueError) as error:
        raise UsageError(f"--draw-layout: {error}") from None


def _read(options: str) -> dict[str, Any]:
    """Parses text such as `tile=8x4 vector=8` into keyword arguments of `fly_draw.draw`."""
    found: dict[str, Any] = {}
    for word in options.split():
        name, _, value = word.partition("=")
        if name not in NAMES or not value:
            raise UsageError(
                f"--draw-with: no such option: {word}", hint=f"NAME=VALUE of {', '.join(NAMES)}"
            )
        if name in ("element", "target", "picture"):
            found[name] = value
        elif name == "tile":
            extents = re.fullmatch(r"([1-9]\d{0,8})[x,]([1-9]\d{0,8})", value)
            if extents is None:
                raise UsageError(f"--draw-with: a tile must be ROWSxCOLUMNS, not {value}")
            found[name] = int(extents[1]), int(extents[2])
        elif not re.fullmatch(r"0*[1-9][0-9]{0,8}", value):
            raise UsageError(f"--draw-with: {name} must be a positive number, not {value}")
        else:
            found[name] = int(value)
    return found
