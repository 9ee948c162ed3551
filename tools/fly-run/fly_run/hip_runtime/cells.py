"""Values at addresses that callers pass. A null pointer is hipErrorInvalidValue."""

from __future__ import annotations

import ctypes
from typing import Any

from fly_run.hip_runtime.errors import need


def put(address: int, kind: Any, value: float) -> None:
    need(address, reason="a null pointer")
    kind.from_address(address).value = value


def put_int(address: int, value: int) -> None:
    put(address, ctypes.c_int32, value)


def put_size(address: int, value: int) -> None:
    put(address, ctypes.c_uint64, value)


def put_text(address: int, text: str, length: int) -> None:
    """Stores a string in `length` bytes, as much of it as fits."""
    need(address and length > 0, reason="no room for a string")
    data = text.encode()[: length - 1] + b"\0"
    ctypes.memmove(address, data, len(data))


def get(address: int, kind: Any) -> int:
    need(address, reason="a null pointer")
    return kind.from_address(address).value


def get_pointer(address: int) -> int:
    return get(address, ctypes.c_uint64)


def get_text(address: int) -> str:
    need(address, reason="a null pointer")
    return ctypes.string_at(address).decode(errors="replace")
