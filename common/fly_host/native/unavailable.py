"""The errors of making native code."""

from __future__ import annotations


class Unavailable(Exception):
    """There is no native code for this program here; the text says why. Callers run it another
    way."""


class NotCompiled(Unavailable):
    """LLVM, the linker or the loader failed: something is wrong here, and worth telling."""
