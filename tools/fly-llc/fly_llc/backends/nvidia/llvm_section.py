"""Adds the module that code generation was given to its PTX, as the section `.fly.llvm`.

A device that executes kernels on the host compiles it. Text stays text and bitcode bitcode: LLVM's
tools read both, and assembling text would cost another process.
"""

from __future__ import annotations

from fly_common.errors import InputError

SECTION = ".fly.llvm"


def with_module(product: bytes, module: bytes) -> bytes:
    """Returns the PTX with the section appended. `module` is the LLVM IR or bitcode.

    Raises InputError for PTX that is not text: LLVM copies the bytes of names, of inline assembly
    and of debug information as they are.
    """
    from fly_image.nvidia import ptx

    try:
        text = product.decode()
    except UnicodeDecodeError as error:
        line = product.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"line {line} of the PTX has the byte 0x{product[error.start]:02x}, which is not UTF-8",
            hint="a name, inline assembly or debug information of the LLVM IR contains it",
        ) from None
    return ptx.with_section(text, SECTION, module).encode()
