"""`flydsl.compiler.llvm_options`: options of LLVM's code generation for what is compiled in a
block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fly.flydsl.compiler import hints

__all__ = ["llvm_options"]


@contextmanager
def llvm_options(opts: Mapping[str, bool | int | str]) -> Iterator[None]:
    """`with llvm_options({"enable-post-misched": False}):`, as the compile hint `llvm_options`."""
    for name, value in opts.items():
        if not isinstance(value, (bool, int, str)):
            raise TypeError(
                f"Unsupported type {type(value).__name__} for LLVM option {name!r}: it is a bool, a"
                " number or text"
            )
    with hints.using({"llvm_options": dict(opts)}):
        yield
