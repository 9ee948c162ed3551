"""A kernel of FlyDSL's repository, compiled by this project or by FlyDSL: a process to time.

    python flydsl_cases.py ours|theirs CHECKOUT CASE STARTED STATE [FILE]

CASE is one of tests/flydsl_kernels. The process ends when its first host function is compiled, and
prints the milliseconds since STARTED, a time of `time.monotonic`; FILE gets this project's code
object. With the STATE "call", another kernel is compiled before the time starts. COMPILE_ONLY and
the target are set by the caller.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OTHER = "softmax f32 3x1000"


class Compiled(BaseException):
    """The first host function is compiled; `.args` is its code object."""


def stop_ours() -> None:
    import fly.flydsl.install  # noqa: F401
    from fly.flydsl.compiler.jit_function import Variant

    def run(self: Any, arguments: Any, named: Any) -> None:
        _, types, *_ = self.read(arguments, named)
        raise Compiled(bytes(self.artifact(types, self._chain(None)).compiled.hsaco))

    Variant.run = run  # type: ignore[method-assign]


def stop_theirs() -> None:
    from flydsl.compiler.jit_function import JitFunction

    plain = JitFunction._compile_or_execute

    def run(self: Any, *arguments: Any, **named: Any) -> Any:
        from flydsl._mlir import ir

        inner = ir.Context.current is not None
        result = plain(self, *arguments, **named)
        if inner:
            return result
        raise Compiled(b"")

    JitFunction._compile_or_execute = run


def compiled(name: str) -> bytes:
    """Runs a case until its first host function is compiled."""
    from flydsl_kernels import case as cases

    for module in ("norm", "gemm", "attention", "moe"):
        importlib.import_module(f"flydsl_kernels.{module}")
    chosen = next(one for one in cases.CASES if one.name == name)
    try:
        list(chosen.run())
    except Compiled as stop:
        return stop.args[0]
    raise SystemExit(f"{name} compiles nothing")


def main() -> None:
    side, checkout, name, started, state, *files = sys.argv[1:]
    sys.path[:0] = [checkout, str(ROOT / "tests")]
    (stop_ours if side == "ours" else stop_theirs)()
    specification = importlib.util.spec_from_file_location("cuda", ROOT / "fly/flydsl/cuda.py")
    assert specification is not None
    assert specification.loader is not None
    cuda = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(cuda)
    cuda.install()
    begin = float(started)
    if state == "call":
        compiled(OTHER)
        begin = time.monotonic()
    code = compiled(name)
    print((time.monotonic() - begin) * 1000, flush=True)
    for file in files:
        Path(file).write_bytes(code)


if __name__ == "__main__":
    main()
