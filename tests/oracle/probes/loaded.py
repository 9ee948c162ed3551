"""The registers that a probe's load fills, and how more than two of them are folded into a
record."""

from __future__ import annotations

ALL, SOME = "s_mov_b64 exec, -1", "s_mov_b64 exec, s[20:21]"
# v[30:33], in all lanes, into v[8:9].
FOLD = (
    *(f"v_alignbit_b32 v{k}, v{k}, v{k}, 5" for k in (31, 33)),
    *("v_xor_b32 v8, v30, v31", "v_xor_b32 v9, v32, v33"),
)


def registers(first: int, size: int) -> str:
    """Returns the text of the vector registers for `size` bytes: v30, v[30:31]."""
    count = max(1, size // 4)
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def loaded(size: int, load: str, wait: str) -> tuple[str, ...]:
    """Returns a load, in whose text `{}` stands for the registers, and their values in v[8:9];
    inactive lanes keep the old values of v[4:7]."""
    if size <= 8:
        return load.format(registers(8, size)), wait
    old = tuple(f"v_mov_b32 v{30 + k}, v{4 + k}" for k in range(4))
    return (ALL, *old, SOME, load.format(registers(30, size)), wait, ALL, *FOLD)
