"""A machine instruction. It is parsed on first access, and printed unchanged unless it is
modified."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fly_llc.mir.operand import Operand, split

# Words between `=` and the opcode (MIR reference manual, "Instruction Flags").
FLAGS = frozenset(
    """
    frame-setup frame-destroy nnan ninf nsz arcp contract afn reassoc nuw nsw exact nofpexcept
    nomerge unpredictable noconvergent nneg disjoint samesign lr-split inbounds nusw
    """.split()  # noqa: SIM905
)
_ATTRIBUTE = re.compile(
    r"(?:debug-location|debug-instr-number|pre-instr-symbol|post-instr-symbol|heap-alloc-marker"
    r"|pcsections|mmra|cfi-type|deactivation-symbol)\b"
)
_OPCODE = re.compile(r"[A-Za-z_][\w.]*")


class Instruction:
    """`text` is the instruction on one line, without its indentation. `bundled` holds the
    instructions of the bundle that starts with this one.

    `results` are the registers left of `=`, `operands` what follows the opcode. The lists may be
    modified; call `edited()` or `replace` to update the text.
    """

    __slots__ = ("_parts", "bundled", "indent", "text")

    def __init__(self, text: str, indent: str = "    "):
        self.text, self.indent = text, indent
        self.bundled: list[Instruction] = []
        self._parts: _Parts | None = None

    def __repr__(self) -> str:
        return f"Instruction({self.text!r})"

    def __str__(self) -> str:
        if not self.bundled:
            return f"{self.indent}{self.text}"
        inside = "\n".join(map(str, self.bundled))
        return f"{self.indent}{self.text}\n{inside}\n{self.indent}}}"

    @property
    def parts(self) -> _Parts:
        if self._parts is None:
            self._parts = _Parts(self.text)
        return self._parts

    @property
    def opcode(self) -> str:
        return self.parts.opcode

    @property
    def flags(self) -> list[str]:
        return self.parts.flags

    @property
    def results(self) -> list[Operand]:
        return self.parts.results

    @property
    def operands(self) -> list[Operand]:
        return self.parts.operands

    @property
    def memory(self) -> str:
        """The memory operands as text: `(load (s32) from %ir.20, addrspace 1)`."""
        return self.parts.memory

    @property
    def attributes(self) -> list[str]:
        """Attributes such as `debug-location !12`."""
        return self.parts.attributes

    @property
    def defined(self) -> Iterator[Operand]:
        """The registers that it writes; for a bundle, those of its first instruction."""
        yield from self.results
        yield from (one for one in self.operands if one.is_register and one.defines)

    @property
    def used(self) -> Iterator[Operand]:
        """The registers that it reads."""
        for one in self.operands:
            if one.is_register and not one.defines and "undef" not in one.flags:
                yield one

    def replace(
        self,
        opcode: str | None = None,
        *,
        results: Iterable[Operand] | None = None,
        operands: Iterable[Operand | str | int] | None = None,
    ) -> None:
        """Modifies the instruction in place."""
        parts = self.parts
        if opcode is not None:
            parts.opcode = opcode
        if results is not None:
            parts.results = list(results)
        if operands is not None:
            parts.operands = [
                one if isinstance(one, Operand) else Operand.parse(str(one)) for one in operands
            ]
        self.edited()

    def edited(self) -> None:
        """Updates the text after the parts were modified."""
        self.text = str(self.parts)


class _Parts:
    """The parts of a line: `results = flags OPCODE operands, attributes :: memory {`, `;
    comment`."""

    def __init__(self, text: str):
        text, self.comment = _without_comment(text)
        self.brace = text.endswith("{")
        text = text.removesuffix("{").rstrip()
        text, _, self.memory = text.partition(" :: ")
        head, equals, tail = text.partition(" = ")
        if not equals:
            head, tail = "", text
        words = tail.split(" ")
        count = 0
        while count < len(words) - 1 and words[count] in FLAGS:
            count += 1
        self.flags = words[:count]
        rest = " ".join(words[count:])
        match = _OPCODE.match(rest)
        self.opcode = match[0] if match else ""
        self.results = [Operand.parse(piece) for piece in split(head)]
        pieces = list(split(rest[len(self.opcode) :]))
        self.attributes = [piece for piece in pieces if _ATTRIBUTE.match(piece)]
        self.operands = [Operand.parse(piece) for piece in pieces if not _ATTRIBUTE.match(piece)]

    def __str__(self) -> str:
        results = f"{', '.join(map(str, self.results))} = " if self.results else ""
        words = " ".join([*self.flags, self.opcode])
        listed = ", ".join([*map(str, self.operands), *self.attributes])
        text = f"{results}{words} {listed}".rstrip()
        text += f" :: {self.memory}" if self.memory else ""
        text += " {" if self.brace else ""
        return text + self.comment


def _without_comment(text: str) -> tuple[str, str]:
    """Splits off a comment, which begins with a semicolon outside quotes."""
    quoted = False
    for at, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif char == ";" and not quoted:
            kept = text[:at].rstrip()
            return kept, text[len(kept) :]
    return text, ""
