"""The page of results, results/h200.md: sections that different programs write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

PAGE = Path(__file__).parents[1] / "results" / "h200.md"


def put(section: str, page: Path = PAGE) -> None:
    """Puts a section, which begins with its heading, in place of an earlier one or to the end."""
    head = section.split("\n", 1)[0]
    parts = sections(page.read_text(encoding="utf-8"))
    parts[head] = section
    _write(page, parts.values())


def begin(text: str, page: Path = PAGE) -> None:
    """Puts a text of several sections to the beginning. Sections that it lacks are kept."""
    before = sections(page.read_text(encoding="utf-8")) if page.exists() else {}
    new = sections(text)
    kept = [one for head, one in before.items() if head not in new and head.startswith("## ")]
    _write(page, [*new.values(), *kept])


def sections(text: str) -> dict[str, str]:
    """Sections by their headings; what comes before the first one by its first line."""
    parts = [one for one in re.split(r"^(?=## )", text, flags=re.MULTILINE) if one.strip()]
    return {one.split("\n", 1)[0]: one for one in parts}


def _write(page: Path, parts: Iterable[str]) -> None:
    page.write_text("\n".join(one.rstrip("\n") + "\n" for one in parts), encoding="utf-8")
