"""The one error of making native code."""

from __future__ import annotations


class Unavailable(Exception):
    """There is no native code for this program here; the text says why. Callers run it another
    way."""
