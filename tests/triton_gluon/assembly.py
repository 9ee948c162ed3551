"""What LLVM wrote for a kernel."""

from __future__ import annotations

import re


def left_out(assembly: str) -> list[str]:
    """Copies from vector to scalar registers for which LLVM has no instruction: it reports an
    error, which Triton does not pass on, and writes a comment in place of the copy."""
    return re.findall(r"^\s*; (illegal copy \S+ to \S+)", assembly, re.MULTILINE)
