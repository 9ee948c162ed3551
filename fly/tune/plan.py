"""What `@fly.autotune` was given, and what the environment asks for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from fly_common.errors import UsageError
from fly_common.record import record

from fly.call.function import JitFunction
from fly.tune.config import Config, Setting

VARIABLE = "FLY_AUTOTUNE"
OFF, ON, REPORT = "off", "on", "report"
_MODES = {"": OFF, "0": OFF, "1": ON, REPORT: REPORT}

Prune = Callable[[list[Config], dict[str, Any]], Sequence[Config]]


def mode() -> str:
    """What FLY_AUTOTUNE asks for. UsageError for a value that it can't have."""
    text = os.environ.get(VARIABLE, "")
    if text not in _MODES:
        raise UsageError(f"{VARIABLE}={text}: must be 0, 1 or {REPORT}")
    return _MODES[text]


@record
class Plan:
    """What the decorator was given. `file` is a path, relative to the function's file."""

    jit: JitFunction
    settings: tuple[Setting, ...]
    default: Setting | None = None
    key: tuple[str, ...] = ()
    prune: Prune | None = None
    reset: tuple[str, ...] = ()
    file: str | None = None

    @property
    def configured(self) -> frozenset[str]:
        """The parameters that configurations set."""
        every = (*self.settings, *((self.default,) if self.default else ()))
        return frozenset(name for one in every for name in one.constants)

    @property
    def fallback(self) -> Setting:
        """The configuration for calls of which nothing is known."""
        return self.default or self.settings[0]
