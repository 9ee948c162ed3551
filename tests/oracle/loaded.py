"""The registers that a probe's load fills, and how more than two of them become its record."""

from __future__ import annotations


def registers(first: int, size: int) -> str:
    """The vector registers that `size` bytes take, spelled: v30, v[30:31]."""
    count = max(1, size // 4)
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def folded(size: int) -> tuple[str, ...]:
    """More than two loaded registers into v[8:9]; they begin at v30."""
    if size <= 8:
        return ()
    high = "v_xor_b32 v9, v32, v33" if size == 16 else "v_mov_b32 v9, v32"
    return "v_xor_b32 v8, v30, v31", high
