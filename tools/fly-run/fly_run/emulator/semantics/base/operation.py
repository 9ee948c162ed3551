"""The semantics of one mnemonic as data: a row of the semantics tables.

A signature gives the types of the operands in the assembler's order, results first:

    "i32 = i32, i32"                v_add_u32 v0, v1, v2
    "i32, mask = i32, i32, mask"    v_addc_co_u32 v0, vcc, v1, v2, vcc
    "float += float, float"         v_fmac_f32 v0, v1, v2      (the result is also the last input)

Vector types: i16 half (low half of a register), i32 float, i64 double (two registers), `mask` (one
bit a lane, a pair of scalar registers). Scalar types: i32, i64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

# Traits of targets (`AmdFacts.traits`): generations of instruction sets.
GFX9 = frozenset({"gfx9"})
SINCE_GFX11 = frozenset({"gfx11", "gfx12"})

SIZES = {"i16": 1, "half": 1, "i32": 1, "float": 1, "i64": 2, "double": 2, "mask": 2}


@dataclass(frozen=True)
class Operation:
    """One mnemonic without its encoding suffix. A mnemonic whose meaning depends on the target has
    a row for each meaning: `mnemonic@meaning`, with the `traits` of its targets
    (`v_cvt_f32_fp8@fnuz`, one of `Target.traits`; none: all targets). `form` selects the emitter in
    `emit`, which documents the arguments of `body`; `chunk` is the number of lanes that a VALU body
    processes at once (64: no loop; smaller for bodies that need many registers)."""

    name: str
    form: str
    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    body: Callable[..., Any] | None = None
    accumulate: bool = False  # the first output is also read, as the body's last argument
    chunk: int = 64
    split: bool = False  # i64 operands and results are pairs of i32 lanes, low and high
    keeps_high: bool = False  # a 16-bit result preserves the register's high half
    everywhere: bool = False  # the result is a temporary, and may be written regardless of EXEC
    traits: frozenset[str] = frozenset()
    # The input kinds of a VALU operation for which there are handlers: v a row, s a scalar, m a
    # mask. Scalars in other combinations are copied into rows (`Lowering.valu`). Of another form
    # the kinds instead of `VARIANTS`, if not all targets with those have the operation.
    kinds: tuple[str, ...] = ()
    # Waves of 32 lanes have handlers of their own besides; so has a VALU operation with masks.
    short: bool = False
    only_short: bool = False  # all waves of its targets have 32 lanes
    to_exec: bool = False  # waves of 32 lanes have a handler whose i32 result is EXEC
    detail: Any = None  # specific to this form's emitter and encoder

    @property
    def mnemonic(self) -> str:
        return self.name.partition("@")[0]

    @property
    def handlers(self) -> tuple[str, ...]:
        """The names of this operation's handlers: one for each combination of operand kinds, and
        those of them that waves of 32 lanes run instead (`SHORT`, `TO_EXEC`)."""
        kinds = self.kinds
        if self.form != "valu" and not kinds:
            kinds = VARIANTS.get(self.form, ("",))
        names = tuple(f"{self.name}.{kind}" if kind else self.name for kind in kinds)
        if self.to_exec:
            return (*names, *(f"{name}{TO_EXEC}" for name in names))
        more = (n for n, kind in zip(names, kinds, strict=True) if kind not in SHORT_KINDS)
        short = self.short or (self.form == "valu" and MASK in self.outputs + self.inputs)
        return (*names, *(f"{name}{SHORT}" for name in more)) if short else names


MASK = "mask"
# Ends of the names of handlers that only waves of 32 lanes run. A mask is a single register there,
# and the upper half of EXEC is 0.
SHORT = "/32"
# The result is EXEC: all its 64 bits are stored, because handlers load them, and processors can't
# forward a narrow store to a wider load.
TO_EXEC = "/exec"
# Handlers of the forms with a few fixed operand kinds.
#   memory: v = 64-bit vector address (scratch: vector offset), s = scalar base and 32-bit vector
#   offset (scratch: no vector offset), g = the same with a signed offset, h = one that counts
#   accesses of this size; a buffer's extra word describes its addresses
VARIANTS: dict[str, tuple[str, ...]] = {
    "global": ("v", "s", "g", "h"),
    "flat": ("v", "g", "h"),
    "scratch": ("v", "s"),
    "lds": ("v",),
    "matrix": (),  # steps with handlers of their own
    "wmma": (),
}
SHORT_KINDS = ("g", "h")  # those of a target all of whose waves have 32 lanes


def signature(text: str) -> dict[str, Any]:
    """Returns the `outputs`, `inputs` and `accumulate` of a signature."""
    accumulate = "+=" in text
    outputs, inputs = text.replace("+=", "=").split("=")
    split = lambda part: tuple(item.strip() for item in part.split(",") if item.strip())  # noqa: E731
    return {"outputs": split(outputs), "inputs": split(inputs), "accumulate": accumulate}


def valu(name: str, types: str, body: Callable[..., Any], **options: Any) -> Operation:
    made = signature(types)
    wide = any(kind in ("i64", "double") for kind in made["outputs"] + made["inputs"])
    options.setdefault("chunk", 16 if wide and not options.get("split") else 64)
    options.setdefault("kinds", usual_kinds(made["inputs"]))
    return Operation(name, "valu", body=body, **made, **options)


def usual_kinds(inputs: tuple[str, ...]) -> tuple[str, ...]:
    """Returns every combination of rows and scalars; of two inputs or more, one is a row."""
    choices = ["m" if kind == "mask" else "vs" for kind in inputs]
    found = ("".join(kinds) for kinds in product(*choices))
    return tuple(kinds for kinds in found if "v" in kinds or kinds.count("s") < 2)


def rows(count: int, masks: int = 0) -> tuple[str, ...]:
    """Returns the `kinds` of rarely used operations: all sources are rows."""
    return ("v" * count + "m" * masks,)


def scalar(name: str, types: str, body: Callable[..., Any], **options: Any) -> Operation:
    return Operation(name, "scalar", body=body, **signature(types), **options)
