"""The chain of filters up to PTX, in process."""

from __future__ import annotations

from pathlib import Path

from fly_common.programs import toolchain


def llvm_ir(path: Path, entry: str, target: str) -> bytes:
    """Traces a host function and its kernels, and lowers them."""
    from fly_opt import Options, compile
    from fly_trace.session.trace import trace_file

    text = trace_file(str(path), entry, {}, target=target)
    return compile(text.encode(), Options(target=target))


def optimised(module: bytes) -> bytes:
    done = toolchain.run_program("opt", ["-S", "-O3", "-o", "-", "-"], module)
    assert not done.returncode, done.stderr.decode()
    return done.stdout


def ptx(path: Path, entry: str, target: str) -> bytes:
    from fly_llc import Options, compile

    return compile(optimised(llvm_ir(path, entry, target)), Options())
