"""Adds the LLVM bitcode of a module to its PTX, as the section `.fly.llvm`.

A device that executes kernels on the host compiles it.
"""

from __future__ import annotations

from fly_common.errors import InputError

SECTION = ".fly.llvm"
MAGIC = b"BC\xc0\xde"


def with_bitcode(product: bytes, module: bytes) -> bytes:
    """Returns the PTX with the section appended. `module` is the LLVM IR or bitcode."""
    from fly_image.nvidia import ptx

    bitcode = module if module.startswith(MAGIC) else _assembled(module)
    return ptx.with_section(product.decode(), SECTION, bitcode).encode()


def _assembled(text: bytes) -> bytes:
    from fly_common import toolchain

    done = toolchain.run_program("llvm-as", ["-o", "-", "-"], text)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise InputError(f"llvm-as: {' '.join(reason)}")
    return done.stdout
