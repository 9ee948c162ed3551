"""Fast-math flags: what code generation may ignore of an operation on floats.

Said to one function (`fx.exp(x, fastmath="afn")`) or to all that is computed in a block
(`with fx.fastmath("contract"):`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fly_trace import tracing

if TYPE_CHECKING:
    from fly_trace.builder import Builder

__all__ = ["fastmath"]

Flags = str | Iterable[str] | None

# LLVM's language reference, "Fast-Math Flags".
FLAGS = ("none", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast")

_OPS = frozenset(
    [
        *(f"arith.{name}f" for name in ("add", "sub", "mul", "div", "rem", "neg", "cmp")),
        *(f"arith.{name}" for name in ("maximumf", "minimumf", "maxnumf", "minnumf")),
    ]
)
_OF_INTEGERS = frozenset(f"math.{name}" for name in ("ctpop", "ctlz", "cttz", "ipowi"))


def is_flagged(op: str) -> bool:
    """Whether an op may have the flags."""
    return op in _OPS or (op.startswith("math.") and op not in _OF_INTEGERS)


def attribute(builder: Builder, flags: str | Iterable[str]) -> Any:
    """The flags as an op has them: `flags` is one, several with commas between, or a list."""
    words = flags.split(",") if isinstance(flags, str) else [str(word) for word in flags]
    for word in words:
        if word not in FLAGS:
            tracing.refuse(f"fastmath has no flag {word!r}", f"its flags: {', '.join(FLAGS)}")
    return builder.attribute(f"#arith.fastmath<{','.join(words)}>")


def of_op(builder: Builder, flags: Flags) -> dict[str, Any]:
    """An op's own attribute; none where nothing is said of it alone."""
    return {} if flags is None else {"fastmath": attribute(builder, flags)}


class fastmath:
    """`with fx.fastmath("afn,nnan"):` operations on floats that are traced in the block have these
    flags, those of functions called there too. A flag said to a function alone replaces them."""

    def __init__(self, flags: str | Iterable[str]):
        self.attribute = attribute(tracing.kernel("fx.fastmath"), flags)
        self.before: Any = None

    def __enter__(self) -> None:
        builder = tracing.kernel("fx.fastmath")
        self.before, builder.fastmath = builder.fastmath, self.attribute

    def __exit__(self, *_: object) -> None:
        tracing.kernel("fx.fastmath").fastmath = self.before
