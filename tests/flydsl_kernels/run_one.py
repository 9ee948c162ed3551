"""Runs one case in this process, with this project or with FlyDSL, and prints how far it came.

    python run_one.py ours|theirs|recorded CHECKOUT NAME

The last line is `stage STAGE`: what the case has passed (none, imports, traces, compiles, runs,
right), followed by `: reason` unless it is right. `recorded` is FlyDSL whose tracing somebody else
watches (scripts/flydsl-traces).
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STAGES = ("none", "imports", "traces", "compiles", "runs", "right")
MODULES = (
    "norm",
    "gemm",
    "gemm_cdna4",
    "attention",
    "decoding",
    "paged",
    "moe",
    "convolution",
    "comm",
    "cdna5",
    "mega",
    "mixed",
    "mxfp",
    "pages",
    "cdna5_moe",
    "norm_variants",
    "further",
)


class Progress:
    """The stage that was passed last. What a program does again, for another kernel, is the stage
    of that one."""

    stage = "none"


@contextlib.contextmanager
def marked(holder: Any, name: str, stage: str) -> Iterator[None]:
    """Notes `stage` when a function has returned."""
    plain = getattr(holder, name)

    def run(*arguments: Any, **named: Any) -> Any:
        result = plain(*arguments, **named)
        Progress.stage = stage
        return result

    setattr(holder, name, run)
    yield


def watch_ours() -> None:
    from fly_trace.session import trace

    import fly.flydsl.install  # noqa: F401
    from fly.call.compiled import Compiled
    from fly.call.reports import compile_reports

    for holder, name, stage in (
        (trace, "trace_function", "traces"),
        (compile_reports, "compile", "compiles"),
        (Compiled, "on_device", "runs"),
    ):
        marked(holder, name, stage).__enter__()


def watch_theirs() -> None:
    from flydsl.compiler import jit_function

    compiler = jit_function.MlirCompiler
    plain = compiler.compile.__func__

    def compile(kind: Any, *arguments: Any, **named: Any) -> Any:
        Progress.stage = "traces"
        result = plain(kind, *arguments, **named)
        Progress.stage = "compiles"
        return result

    compiler.compile = classmethod(compile)


def said(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def main() -> int:
    side, checkout, name = sys.argv[1:4]
    sys.path[:0] = [checkout, str(HERE.parent)]
    if side != "recorded":
        (watch_ours if side == "ours" else watch_theirs)()
    cuda = importlib.util.spec_from_file_location(
        "cuda_on_cpu", HERE.parents[1] / "fly/flydsl/cuda.py"
    )
    assert cuda is not None
    assert cuda.loader is not None
    module = importlib.util.module_from_spec(cuda)
    cuda.loader.exec_module(module)
    module.install()
    import torch

    torch.set_num_threads(1)
    from flydsl_kernels import case as cases

    if side == "recorded":
        from flydsl_kernels import removed

        removed.install()
    for module in MODULES:
        if (HERE / f"{module}.py").exists():
            importlib.import_module(f"flydsl_kernels.{module}")
    chosen = next(one for one in cases.CASES if one.name == name)
    start, reason = time.perf_counter(), ""
    try:
        file = chosen.file.removesuffix(".py").replace("/", ".")
        importlib.import_module(f"kernels.{file}")
        Progress.stage = "imports"
        errors = [error for one in chosen.run() if (error := one.error)]
        Progress.stage = "runs" if errors else "right"
        reason = errors[0] if errors else ""
    except Exception as error:
        reason = said(error)
        if "-v" in sys.argv:
            traceback.print_exc()
    print(f"time {time.perf_counter() - start:.2f}")
    print(f"stage {Progress.stage}{f': {reason}' if reason else ''}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
