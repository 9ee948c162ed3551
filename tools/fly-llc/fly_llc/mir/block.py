"""A basic block of a machine function."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fly_common.quoting import quoted

from fly_llc.mir.instruction import Instruction

_LABEL = re.compile(r"^  bb\.(?P<number>\d{1,9})(?!\d)(?:\.(?P<name>[^\s(:]+))?.*:\s*(;.*)?$")
_SUCCESSOR = re.compile(r"%bb\.(\d{1,9})(?!\d)")


class Block:
    """`label` is the line that starts the block, `head` the lines between it and the instructions
    (successors, live-ins, comments), `tail` those after the last instruction (an empty line)."""

    def __init__(self, label: str):
        self.label = label
        self.head: list[str] = []
        self.instructions: list[Instruction] = []
        self.tail: list[str] = []
        # Lines among the instructions that are not instructions (comments), by the instruction they
        # precede.
        self.between: dict[int, list[str]] = {}

    @staticmethod
    def is_label(line: str) -> bool:
        return _LABEL.match(line) is not None

    @property
    def number(self) -> int:
        match = _LABEL.match(self.label)
        assert match
        return int(match["number"])

    @property
    def name(self) -> str:
        """`bb.3`, the name in branches without the percent sign."""
        return f"bb.{self.number}"

    @property
    def successors(self) -> list[int]:
        """The numbers of the successor blocks."""
        for line in self.head:
            if line.lstrip().startswith("successors:"):
                return [int(number) for number in _SUCCESSOR.findall(line)]
        return []

    @property
    def live_ins(self) -> list[str]:
        """The physical registers that are live at its start."""
        for line in self.head:
            text = line.strip()
            if text.startswith("liveins:"):
                return [one.partition(":")[0].strip() for one in text[8:].split(",")]
        return []

    def insert(self, index: int, *texts: str | Instruction) -> None:
        """Inserts instructions before the one at `index`. Negative indices count from the end."""
        made = [one if isinstance(one, Instruction) else Instruction(one) for one in texts]
        self.instructions[index:index] = made

    def append(self, *texts: str | Instruction) -> None:
        self.insert(len(self.instructions), *texts)

    def insert_before(self, place: Instruction, *texts: str | Instruction) -> None:
        self.insert(self.index(place), *texts)

    def insert_after(self, place: Instruction, *texts: str | Instruction) -> None:
        self.insert(self.index(place) + 1, *texts)

    def remove(self, instruction: Instruction) -> None:
        del self.instructions[self.index(instruction)]

    def reorder(self, instructions: Iterable[Instruction]) -> None:
        """Reorders the instructions. Raises ValueError if they are not the same ones."""
        wanted = list(instructions)
        if sorted(map(id, wanted)) != sorted(map(id, self.instructions)):
            raise ValueError(f"{self.name}: the new order does not contain the same instructions")
        self.instructions = wanted

    def index(self, instruction: Instruction) -> int:
        """The index of an instruction, by identity."""
        for number, one in enumerate(self.instructions):
            if one is instruction:
                return number
        raise ValueError(f"{self.name} has no {quoted(instruction)}")

    @property
    def lines(self) -> list[str]:
        lines = [self.label, *self.head]
        for one in self.instructions:
            lines += self.between.get(id(one), ())
            lines.append(str(one))
        return lines + self.tail
