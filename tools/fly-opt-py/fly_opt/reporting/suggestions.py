"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Suggests the names closest to `name`; if none is close, returns `otherwise` and all of
    them."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"did you mean {', '.join(near)}?"
    return f"{otherwise} {', '.join(names)}"
