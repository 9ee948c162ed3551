"""Runs the body of a kernel as Python does, and as fly-trace's module.

Python runs it on NumPy's scalars, with a stand-in for `fx`; the module is run by an interpreter of
MLIR's ops that shares nothing with the tracer, or compiled and run on the emulator.
"""

from __future__ import annotations

import contextlib
import linecache
import textwrap
import warnings
from pathlib import Path
from types import SimpleNamespace

import mlir_interpreter
import numpy as np
from fly_trace.session.load import find_entry, load_file

HEAD = """\
import fly
import fly.expr as fx

def clamp(v, low, high):
    if v < low:
        v = low
    elif v > high:
        v = high
    return v

def twice(f, v):
    return f(f(v))
{top}
@fly.kernel
def kernel(I: fx.Tensor, F: fx.Tensor, a: fx.Int32, b: fx.Int32, u: fx.Float64, v: fx.Float64):
{body}

@fly.jit
def entry(I: fx.Tensor[fx.Int32, 8], F: fx.Tensor[fx.Float64, 8], a: fx.Int32, b: fx.Int32,
          u: fx.Float64, v: fx.Float64):
    kernel(I, F, a, b, u, v).launch(grid=1, block=1)
"""

# What `fx` is when Python runs the kernel.
PYTHON_FX = SimpleNamespace(
    Tensor={},
    Int8=np.int8,
    Int16=np.int16,
    Int32=np.int32,
    Int64=np.int64,
    Uint8=np.uint8,
    Uint32=np.uint32,
    Uint64=np.uint64,
    Float64=np.float64,
    range_constexpr=range,
    const_expr=lambda c: c,
    where=lambda c, x, y: x if c else y,
    minimum=lambda x, y: min(x, y),
    maximum=lambda x, y: max(x, y),
    fastmath=lambda flags: contextlib.nullcontext(),
)


def source_of(body: str, top: str = "") -> str:
    """The file of a kernel with this body."""
    return HEAD.format(body=indented(body), top=top)


def indented(body: str) -> str:
    """A body as it stands in a function."""
    return textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")


def arguments() -> tuple[np.ndarray, np.ndarray]:
    """The arrays of a run: I, which is i32[8], and F, which is f64[8]."""
    return np.arange(8, dtype=np.int32), np.arange(8, dtype=np.float64) / 3


def run_python(body: str, given: list, top: str = "") -> None:
    """Runs the kernel as Python does."""

    class Anything:
        def __getattr__(self, name):
            return getattr(PYTHON_FX, name)

    source = source_of(body, top).split("@fly.jit")[0]
    source = source.replace("import fly\nimport fly.expr as fx\n", "").replace("@fly.kernel\n", "")
    names = {"fx": Anything(), "__name__": "__main__"}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        exec(source, names)
        names["kernel"](*given)


def scalars(a: int, b: int, u: float, v: float) -> list:
    return [np.int32(a), np.int32(b), np.float64(u), np.float64(v)]


def check(module: str, body: str, a: int, b: int, u: float, v: float, top: str = "") -> None:
    """The same memory from Python and from the module."""
    memory = [list(arguments()) for _ in range(2)]
    run_python(body, [*memory[0], *scalars(a, b, u, v)], top)
    mlir_interpreter.run(module, [*memory[1], a, b, np.float64(u), np.float64(v)])
    for expected, found in zip(*memory, strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=f"{a=} {b=} {u=} {v=}\n{body}")


def on_emulator(source: str, runs: list[list], file: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """The arrays after each run of the file's entry on the emulator."""
    file.write_text(source)
    linecache.checkcache(str(file))
    entry = find_entry(load_file(str(file)), str(file), None)
    results = []
    for given in runs:
        memory = arguments()
        entry(*memory, *given)
        results.append(memory)
    return results
