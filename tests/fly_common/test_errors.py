"""How errors read."""

import pytest
from fly_common.errors import (
    LONGEST_EXCERPT,
    Fault,
    FlyError,
    InputError,
    MissingError,
    Place,
    UsageError,
)


@pytest.mark.parametrize(
    ("kind", "code"), [(InputError, 1), (Fault, 1), (UsageError, 2), (MissingError, 3)]
)
def test_exit_codes(kind, code):
    assert kind("x").exit_code == code
    assert isinstance(kind("x"), FlyError)


def test_the_whole_form():
    place = Place("k.py", 3, 7, "x = a + b", width=3)
    error = InputError("no such thing", place=place, hint="make one")
    assert error.render("fly-trace") == (
        "fly-trace: error: k.py:3:7: no such thing\n"
        "  x = a + b\n"
        "        ^~~\n"
        "  make one"
    )  # fmt: skip
    assert str(error) == error.render("t").removeprefix("t: error: ")


def test_parts_may_be_missing():
    assert InputError("m").render("t") == "t: error: m"
    assert InputError("m", place=Place("f")).render("t") == "t: error: f: m"
    assert InputError("m", place=Place("f", 2)).render("t") == "t: error: f:2: m"
    assert InputError("m", place=Place("f", 2, text="abc")).render("t") == "t: error: f:2: m"
    assert InputError("m", place=Place("f", 2, 1, "")).render("t") == "t: error: f:2:1: m\n  \n  ^"


@pytest.mark.parametrize(
    ("text", "column", "width", "caret"),
    [
        ("abc", 1, 1, "  ^"),
        ("abc", 2, 9, "   ^~"),  # no further than the line
        ("abc", 4, 3, "     ^"),  # just behind it
        ("\tx = y", 2, 1, "  \t^"),
    ],
)
def test_carets(text, column, width, caret):
    assert Place("f", 1, column, text, width).excerpt().split("\n")[1] == caret


@pytest.mark.parametrize("column", [1, 79, 81, 500, 921, 1000, 1001])
def test_a_long_line_is_shown_around_the_caret(column):
    text = "".join(chr(ord("a") + n % 26) for n in range(1000))
    shown, caret = Place("f", 1, column, text).excerpt().split("\n")
    assert len(shown) <= LONGEST_EXCERPT + 6
    if column <= len(text):
        assert shown[caret.index("^")] == text[column - 1]
    assert shown.startswith("  …") == (column > LONGEST_EXCERPT // 2 + 1)


def test_control_characters_do_not_reach_the_terminal():
    assert Place("f", 1, 1, "a\x1b[31mb\x07").excerpt().startswith("  a?[31mb?\n")


def test_a_message_that_quotes_a_damaged_input_does_no_harm():
    rendered = InputError("no \x1b[31m\x00 \ud800 here\nnor there").render("tool")
    assert rendered == "tool: error: no ?[31m? ? here\nnor there"
    (line,) = InputError("begin " + "x" * 100_000 + " end").render("tool").splitlines()
    assert line.startswith("tool: error: begin xxx")
    assert line.endswith("xxx end")
    assert len(line) < 1600
