"""The dialect: a type, and operations that make, take and swap pairs."""

from __future__ import annotations

from dataclasses import dataclass

from fly_dialect.extension import Extension
from fly_dialect.op_info import OpInfo


@dataclass(frozen=True)
class Pair:
    """Two elements of one float type."""

    element: str

    def __str__(self) -> str:
        return f"!pairs.pair<{self.element}>"


def read_pair(body: str) -> Pair:
    if body not in ("f16", "f32", "f64"):
        raise ValueError(f"a pair of {body or 'nothing'} is none of floats")
    return Pair(body)


def infer_make(operands, _):
    first, second = operands
    if first != second:
        raise ValueError(f"takes two of one type, not {first} and {second}")
    return [read_pair(str(first))]


def infer_take(operands, attributes):
    (pair,) = operands
    if not isinstance(pair, Pair):
        raise ValueError(f"takes a pair, not {pair}")
    if attributes.get("at") not in (0, 1):
        raise ValueError("takes at = 0 or 1")
    return [pair.element]


def infer_swap(operands, _):
    (pair,) = operands
    if not isinstance(pair, Pair):
        raise ValueError(f"takes a pair, not {pair}")
    return [pair]


PAIRS = Extension(
    ops=(
        OpInfo("make", 2, 1, infer_make, dialect="pairs"),
        OpInfo("take", 1, 1, infer_take, dialect="pairs"),
        OpInfo("swap", 1, 1, infer_swap, dialect="pairs"),
    ),
    types={"pair": read_pair},
)
