"""Memory that a kernel reaches by an address which is an argument.

The emulator checks each access against the memory that it knows: that of the arrays of a call. For
an address it is told the memory around it, at the same addresses: the storage of torch's tensor
that has it, exactly, or else the whole mapping of the operating system. Addresses in memory are not
followed.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Span(NamedTuple):
    """Bytes from `start` to `end`."""

    start: int
    end: int
    writable: bool = True


def _tensors() -> list[Span]:
    """The storages of torch's tensors in host memory."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    found = {}
    for one in gc.get_objects():
        if type(one) is torch.Tensor and one.device.type == "cpu":
            try:
                storage = one.untyped_storage()
                start, size = storage.data_ptr(), storage.nbytes()
            except Exception:  # a tensor without storage
                continue
            if size:
                found[start] = Span(start, start + size)
    return list(found.values())


def _mappings() -> Iterator[Span]:
    with open("/proc/self/maps") as file:
        for line in file:
            words = line.split(maxsplit=2)
            if "[v" in line or not words[1].startswith("r"):
                continue
            start, _, end = words[0].partition("-")
            yield Span(int(start, 16), int(end, 16), words[1][1] == "w")


def spans_of(addresses: Iterable[int]) -> list[Span]:
    """The memory around addresses, each piece once."""
    wanted = {one for one in addresses if one > 0}
    found: dict[int, Span] = {}
    for spans in (_tensors, _mappings):
        if not wanted:
            break
        for span in spans():
            inside = {one for one in wanted if span.start <= one < span.end}
            if inside:
                found[span.start] = span
                wanted -= inside
    return _apart(found.values())


def _apart(spans: Iterable[Span]) -> list[Span]:
    """Spans that overlap as one."""
    made: list[Span] = []
    for span in sorted(spans):
        if made and span.start < made[-1].end:
            last = made[-1]
            end = max(last.end, span.end)
            made[-1] = Span(last.start, end, last.writable and span.writable)
        else:
            made.append(span)
    return made


@contextlib.contextmanager
def accessible(device: Any, addresses: list[int]) -> Iterator[None]:
    """Lets kernels on the emulator access the memory around addresses, in the block."""
    if not addresses or not hasattr(device, "map"):
        yield
        return
    spans = spans_of(addresses)
    held = []
    try:
        for span in spans:
            size = span.end - span.start
            device.map(span.start, size, writable=span.writable, label=f"memory at 0x{span.start:x}")
            held.append(span.start)
        yield
    finally:
        for start in held:
            device.release(start)
