"""What is compiled: each kernel with several numbers of threads and accesses.

Why one of each is shown: a row of 8,192 bf16 is four 16-byte accesses for each of 256 threads.
These need at most 64 registers, so that a multiprocessor holds four rows; layernorm if it loads
its vectors late. In a tile of 128×128 bf16, or of 64×64 f32, a row has 256 bytes, which one
instruction of 16 lanes reads or writes, and each thread has four accesses or more outstanding.
Blocks follow each other down the columns ("down"), so that they write next to each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any


@dataclass(frozen=True)
class Variant:
    """`make(columns)` returns the host function. `columns` are a multiple of 4,096."""

    workload: str
    name: str
    make: Callable[[int], Any]
    shown: bool = False

    @property
    def file(self) -> str:
        return f"{self.workload} {self.name}".replace(",", "").replace(" ", "-")


def variants() -> list[Variant]:
    from h200.memory import rows, tiles

    return [*_additions(tiles), *_rows(rows), *_transpositions(tiles)]


def _additions(tiles: Any) -> list[Variant]:
    return [
        Variant("add f32", f"256x{count}", lambda _, n=count: tiles.adding(256, n), count == 1)
        for count in (1, 2)
    ]


def _rows(rows: Any) -> list[Variant]:
    found = []
    for name, options in (
        ("softmax", ({},)),
        ("layernorm", ({"late": True}, {"late": False})),
        ("rmsnorm", ({"late": False}, {"late": True})),
    ):
        make_rows = getattr(rows, f"{name}_rows")
        for threads in (128, 256, 512):
            for option in options:
                word = {True: " late", False: " early", None: ""}[option.get("late")]
                make = partial(make_rows, threads=threads, **option)
                shown = threads == 256 and option is options[0]
                found.append(Variant(f"{name} bf16", f"{threads}{word}", make, shown))
    return found


def _transpositions(tiles: Any) -> list[Variant]:
    found = []
    for dtype, name, size in ((tiles.fx.BFloat16, "bf16", 128), (tiles.fx.Float32, "f32", 64)):
        for edge, lanes, down in (
            *((size, 16, False), (size, 16, True), (size, 8, False), (size // 2, 8, False)),
        ):
            make = partial(tiles.transposing, dtype, (edge, edge), lanes, down=down)
            word = f"{edge}x{edge}, {lanes} lanes{' down' if down else ''}"
            shown = (edge, lanes, down) == (size, 16, True)
            found.append(Variant(f"transpose {name}", word, lambda _, make=make: make(), shown))
    return found
