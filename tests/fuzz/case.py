"""One case: a mutated input, identified by the seed of the run, the kind and a number."""

from __future__ import annotations

import random
from dataclasses import dataclass

from fly_common.errors import FlyError

from fuzz.damage import damaged
from fuzz.kinds import KINDS, Kind

LONGEST_LINE = 2000  # characters of an error's first line; longer ones quote a whole value


@dataclass(frozen=True)
class Case:
    seed: int
    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"

    def made(self, seeds: list[bytes]) -> tuple[bytes, random.Random]:
        """Returns the mutated input, and the generator for further choices."""
        generator = random.Random(f"{self.seed} {self.kind} {self.number}")
        data = generator.choice(seeds)
        kind = KINDS[self.kind]
        made = damaged(generator, data, seeds, text=kind.text, special=kind.special)
        return made, generator


def judge_line(text: str, tool: str) -> str | None:
    """Returns what is wrong with a tool's error text; None if it is proper."""
    line, _, _ = text.partition("\n")
    if not line.startswith(f"{tool}: error: "):
        return "the first line is no error line"
    message = line.removeprefix(f"{tool}: error: ").strip()
    if not message or (message.endswith(":") and " " not in message):
        return "an error without a text"
    if message.startswith("internal: "):
        return "internal"
    if len(line) > LONGEST_LINE:
        return f"an error line of {len(line)} characters"
    return None


def attempt(kind: Kind, data: bytes, generator: random.Random) -> tuple[bool, str | None]:
    """Reads the input in this process; returns whether it was accepted, and what is wrong, if
    anything."""
    try:
        kind.read(data, generator)
    except FlyError as error:
        return False, judge_line(error.render(kind.tool), kind.tool)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"[:300]
    return True, None
