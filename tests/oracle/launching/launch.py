"""One way to launch a kernel on the oracle and on any device that keeps the same protocol."""

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
    """The explicit kernel arguments: arrays by the address that `bind` gives, NumPy scalars as
    they are, at the offsets of the code object's metadata."""
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
    """`arguments`: after the launch, arrays hold what the kernel wrote."""

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
    """On copies of the arguments. `more`: the Oracle's options."""
    oracle = Oracle(**more)
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    kernarg = pack(data, kernel, own, oracle.bind)
    oracle.launch(data, kernel, grid, block, kernarg, dynamic_lds)
    oracle.synchronize()
    return Run(own, oracle.executed)
