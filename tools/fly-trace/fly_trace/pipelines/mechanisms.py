"""What a target has for rings: a backend's functions, by its reference `rings`.

A backend that has nothing of this kind has rings whose copies go through registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fly_backend.registry import find
from fly_common.record import record
from fly_common.resolve import resolve
from fly_target import registry

from fly_trace.core.target import chip

GROUP = 128  # threads of a warp group


@record
class Direct:
    """Asynchronous copies from memory to shared memory.

    `copy(source, target, dtype)` starts to copy 16 bytes, by this thread. `commit()` makes a group
    of this thread's copies; `wait(pending)` waits until at most `pending` groups are running.
    Without `groups`, hardware counts copies: then `wait(pending)` is for that many copies, and
    `commit` does nothing.
    """

    copy: Callable[[Any, Any, Any], None]
    commit: Callable[[], None]
    wait: Callable[[int], None]
    groups: bool = True
    most: int = 0  # copies that a wait can leave


class Guards(Protocol):
    """Barriers in shared memory that guard the buffers of a ring: `full` and `free` ones."""

    def expect(self, stage: Any, parity: Any, nbytes: int) -> None:
        """Waits until a buffer is free; its `full` barrier then waits for so many bytes."""
        ...

    def load(self, source: Any, coordinate: tuple[Any, ...], tile: Any, stage: Any) -> None:
        """Starts to copy a tile; the `full` barrier tells that it has arrived."""
        ...

    def filled(self, stage: Any, parity: Any) -> None:
        """Waits until a buffer is full."""
        ...

    def release(self, stage: Any) -> None:
        """Tells for this thread's warp that it has read a buffer."""
        ...


class Rings(Protocol):
    """What a backend refers to."""

    def is_specialised(self, target: str) -> bool:
        """Whether a warp group of its own copies best."""
        ...

    def direct(self, target: str) -> Direct | None:
        """Asynchronous copies to shared memory that suit rings, if the target has some."""
        ...

    def guards(self, stages: int, consumers: int) -> Guards:
        """Makes guards; `consumers` is the number of threads that read."""
        ...

    def source(self, tensor: Any, layout: Any) -> Any:
        """In the host function: what `Guards.load` copies tiles of a tensor from."""
        ...

    def is_source(self, value: Any) -> bool:
        """Whether a value is one of those."""
        ...

    def uniform(self, value: Any) -> Any:
        """The i32, which is the same in all lanes of a wave, known to be so."""
        ...

    def set_registers(self, count: int, threads: int) -> None:
        """Changes the registers of this warp group's threads, where the target can. The block has
        `threads` threads."""
        ...

    def barrier(self, number: int, threads: int) -> None:
        """Waits for a part of the block. Refuses a target that has no such barrier."""
        ...


def rings() -> Rings:
    """What the backend of the trace's target has."""
    row = registry.find(chip("fx.pipeline"))
    reference = find(row.backend).rings or "fly_trace.pipelines.plain:RINGS"
    found: Rings = resolve(reference)
    return found


def target() -> str:
    """The trace's target."""
    return chip("fx.pipeline")
