"""The cases, by theme. `CASES`: all of them; importing a theme's module adds its own."""

from kernels.case import CASES
from kernels.cases import (
    builtins,
    control,
    graphs,
    hashes,
    integers,
    lanes,
    linear,
    matrices,
    numeric,
    planes,
    scans,
    small_floats,
    sorts,
    texts,
    vectors,
)

__all__ = [
    "CASES",
    "builtins",
    "control",
    "graphs",
    "hashes",
    "integers",
    "lanes",
    "linear",
    "matrices",
    "numeric",
    "planes",
    "scans",
    "small_floats",
    "sorts",
    "texts",
    "vectors",
]
