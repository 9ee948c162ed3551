"""Each example's inputs and expected results: NumPy in float64, independent of the kernels."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fly_target.registry import EMULATED

sys.path.insert(0, str(Path(__file__).parents[1]))  # where lit runs this
from chosen_targets import USUAL, chosen, having

Values = dict[str, np.ndarray | float | int]
CDNA = having(USUAL, "gfx9")
# Examples that also run on every target outside the usual ones: two-dimensional blocks, LDS, and
# each kind of matrix instruction.
EVERYWHERE = ("vector_add", "matmul", "gemm_f16", "gemm_wmma")


@dataclass(frozen=True)
class Case:
    """`make()` returns arguments by name; `expect(arguments)` the expected content of the named
    arrays after the run: arguments that are written, and what the function returns, an array or
    several, which are called `returns`. `rtol` and `atol` bound the difference; both zero means
    equal bits. `traits`: the target must have one of these for the example to run, if any are
    given. `usual`: the targets of `make test`. On the targets of `thorough` the chain is tested in
    many ways, otherwise in two."""

    file: str
    entry: str
    make: Callable[[], Values]
    expect: Callable[[Mapping], dict[str, np.ndarray]]
    returns: str | tuple[str, ...] | None = None
    rtol: float = 0.0
    atol: float = 0.0
    traits: tuple[str, ...] = ()
    usual: tuple[str, ...] = USUAL
    thorough: tuple[str, ...] = CDNA

    @property
    def name(self) -> str:
        return self.entry

    def after(self, arguments: Mapping, returned: Any) -> Mapping:
        """The arguments, with what the function returned by its name."""
        assert (returned is None) == (self.returns is None), returned
        if self.returns is None:
            return arguments
        if isinstance(self.returns, str):
            return {**arguments, self.returns: returned}
        return {**arguments, **dict(zip(self.returns, returned, strict=True))}

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets on which it is tested."""
        names = chosen()
        if names == USUAL:
            names = tuple(EMULATED) if self.entry in EVERYWHERE else self.usual
        return having(names, *self.traits)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layernorm(values: Mapping) -> np.ndarray:
    x = values["X"].astype(np.float64)
    deviation = x - x.mean(axis=1, keepdims=True)
    variance = (deviation**2).mean(axis=1, keepdims=True)
    return deviation / np.sqrt(variance + values["eps"]) * values["gamma"] + values["beta"]


def gray_scott(values: Mapping) -> dict[str, np.ndarray]:
    u, v = values["U"].astype(np.float64), values["V"].astype(np.float64)
    for _ in range(20):
        around = [
            np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a
            for a in (u, v)
        ]
        u, v = (
            u + 0.16 * around[0] - u * v**2 + 0.035 * (1 - u),
            v + 0.08 * around[1] + u * v**2 - (0.035 + 0.065) * v,
        )
    return {"U": u, "V": v}


def bf16(seed: int, *shape: int) -> np.ndarray:
    """Returns normally distributed bf16 numbers, as their bits."""
    return (normal(seed, *shape).view(np.uint32) >> 16).astype(np.uint16)


def float64(values: np.ndarray) -> np.ndarray:
    """Converts numbers of any float type; uint16 holds bf16's bits."""
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


def gemm(entry: str, seed: int, kind: str, *traits: str) -> Case:
    """C = A·Bᵀ of 128×96 and 64×96 elements."""

    def make() -> Values:
        operands = [(128, 96), (64, 96)]
        if kind == "bf16":
            a, b = (bf16(seed + i, *shape) for i, shape in enumerate(operands))
        else:
            a, b = (normal(seed + i, *shape).astype(kind) for i, shape in enumerate(operands))
        return {"A": a, "B": b}

    return Case(
        "mfma_gemm.py",
        entry,
        make,
        lambda v: {"C": float64(v["A"]) @ float64(v["B"]).T},
        "C",
        rtol=1e-5,
        atol=5e-5,
        traits=traits,
        thorough=(),
    )


