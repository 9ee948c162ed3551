"""Writes kernels that are long for a tracer: one source for FlyDSL and for this project.

    python long_kernels.py flydsl|fly FILE

traces the kernel in FILE, a file that `source` has made, in a process that has traced another one,
and prints the milliseconds from the start of loading the file to the module's text. For FlyDSL the
environment is that of flydsl_kernels.py; its clock stops where its passes would begin.

    python long_kernels.py flydsl|fly compile STARTED cold|warm|call [HSACO]

compiles straight_line for gfx942, from a file in the current folder, and prints the milliseconds
from STARTED as tiled_kernels.py does. The environment is that of tiled_kernels.py.

    static_loop    4,000 ops by a static loop of 1,000 iterations
    straight_line  2,000 source lines, one statement each
    branches       400 dynamic `if`s on 2,000 source lines
    where_chain    2,000 selections, each of the result of the one before
    deep           20 expressions of 80 nested operations
    unrolled       64 iterations of 64 ops, two static loops
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The names in which the two languages differ, at the top of each file.
HEADS = {
    "fly": "import fly as flyc\nimport fly.expr as fx\n\nwhere = fx.where\n",
    "flydsl": "import flydsl.compiler as flyc\nimport flydsl.expr as fx\n\n\n"
    "def where(c, a, b):\n    return c.select(a, b)\n",
}
START = """

@flyc.kernel
def long_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.thread_idx.x
    x0 = fx.memref_load(A, i)
    x1 = fx.memref_load(A, i + 1)
"""
END = """    fx.memref_store({result}, B, i)


@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor):
    long_kernel(A, B).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""


def static_loop(count: int) -> tuple[list[str], str]:
    """`count` ops."""
    body = [f"for _ in fx.range_constexpr({count // 4}):"]
    body += ["    x0 = x0 * x1 + x1", "    x1 = x1 * x0 - x0"]
    return body, "x0"


def straight_line(count: int) -> tuple[list[str], str]:
    """`count` lines."""
    body = [f"x{j} = x{j - 1} * x0 + x{j - 2}" for j in range(2, count)]
    return body, f"x{count - 1}"


def branches(count: int) -> tuple[list[str], str]:
    """`count` lines."""
    body = []
    for j in range(count // 5):
        body += [f"a{j} = fx.memref_load(A, i + {j})"]
        body += [f"if a{j} > x0:", f"    x0 = x0 + a{j}", "else:", "    x0 = x0 - x1"]
    return body, "x0"


def where_chain(count: int) -> tuple[list[str], str]:
    """`count` selections."""
    body = [f"for j in fx.range_constexpr({count}):", "    x0 = where(x0 < x1, x0 * x1, x0)"]
    return body, "x0"


def deep(count: int) -> tuple[list[str], str]:
    """`count` expressions."""
    expression = "x1"
    for j in range(80):
        expression = f"({expression} {'+*'[j % 2]} x0)" if j % 3 else f"(x0 - {expression})"
    return [f"x0 = {expression}"] * count, "x0"


def unrolled(count: int) -> tuple[list[str], str]:
    """`count` iterations of 64 ops."""
    body = [f"for _ in fx.range_constexpr({count}):", "    for _ in fx.range_constexpr(32):"]
    return [*body, "        x0 = x0 * x1 + x1"], "x0"


KERNELS: dict[str, tuple[Callable[[int], tuple[list[str], str]], int]] = {
    "static_loop": (static_loop, 4000),
    "straight_line": (straight_line, 2000),
    "branches": (branches, 2000),
    "where_chain": (where_chain, 2000),
    "deep": (deep, 20),
    "unrolled": (unrolled, 64),
}


def source(kernel: str, system: str, scale: float = 1.0) -> str:
    """The text of a kernel's file; `scale` makes it shorter."""
    make, count = KERNELS[kernel]
    body, result = make(round(count * scale))
    lines = "".join(f"    {line}\n" for line in body)
    return HEADS[system] + START + lines + END.format(result=result)


def load(path: Path) -> Any:
    space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space["launch"]


def prepare_ours() -> Callable[[Path], object]:
    from fly_trace.session.trace import trace_function
    from fly_trace.signatures.signature import parse

    types = parse("A: f32[?{i32}], B: f32[?{i32}]")
    return lambda path: trace_function(load(path), types)


def prepare_flydsl() -> Callable[[Path], object]:
    import flydsl.compiler as flyc
    import torch
    from flydsl.compiler import jit_function

    class Traced(Exception):
        pass

    def stop(*_: Any, **__: Any) -> None:
        raise Traced

    jit_function.MlirCompiler.compile = stop
    given = [flyc.from_dlpack(torch.zeros(64)).mark_layout_dynamic() for _ in range(2)]

    def trace(path: Path) -> None:
        try:
            load(path)(*given)
        except Traced:
            return
        raise SystemExit("FlyDSL did not come to its passes")

    return trace


def compile_it(system: str, began: str, state: str, *files: str) -> None:
    """Compiles straight_line, after another kernel for "call"."""
    started = float(began)
    path, first = Path("straight_line.py").absolute(), Path("first.py").absolute()
    path.write_text(source("straight_line", system))
    first.write_text(source("static_loop", system, 0.01))
    call = _compiler(system)
    if state == "call":
        call(first)
        started = time.monotonic()
    made = call(path)
    print((time.monotonic() - started) * 1000)
    for file in files:
        Path(file).write_bytes(made)


def _compiler(system: str) -> Callable[[Path], Any]:
    if system == "fly":
        types = "A: f32[?{i32}], B: f32[?{i32}]"
        return lambda path: load(path).compile(signature=types, target="gfx942").hsaco
    import flydsl.compiler as flyc
    import torch

    def call(path: Path) -> None:
        given = (flyc.from_dlpack(torch.zeros(64)).mark_layout_dynamic() for _ in range(2))
        load(path)(*given)

    return call


def main() -> None:
    if sys.argv[2] == "compile":
        compile_it(sys.argv[1], *sys.argv[3:])
        return
    system, file = sys.argv[1], Path(sys.argv[2])
    trace = prepare_flydsl() if system == "flydsl" else prepare_ours()
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "first.py")
        first.write_text(source("static_loop", system, 0.01))
        trace(first)
    started = time.perf_counter()
    trace(file)
    print((time.perf_counter() - started) * 1000)


if __name__ == "__main__":
    main()
