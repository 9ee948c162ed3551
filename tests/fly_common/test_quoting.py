"""Values in messages: as Python writes them, 200 characters at most."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from fly_common.errors import InputError, UsageError
from fly_common.quoting import MOST, quoted, shortened


@pytest.mark.parametrize("value", ["", "x", "a'b", "\x1b[2J", b"\xff", 12, None, ("a", 1), "é"])
def test_a_short_value_is_its_repr(value: object) -> None:
    assert quoted(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    ["x" * 100_000, "'" * 500, '"' * 500, "\x00" * 150, b"\xff" * 1000, list(range(1000)), 10**400],
    ids=["text", "quote", "quotes", "control", "bytes", "list", "number"],
)
def test_a_long_value_is_cut_in_the_middle(value: object) -> None:
    text = quoted(value)
    assert len(text) == MOST
    assert text.count("…") == 1
    assert text[:20] == repr(value)[:20]
    assert text[-20:] == repr(value)[-20:]


def test_the_bound_is_the_callers() -> None:
    assert quoted("abcdefghij", 8) == "'abcd…j'"
    assert shortened("abcdefghij", 6) == "abcd…j"
    assert shortened("abcdef", 6) == "abcdef"


def test_a_value_that_can_not_be_printed_is_named_by_its_type() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert quoted(Odd()) == "<Odd>"
    assert quoted(10**5000) == "<int>"  # Python refuses to print more than 4,300 digits


ROOT = Path(__file__).resolve().parents[2]
# What people call as a library says nothing of their tools' input: its `repr`s are for programmers.
PROGRAMMERS = ("record.py", "store.py", "instruction.py", "__init__.py", "python_text.py")


def test_no_message_quotes_without_a_bound() -> None:
    """`{value!r}` in a message is as long as the value."""
    found = []
    folders = [ROOT / "common", *(ROOT / "tools").glob("fly-[!t]*")]
    for path in sorted(file for folder in folders for file in folder.rglob("*.py")):
        if path.name in PROGRAMMERS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise | ast.Return):
                parts = [one for one in ast.walk(node) if isinstance(one, ast.FormattedValue)]
                found += [
                    f"{path.relative_to(ROOT)}:{one.lineno}"
                    for one in parts
                    if one.conversion == ord("r") and ast.unparse(one.value) != "__name__"
                ]
    assert found == []


@pytest.mark.parametrize(
    ("value", "most"), [("x" * 5000, 200), ("/" + "d" * 300 + "/" + "f" * 5000, 1024)]
)
def test_no_word_of_an_error_is_longer_than_a_person_reads(value: str, most: int) -> None:
    """Names, types and numbers that nobody quotes: whatever an error says is bounded."""
    error = InputError(f"kernel {value}: is none\nof ours", hint=value)
    for text in (str(error), error.render("fly-x")):
        words = text.partition("\n  ")[0].split()
        assert max(map(len, words)) == most
        assert words[-2:] == ["of", "ours"]
        assert text.endswith(value)  # a hint may hold a command: it stays whole


def test_a_path_in_an_error_stays_whole() -> None:
    path = "/" + "/".join(["folder"] * 100)
    assert path in str(UsageError(f"{path}: no such file"))


@pytest.mark.parametrize(
    "words",
    [
        ["A=" + "x" * 5000],
        ["A=i32:" + "9" * 5000],
        ["A=random((" + "1, " * 3000 + "1),f32)"],
        ["A=zeros(4," + "f" * 5000 + ")"],
    ],
)
def test_a_refused_argument_of_fly_run(words: list[str]) -> None:
    from fly_run.shell import argument_text

    with pytest.raises(UsageError) as caught:
        argument_text.parse_all(words)
    assert len(caught.value.message) < 500
