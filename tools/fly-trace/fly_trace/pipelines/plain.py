"""What rings have on a target whose backend says nothing of them."""

from __future__ import annotations

from typing import Any, NoReturn

from fly_trace.core import tracing
from fly_trace.core.target import chip
from fly_trace.pipelines.mechanisms import Direct, Guards


class Plain:
    """See `mechanisms.Rings`: copies through registers, by all threads."""

    def is_specialised(self, target: str) -> bool:
        return False

    def direct(self, target: str) -> Direct | None:
        return None

    def guards(self, stages: int, consumers: int) -> Guards:
        return _refuse("a warp group that only copies")

    def source(self, tensor: Any, layout: Any) -> Any:
        return tensor

    def is_source(self, value: Any) -> bool:
        return False

    def uniform(self, value: Any) -> Any:
        return value

    def set_registers(self, count: int, threads: int) -> None:
        """The target has no such instruction."""

    def barrier(self, number: int, threads: int) -> None:
        _refuse("a barrier for a part of a block")


def _refuse(what: str) -> NoReturn:
    tracing.refuse(
        f"{chip('fx.pipeline')} has no {what}",
        "launch the kernel with as many threads as read: block=fx.pipeline_threads(…)",
    )


RINGS = Plain()