def shuffled(b: np.ndarray) -> np.ndarray:
    """Returns B in the order that examples/preshuffle_gemm.py documents: blocks of 16 rows by 32 of
    K, ordered by eight values of a row, then the 16 rows, then the four groups of eight."""
    n, k = b.shape
    flat = np.empty(n * k, b.dtype)
    for row in range(n):
        for column in range(k):
            block = (row // 16) * (k // 32) + column // 32
            inside = column % 8 + 8 * (row % 16) + 128 * (column % 32 // 8)
            flat[512 * block + inside] = b[row, column]
    return flat.reshape(n, k)


def preshuffled() -> Values:
    a, b = (
        normal(24 + i, *shape).astype(np.float16) for i, shape in enumerate([(64, 256), (128, 256)])
    )
    return {"A": a, "B": shuffled(b)}


def preshuffled_product(values: Mapping) -> dict[str, np.ndarray]:
    b = normal(25, 128, 256).astype(np.float16)
    return {"C": float64(values["A"]) @ float64(b).T}


def pipelined(entry: str, kind: str, usual: tuple[str, ...], *traits: str) -> Case:
    """C = A·Bᵀ, with a part of a tile along M, N and K."""
    return Case(
        "pipelined_gemm.py",
        entry,
        lambda: {"A": normal(36, 30, 72).astype(kind), "B": normal(37, 140, 72).astype(kind)},
        lambda v: {"C": float64(v["A"]) @ float64(v["B"]).T},
        "C",
        rtol=1e-5,
        atol=5e-5,
        traits=traits,
        usual=usual,
        thorough=(),
    )


def top_8(values: Mapping) -> dict[str, np.ndarray]:
    x = values["X"]
    order = np.argsort(-x, axis=1, kind="stable")[:, :8].astype(np.int32)
    return {"values": np.take_along_axis(x, order, axis=1), "indices": order}


def attention(values: Mapping) -> dict[str, np.ndarray]:
    """Each head of Q with its head of K and V, causal."""
    q, k, v = (float64(values[name]) for name in "QKV")
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat(group, 1).swapaxes(2, 3) / np.sqrt(q.shape[3])
    later = np.triu(np.ones(scores.shape[2:], bool), 1)
    weights = np.exp(np.where(later, -np.inf, scores - scores.max(3, keepdims=True)))
    return {"Out": weights / weights.sum(3, keepdims=True) @ v.repeat(group, 1)}


def flash_attention(entry: str, usual: tuple[str, ...], *traits: str) -> Case:
    """Two groups of queries; the last tile is ragged."""
    return Case(
        "flash_attention.py",
        entry,
        lambda: {
            name: normal(38 + i, 1, heads, 75, 64).astype(np.float16)
            for i, (name, heads) in enumerate([("Q", 4), ("K", 2), ("V", 2)])
        },
        attention,
        "Out",
        rtol=2e-3,
        atol=2e-3,
        traits=traits,
        usual=usual,
        thorough=(),
    )


def rows(seed: int) -> np.ndarray:
    """Returns twenty of fifty row numbers, without repetition."""
    return np.random.default_rng(seed).permutation(50)[:20].astype(np.int32)


def scattered(values: Mapping) -> dict[str, np.ndarray]:
    table = np.zeros((50, 128), np.float32)
    table[values["index"]] = values["values"]
    return {"table": table}


def wide(seed: int) -> np.ndarray:
    """Returns a matrix of more than 2³¹ bytes, of which only the last 64 columns are allocated."""
    pages = mmap.mmap(-1, 1030 << 21)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    matrix = np.frombuffer(pages, np.float32).reshape(1030, 1 << 19)
    matrix[:, -64:] = normal(seed, 1030, 64)
    return matrix


CASES = (
    Case(
        "vector_add.py",
        "vector_add",
        lambda: {"A": normal(1, 5003), "B": normal(2, 5003)},
        lambda v: {"C": v["A"] + v["B"]},
        "C",
    ),
    Case(
        "saxpy.py",
        "saxpy",
        lambda: {"a": 2.5, "X": normal(3, 40_000), "Y": normal(4, 40_000)},
        lambda v: {"Y": (2.5 * v["X"].astype(np.float64) + v["Y"]).astype(np.float32)},
    ),
    Case(
        "saxpy_wide.py",
        "saxpy_wide",
        lambda: {"a": 3.0, "X": wide(5), "Y": wide(6)},
        lambda v: {
            "Z": (3.0 * v["X"][:, -64:].astype(np.float64) + v["Y"][:, -64:]).astype(np.float32)
        },
        "Z",
    ),
    Case(
        "row_softmax.py",
        "row_softmax",
        lambda: {"X": normal(7, 11, 781)},
        lambda v: {"Y": softmax(v["X"])},
        "Y",
        rtol=2e-6,
    ),
    Case(
        "row_softmax.py",
        "row_softmax_shuffle",
        lambda: {"X": normal(8, 11, 781)},
        lambda v: {"Y": softmax(v["X"])},
        "Y",
        rtol=2e-6,
    ),
    Case(
        "layernorm.py",
        "layernorm",
        lambda: {
            "X": normal(9, 7, 1000) * 3 + 7,
            "gamma": normal(10, 1000),
            "beta": normal(11, 1000),
            "eps": 1e-5,
        },
        lambda v: {"Y": layernorm(v)},
        "Y",
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "transpose.py",
        "transpose",
        lambda: {"A": normal(12, 131, 77)},
        lambda v: {"B": v["A"].T},
        "B",
    ),
    Case(
        "matmul.py",
        "matmul",
        lambda: {"A": normal(13, 50, 70), "B": normal(14, 70, 45)},
        lambda v: {"C": v["A"].astype(np.float64) @ v["B"].astype(np.float64)},
        "C",
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "histogram.py",
        "histogram",
        lambda: {"data": np.random.default_rng(15).integers(0, 256, 50_021, dtype=np.uint8)},
        lambda v: {"counts": np.bincount(v["data"], minlength=256).astype(np.int32)},
        "counts",
    ),
    Case(
        "gray_scott.py",
        "gray_scott",
        lambda: {
            "U": np.clip(normal(16, 33, 47) * 0.1 + 0.8, 0, 1),
            "V": np.clip(normal(17, 33, 47) * 0.1 + 0.2, 0, 1),
        },
        gray_scott,
        atol=1e-5,
    ),
    Case(
        "tiled_copy.py",
        "transpose_tiled",
        lambda: {"A": normal(18, 64, 96)},
        lambda v: {"B": v["A"].T},
        "B",
        thorough=("gfx942",),
    ),
    gemm("gemm_f16", 19, "f2", "gfx9"),
    gemm("gemm_bf16", 21, "bf16", "CDNA2", "CDNA3", "CDNA4"),
    gemm("gemm_f32", 23, "f4", "gfx9"),
    gemm("gemm_wmma", 19, "f2", "RDNA3", "RDNA4"),
    Case(
        "preshuffle_gemm.py",
        "preshuffle_gemm",
        preshuffled,
        preshuffled_product,
        "C",
        rtol=1e-3,  # half an ulp of f16
        atol=1e-3,
        traits=("gfx9",),
        thorough=(),
    ),
    Case(
        "gather_scatter.py",
        "gather_rows",
        lambda: {"table": normal(26, 50, 128), "index": rows(27)},
        lambda v: {"out": v["table"][v["index"]]},
        "out",
        thorough=(),
    ),
    Case(
        "gather_scatter.py",
        "scatter_rows",
        lambda: {
            "values": normal(28, 20, 128),
            "index": rows(29),
            "table": np.zeros((50, 128), np.float32),
        },
        scattered,
        thorough=(),
    ),
    Case(
        "online_softmax.py",
        "online_softmax",
        lambda: {"X": normal(30, 5, 781)},
        lambda v: {"Y": softmax(v["X"])},
        "Y",
        rtol=2e-6,
        usual=("gfx942", "gfx1201"),
        thorough=(),
    ),
    Case(
        "top_k.py",
        "top_k",
        lambda: {"X": np.random.default_rng(31).integers(-50, 50, (3, 555)).astype(np.float32)},
        top_8,
        ("values", "indices"),
        usual=("gfx942", "gfx1201"),
        thorough=(),
    ),
    Case(
        "prefix_sum.py",
        "prefix_sum_i32",
        lambda: {"X": np.random.default_rng(32).integers(-9, 9, 6_001, dtype=np.int32)},
        lambda v: {"Y": np.cumsum(v["X"], dtype=np.int32)},
        "Y",
        usual=("gfx942",),
        thorough=(),
    ),
    Case(
        "prefix_sum.py",
        "prefix_sum_f32",
        lambda: {"X": normal(33, 6_001)},
        lambda v: {"Y": np.cumsum(v["X"].astype(np.float64))},
        "Y",
        atol=1e-4,
        usual=("gfx1201",),
        thorough=(),
    ),
    pipelined("pipelined_gemm_mfma", "f2", ("gfx942",), "gfx9"),
    pipelined("pipelined_gemm_wmma", "f2", ("gfx1100",), "RDNA3", "RDNA4"),
    pipelined("pipelined_gemm_fma", "f4", ("gfx90a",)),
    Case(
        "ring_gemm.py",
        "ring_gemm",
        lambda: {"A": normal(38, 70, 136).astype("f2"), "B": normal(39, 80, 136).astype("f2")},
        lambda v: {"C": float64(v["A"]) @ float64(v["B"]).T},
        "C",
        rtol=1e-5,
        atol=1e-4,
        traits=("gfx9", "RDNA3", "RDNA4", "gfx1250"),
        usual=("gfx942",),
        thorough=(),
    ),
    flash_attention("flash_attention_mfma", ("gfx942",), "gfx9"),
    flash_attention("flash_attention_wmma", ("gfx1100", "gfx1201"), "RDNA3", "RDNA4"),
)


# Cases that tests of other parts run too: with FLY_TEST_TARGETS=every all of them.
WIDELY = tuple(case for case in CASES if case.usual == USUAL or chosen() == tuple(EMULATED))


def check(case: Case, arguments: Mapping, expected: Mapping[str, np.ndarray]) -> None:
    """Raises AssertionError if an array of `arguments` differs from the expected result."""
    for name, array in expected.items():
        if case.rtol == case.atol == 0:
            np.testing.assert_array_equal(arguments[name], array, err_msg=name)
        else:
            np.testing.assert_allclose(
                arguments[name], array, rtol=case.rtol, atol=case.atol, err_msg=name
            )
