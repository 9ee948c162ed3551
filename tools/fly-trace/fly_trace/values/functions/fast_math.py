"""Fast-math flags for operations on floats.

They are given for one call (`fx.exp(x, fastmath="afn")`), or for everything that is traced in a
block (`with fx.fastmath("contract"):`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fly_common.quoting import quoted

from fly_trace.core import tracing

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

__all__ = ["FastMathFlags", "fastmath"]


class FastMathFlags(enum.Flag):
    """LLVM's fast-math flags (language reference, "Fast-Math Flags"), combined by `|`. `fast` is
    all of them."""

    none = 0
    reassoc = enum.auto()
    nnan = enum.auto()
    ninf = enum.auto()
    nsz = enum.auto()
    arcp = enum.auto()
    contract = enum.auto()
    afn = enum.auto()
    fast = reassoc | nnan | ninf | nsz | arcp | contract | afn


FLAGS = tuple(FastMathFlags.__members__)
# A flag, a name, several names separated by commas, or a list.
Written = FastMathFlags | str | Iterable[FastMathFlags | str]
Flags = Written | None

_OPS = frozenset(
    [
        *(f"arith.{name}f" for name in ("add", "sub", "mul", "div", "rem", "neg", "cmp")),
        *(f"arith.{name}" for name in ("maximumf", "minimumf", "maxnumf", "minnumf")),
    ]
)
_OF_INTEGERS = frozenset(f"math.{name}" for name in ("ctpop", "ctlz", "cttz", "ipowi"))


def is_flagged(op: str) -> bool:
    """Whether an op supports the flags."""
    return op in _OPS or (op.startswith("math.") and op not in _OF_INTEGERS)


def _words(flags: Written) -> list[str]:
    if isinstance(flags, str):
        return flags.split(",")
    if isinstance(flags, FastMathFlags):
        named = [flags] if flags.name in FLAGS else list(flags)
        return [str(flag.name) for flag in named]
    return [word for flag in flags for word in _words(flag)]


def attribute(builder: Builder, flags: Written) -> ir.Attribute | None:
    """The flags as an op's attribute."""
    words = _words(flags)
    for word in words:
        if word not in FLAGS:
            tracing.refuse(f"fastmath has no flag {quoted(word)}", f"its flags: {', '.join(FLAGS)}")
    return builder.attribute(f"#arith.fastmath<{','.join(words)}>")


def of_op(builder: Builder, flags: Flags) -> dict[str, Any]:
    """The attribute for one op; empty if no flags are given for it."""
    return {} if flags is None else {"fastmath": attribute(builder, flags)}


class fastmath:
    """`with fx.fastmath("afn,nnan"):` sets the flags of operations on floats that are traced in the
    block, including those in called functions. Flags given for a single call replace them."""

    def __init__(self, flags: Written):
        self.attribute = attribute(tracing.kernel("fx.fastmath"), flags)
        self.before: Any = None

    def __enter__(self) -> None:
        builder = tracing.kernel("fx.fastmath")
        self.before, builder.fastmath = builder.fastmath, self.attribute

    def __exit__(self, *_: object) -> None:
        tracing.kernel("fx.fastmath").fastmath = self.before
