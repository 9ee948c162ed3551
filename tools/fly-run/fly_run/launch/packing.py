"""The arguments of a kernel as bytes."""

from __future__ import annotations

import struct
from typing import Any

from fly_common.errors import InputError
from fly_host import refusals
from fly_host.program import Launch, Program, Scalar, Word
from fly_image.image import KernelInterface

from fly_run.launch.arrays import dtypes

_ADDRESS = struct.Struct("<Q")


def check_interface(launch: Launch, kernel: KernelInterface, program: Program) -> None:
    """InputError where a program's launch does not fit the kernel's arguments."""
    explicit = kernel.arguments
    if len(explicit) != len(launch.arguments):
        raise InputError(
            f"the host program passes {len(launch.arguments)} arguments to {kernel.name}, but the"
            f" kernel takes {len(explicit)}"
        )
    for number, (argument, words) in enumerate(zip(explicit, launch.arguments, strict=True)):
        size = sum(size_of(word, program) for word in words)
        if size != argument.size:
            raise InputError(
                f"the host program passes argument {number} of {kernel.name} with {size} bytes,"
                f" but the kernel takes {argument.size}"
            )


def size_of(word: Word, program: Program) -> int:
    """The bytes of a word."""
    if word.kind == "pointer":
        return 8
    if word.kind in ("integer", "descriptor"):
        return word.size
    return dtypes.SIZES[scalar_type(word, program)]


def scalar_type(word: Word, program: Program) -> str:
    """The dtype of the scalar that a word passes on."""
    parameter = program.parameter(str(word.name))
    assert isinstance(parameter, Scalar)  # fly_host.validation has seen to it
    return parameter.dtype


def pack(
    launch: Launch, kernel: KernelInterface, program: Program, values: list[list[Any]]
) -> bytes:
    """The argument bytes. `values` holds a value for each word: addresses, integers, scalars, the
    bytes of descriptors.
    InputError for an integer that does not fit its word."""
    packed = bytearray(kernel.argument_bytes)
    for argument, words, given in zip(kernel.arguments, launch.arguments, values, strict=True):
        at = argument.offset
        for word, value in zip(words, given, strict=True):
            content = _word(kernel, program, word, value)
            packed[at : at + len(content)] = content
            at += len(content)
    return bytes(packed)


def _word(kernel: KernelInterface, program: Program, word: Word, value: Any) -> bytes:
    if word.kind == "pointer":
        return _ADDRESS.pack(value)
    if word.kind == "descriptor":
        return value
    if word.kind == "scalar":
        return dtypes.pack_scalar(value, scalar_type(word, program))
    return integer_bytes(kernel, word, value)


def integer_bytes(kernel: KernelInterface, word: Word, value: int) -> bytes:
    """An integer in the bytes of its word. InputError where it does not fit."""
    try:
        return value.to_bytes(word.size, "little", signed=True)
    except OverflowError:
        raise InputError(
            refusals.narrow(value, 8 * word.size, kernel.name),
            hint="declare it in 64 bits: a kernel's number as fx.Int64, an extent as fx.sym_int64",
        ) from None
