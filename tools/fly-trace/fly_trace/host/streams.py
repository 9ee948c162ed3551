"""Streams in the host function: a parameter annotated with `fx.Stream`, for `launch(stream=…)`."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.signatures.annotations import Stream

TYPE = "!gpu.async.token"  # a stream in MLIR


class StreamValue(Stream):
    """A stream that the caller of the host function gives."""

    described = "a stream"

    def __init__(self, name: str, ssa: Any):
        super().__init__()
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "ssa", ssa)

    def __repr__(self) -> str:
        return f"<stream {self.name}>"  # type: ignore[attr-defined]


def ssa_of(stream: Any) -> Any:
    """The SSA value of a launch's stream; None is the current stream, which no value says."""
    if isinstance(stream, StreamValue):
        return stream.ssa  # type: ignore[attr-defined]
    if stream is None or (isinstance(stream, Stream) and stream.value is None):
        return None
    tracing.refuse(
        f"stream is a parameter of the host function, not {describe(stream)}",
        "annotate a parameter, stream: fx.Stream, and pass the stream when you call",
    )
