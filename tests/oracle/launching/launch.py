"""Launches a kernel on the oracle, or on a device with the same protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from oracle.interpreter.machine import Oracle
from oracle.program import hsaco

Triple = tuple[int, int, int]


def pack(
    data: bytes, kernel: str, arguments: Sequence, bind: Callable[[str, np.ndarray], int]
) -> bytes:
    """Packs the explicit kernel arguments at the offsets of the code object's metadata: arrays as
    the address that `bind` returns, NumPy scalars by value."""
    content = bytearray()
    explicit = [
        argument
        for argument in hsaco.read(data).kernels[kernel].arguments
        if not argument[".value_kind"].startswith("hidden_")
    ]
    for index, (argument, value) in enumerate(zip(explicit, arguments, strict=True)):
        content += bytes(argument[".offset"] - len(content))
        if isinstance(value, np.ndarray):
            value = np.uint64(bind(argument.get(".name", f"arg{index}"), value))
        raw = value.tobytes()
        assert len(raw) == argument[".size"], f"argument {index}: {len(raw)} bytes"
        content += raw
    return bytes(content)


@dataclass(frozen=True)
class Run:
    """`arguments`: after the launch, arrays hold the kernel's output."""

    arguments: list
    executed: int


def on_oracle(
    data: bytes,
    kernel: str,
    grid: Triple,
    block: Triple,
    arguments: Sequence,
    dynamic_lds=0,
    **more,
) -> Run:
    """Runs on copies of the arguments. `more`: the Oracle's options."""
    oracle = Oracle(**more)
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    kernarg = pack(data, kernel, own, oracle.bind)
    oracle.launch(data, kernel, grid, block, kernarg, dynamic_lds)
    oracle.synchronize()
    return Run(own, oracle.executed)
