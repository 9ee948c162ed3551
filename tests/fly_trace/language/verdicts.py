"""The rows of the table in docs/python.md: what becomes of each of Python's statements and
expressions in a kernel. `verdicts.txt` has a program for each row.

`python tests/fly_trace/language/verdicts.py` writes the table into the page.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[3] / "docs" / "python.md"
FILE = Path(__file__).with_name("verdicts.txt")
BEGIN, END = "<!-- verdicts -->\n", "<!-- end of verdicts -->\n"

# Nodes of 3.11 to 3.13 that are no statement, expression, operator or pattern of a function, or
# that no parser makes any more.
_ABSTRACT = "AST mod stmt expr expr_context boolop operator unaryop cmpop pattern type_ignore"
_ABSTRACT += " excepthandler slice type_param"
_ROOTS = "Module Interactive Expression FunctionType TypeIgnore"
_OLD = "Num Str Bytes NameConstant Ellipsis Index ExtSlice Suite AugLoad AugStore Param"
OMITTED = frozenset(f"{_ABSTRACT} {_ROOTS} {_OLD}".split())
# Nodes that only later versions than 3.11 have.
LATER = frozenset(("TypeAlias", "TypeVar", "ParamSpec", "TypeVarTuple"))


class Row(NamedTuple):
    """`nodes` are the classes of `ast` that the row is about. `python` is the body that Python
    runs for comparison, where `body` has no meaning outside a kernel. `said` is the error's
    position in the body, message and hint, or empty if the row runs."""

    nodes: tuple[str, ...]
    form: str
    body: str
    python: str
    said: str
    since: tuple[int, int]

    @property
    def verdict(self) -> str:
        """The cell of the table."""
        if not self.said:
            return "runs"
        return "refused: " + self.said.splitlines()[0].partition(": ")[2].replace("|", "\\|")


def rows(file: Path = FILE) -> list[Row]:
    text = file.read_text()
    found = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, rest = section.split("\n", 1)
        title, _, since = title.partition(" (since 3.")
        nodes, _, form = title.partition(": ")
        program, verdict = rest.rsplit("\n--\n", 1)
        body, _, python = program.partition("\n-- as in Python\n")
        verdict = verdict.strip("\n")
        said = "" if verdict == "runs" else verdict
        version = (3, int(since.rstrip(")"))) if since else (3, 11)
        found.append(Row(tuple(nodes.split()), form, body, python or body, said, version))
    return found


def node_classes() -> set[str]:
    """The names of `ast`'s classes that need a row, of this and later versions."""
    names = {
        name
        for name, value in vars(ast).items()
        if isinstance(value, type) and issubclass(value, ast.AST) and name[0] != "_"
    }
    return (names | LATER) - OMITTED


def table() -> str:
    """The table of the page."""
    lines = ["| `ast` | | |", "|---|---|---|"]
    for row in rows():
        names = " ".join(f"`{name}`" for name in row.nodes)
        form = row.form.replace("|", "\\|")
        since = f" (Python {row.since[0]}.{row.since[1]})" if row.since > (3, 11) else ""
        lines.append(f"| {names} | {form}{since} | {row.verdict} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
