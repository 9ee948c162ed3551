"""Parses the options of shipped filters: `--name value`, each with a type and a default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted


def read(filter_name: str, words: Sequence[str], **defaults: Any) -> dict[str, Any]:
    """Returns the options' values. The type of an option is the type of its default."""
    values = dict(defaults)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, text = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--") or name not in defaults:
            known = ", ".join(f"--{key.replace('_', '-')}" for key in defaults) or "none"
            raise UsageError(f"{filter_name} has no option {word}", hint=f"its options: {known}")
        if not equals:
            if not rest:
                raise UsageError(f"{filter_name} {word}: a value is missing")
            text = rest.pop(0)
        kind = type(defaults[name])
        try:
            values[name] = kind(text)
        except ValueError:
            raise UsageError(
                f"{filter_name} {word}: {quoted(text)} is not a valid {kind.__name__}"
            ) from None
    return values
