"""Memory that a kernel reaches by an address which is an argument.

FlyDSL's kernels take addresses, and read ahead of what they need. So the emulator sees the host's
memory as a GPU does, whole mappings of the operating system. A kernel may read all of it, and write
the arrays of the call, and what the addresses are in: the storage of one of torch's tensors, or
else a mapping. In strict mode it may only read these, too.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MOST_ADDRESSES = 4096  # elements of an array that is searched for addresses


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


class HostMemory:
    """The emulator as a device that sees the host's memory at its own addresses, as a GPU does that
    can access pageable memory. `spans` may be written, if they are writable, and `beneath`, which
    contains some of them, is for reading: those of FlyDSL's kernels that fetch ahead read beyond an
    array. What is not mapped is still a fault."""

    def __init__(self, device: Any, spans: list[Span], beneath: list[Span]):
        self._device, self._spans, self._beneath, self._held = device, spans, beneath, []

    def __enter__(self) -> HostMemory:
        for span in self._spans:
            self._map(span, f"the memory at 0x{span.start:x}")
        for span in self._beneath:
            if span.start in self._held:  # an array is where the mapping begins
                end = next(one.end for one in self._spans if one.start == span.start)
                span = Span(end, span.end)
            if span.start < span.end:
                self._map(span, "memory outside the call's arrays", beneath=True)
        return self

    def _map(self, span: Span, label: str, **named: bool) -> None:
        size = span.end - span.start
        self._device.map(span.start, size, writable=span.writable, label=label, **named)
        self._held.append(span.start)

    def __exit__(self, *_: object) -> None:
        while self._held:
            self._device.release(self._held.pop())

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        known = (*self._spans, *self._beneath)
        if any(span.start <= pointer and pointer + nbytes <= span.end for span in known):
            return pointer
        return self._device.adopt(pointer, nbytes, writable=writable, label=label)

    def adopt_all(self, spans: Any) -> list[int]:
        return [self.adopt(at, size, writable=write, label=name) for name, at, size, write in spans]

    def release(self, address: int) -> None:
        known = (*self._spans, *self._beneath)
        if not any(span.start <= address < span.end for span in known):
            self._device.release(address)

    def release_all(self, addresses: Any) -> None:
        for address in addresses:
            self.release(address)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


@contextlib.contextmanager
def accessible(device: Any, addresses: list[int], arrays: list[Any]) -> Iterator[Any]:
    """The device for a launch with these addresses among its arguments, and these arrays.

    In strict mode each access is checked against the arrays, and the storages of tensors that have
    an address; else the emulator may read all memory around them too.
    """
    if not hasattr(device, "map") or not (addresses or arrays):
        yield device
        return
    if device.options.strict:
        spans, beneath = spans_of(addresses), []
    else:
        spans, beneath = _writable(addresses, arrays)
    with HostMemory(device, spans, beneath) as memory:
        yield memory


def _writable(addresses: list[int], arrays: list[Any]) -> tuple[list[Span], list[Span]]:
    """What a launch may write, and the mappings around it."""
    mappings = list(_mappings())
    pointers = [*addresses, *_in_tables(arrays, mappings)]
    own = [*filter(None, map(_bounds, arrays)), *spans_of(pointers)]
    beneath, spans = [], []
    for mapping in mappings:
        inside = [one for one in own if mapping.start <= one.start < mapping.end]
        if inside:
            beneath.append(mapping)
            spans += [one._replace(writable=one.writable and mapping.writable) for one in inside]
    return _apart(spans), beneath


def _bounds(array: Any) -> Span | None:
    """The memory of an array, from its first byte on to behind its last."""
    storage = getattr(array, "untyped_storage", None)
    if storage is not None:  # torch's, the whole of it: its views have one address space
        held = storage()
        return Span(held.data_ptr(), held.data_ptr() + held.nbytes()) if held.nbytes() else None
    if not array.size:
        return None
    start = end = array.ctypes.data
    for extent, stride in zip(array.shape, array.strides, strict=True):
        start += min(0, (extent - 1) * stride)
        end += max(0, (extent - 1) * stride)
    return Span(start, end + array.itemsize)


def _in_tables(arrays: list[Any], mappings: list[Span]) -> list[int]:
    """The addresses that arrays of 64-bit integers have as elements."""
    found: set[int] = set()
    if not mappings:
        return []
    low = min(one.start for one in mappings)
    for array in arrays:
        if getattr(array, "ctypes", None) is None or array.dtype.kind not in "iu":
            continue
        if array.dtype.itemsize != 8 or not 0 < array.size <= MOST_ADDRESSES:
            continue
        if int(array.max()) >= low:
            found.update(one for one in array.reshape(-1).tolist() if one >= low)
    return [one for one in found if any(span.start <= one < span.end for span in mappings)]
