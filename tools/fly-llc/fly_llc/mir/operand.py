"""Operands of machine instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fly_common.record import record

# Words before a register (MIR reference manual, "Register Flags").
REGISTER_FLAGS = frozenset(
    "implicit implicit-def def dead killed undef internal early-clobber debug-use renamable".split()  # noqa: SIM905
)
_REGISTER = re.compile(
    r"(?P<name>\$\w+|%\w+)(?:\.(?P<sub>\w+))?(?P<rest>(?::\w+)?(?:\(.*\))?(?::0x[0-9A-F]+)?)"
)
# Prefixes of names that begin with % and are not registers.
_OTHER = re.compile(r"%(?:bb|stack|fixed-stack|const|jump-table|ir|ir-block|subreg)[.]")
_INTEGER = re.compile(r"-?\d{1,20}")


@record(frozen=False)
class Operand:
    """`text` is the operand as printed, without its flags.

    For a register, `register` is its name (`$vgpr0_vgpr1`, `%12`), `sub` the subregister (`sub0`),
    `flags` the words before it, and `rest` what follows (`:vgpr_32`, `(tied-def 0)`, `(p4)`).
    """

    text: str
    flags: tuple[str, ...] = ()
    register: str | None = None
    sub: str | None = None
    rest: str = ""

    @staticmethod
    def parse(text: str) -> Operand:
        words = text.split(" ")
        count = 0
        while count < len(words) - 1 and words[count] in REGISTER_FLAGS:
            count += 1
        flags, core = tuple(words[:count]), " ".join(words[count:])
        if core[:1] in "$%" and not _OTHER.match(core) and (match := _REGISTER.fullmatch(core)):
            return Operand(core, flags, match["name"], match["sub"], match["rest"])
        return Operand(text) if flags else Operand(core)

    @property
    def is_register(self) -> bool:
        return self.register is not None

    @property
    def is_virtual(self) -> bool:
        return self.register is not None and self.register.startswith("%")

    @property
    def implicit(self) -> bool:
        return "implicit" in self.flags or "implicit-def" in self.flags

    @property
    def defines(self) -> bool:
        """Whether the flags say that the register is written. Results left of `=` are written as
        well."""
        return "implicit-def" in self.flags or "def" in self.flags

    @property
    def integer(self) -> int | None:
        """The value of an immediate."""
        return int(self.text) if _INTEGER.fullmatch(self.text) else None

    def with_register(self, name: str) -> Operand:
        """The same operand with another register."""
        sub = f".{self.sub}" if self.sub else ""
        return Operand(f"{name}{sub}{self.rest}", self.flags, name, self.sub, self.rest)

    def without(self, *flags: str) -> Operand:
        """The same operand without these flags."""
        kept = tuple(flag for flag in self.flags if flag not in flags)
        return Operand(self.text, kept, self.register, self.sub, self.rest)

    def __str__(self) -> str:
        return " ".join((*self.flags, self.text))


def split(text: str) -> Iterator[str]:
    """Splits `text` at the commas outside brackets and quotes."""
    depth, start, quote = 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            if char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    last = text[start:].strip()
    if last:
        yield last
