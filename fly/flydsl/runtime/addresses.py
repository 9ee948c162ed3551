"""Memory that a kernel reaches by an address which is an argument.

FlyDSL's kernels take addresses, and read ahead of what they need. So the emulator sees the host's
memory as a GPU does, whole mappings of the operating system. In strict mode it checks each access
against the arrays of a call, and for an address against the storage of torch's tensor that has it.
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


class HostMemory:
    """The emulator as a device that sees the host's memory at its own addresses, as a GPU does that
    can access pageable memory: whole mappings of the operating system. A kernel may read beyond an
    array, as those of FlyDSL do that fetch ahead; what is not mapped is still a fault."""

    def __init__(self, device: Any, spans: list[Span]):
        self._device, self._spans, self._held = device, spans, []

    def __enter__(self) -> HostMemory:
        for span in self._spans:
            size = span.end - span.start
            label = f"the memory at 0x{span.start:x}"
            self._device.map(span.start, size, writable=span.writable, label=label)
            self._held.append(span.start)
        return self

    def __exit__(self, *_: object) -> None:
        while self._held:
            self._device.release(self._held.pop())

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        if any(span.start <= pointer and pointer + nbytes <= span.end for span in self._spans):
            return pointer
        return self._device.adopt(pointer, nbytes, writable=writable, label=label)

    def adopt_all(self, spans: Any) -> list[int]:
        return [self.adopt(at, size, writable=write, label=name) for name, at, size, write in spans]

    def release(self, address: int) -> None:
        if not any(span.start <= address < span.end for span in self._spans):
            self._device.release(address)

    def release_all(self, addresses: Any) -> None:
        for address in addresses:
            self.release(address)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


@contextlib.contextmanager
def accessible(device: Any, addresses: list[int], arrays: list[int]) -> Iterator[Any]:
    """The device for a launch with these addresses among its arguments, and arrays at others.

    In strict mode each access is checked against the arrays, and the storages of tensors that have
    an address; else the emulator sees all memory around them.
    """
    if not hasattr(device, "map") or not (addresses or arrays):
        yield device
        return
    strict = bool(device.options.strict)
    spans = spans_of(addresses) if strict else _apart(_around(addresses + arrays))
    with HostMemory(device, spans) as memory:
        yield memory


def _around(addresses: list[int]) -> list[Span]:
    """The mappings that hold addresses."""
    wanted = {one for one in addresses if one > 0}
    return [span for span in _mappings() if any(span.start <= one < span.end for one in wanted)]
