"""Text of one LLVM function while it is written: values, blocks, and what was computed where."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Code:
    """Lines of a function. `allocations` go to its first block, so that a loop takes no more stack
    with each iteration."""

    lines: list[str] = field(default_factory=list)
    allocations: list[str] = field(default_factory=list)
    _count: int = 0

    def name(self, hint: str = "v") -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"%{hint}{self._count}"

    def value(self, text: str) -> str:
        """Computes a value; its name."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def room(self, kind: str, alignment: int = 8) -> str:
        """Memory on the stack, as long as the function runs."""
        name = self.name("room")
        self.allocations.append(f"  {name} = alloca {kind}, align {alignment}")
        return name

    def begin(self, label: str) -> None:
        """Begins a block. The one before it must have ended."""
        self.lines.append(f"{label[1:]}:")

    def jump(self, label: str) -> None:
        self.do(f"br label {label}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.do(f"br i1 {condition}, label {then}, label {otherwise}")

    def require(self, condition: str, otherwise: str) -> None:
        """Goes on where the condition holds, else to the block `otherwise`."""
        following = self.name("next")
        self.branch(condition, following, otherwise)
        self.begin(following)

    # -- what is used everywhere

    def both(self, a: str | None, b: str | None) -> str | None:
        """Whether two conditions hold; None is one that always does."""
        if a is None or b is None or a == b:
            return b if a is None else a
        return self.value(f"and i1 {a}, {b}")

    def at(self, base: str, offset: int) -> str:
        """The address `offset` bytes behind another."""
        return base if offset == 0 else self.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, kind: str, base: str, offset: int = 0) -> str:
        return self.value(f"load {kind}, ptr {self.at(base, offset)}, align {alignment(kind)}")

    def store(self, kind: str, value: str, base: str, offset: int = 0) -> None:
        self.do(f"store {kind} {value}, ptr {self.at(base, offset)}, align {alignment(kind)}")

    def integers(self, values: list[str]) -> str:
        """The address of an array of 64-bit integers on the stack."""
        room = self.room(f"[{max(len(values), 1)} x i64]")
        for position, value in enumerate(values):
            self.store("i64", value, room, 8 * position)
        return room


def alignment(kind: str) -> int:
    return {"i8": 1, "i16": 2, "i32": 4, "float": 4}.get(kind, 8)
