"""Adds the module that code generation was given to its PTX, as the section `.fly.llvm`.

A device that executes kernels on the host compiles it. Text stays text and bitcode bitcode: LLVM's
tools read both, and assembling text would take a third of llc's time.
"""

from __future__ import annotations

SECTION = ".fly.llvm"


def with_module(product: bytes, module: bytes) -> bytes:
    """Returns the PTX with the section appended. `module` is the LLVM IR or bitcode."""
    from fly_image.nvidia import ptx

    return ptx.with_section(product.decode(), SECTION, module).encode()
