"""What a person sees of a run."""

from __future__ import annotations

import io

import pytest
from fly_opt.reporting.observer import Observer


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def observed(stream: io.StringIO) -> str:
    observer = Observer(timing=True, stream=stream)
    for name in ("parse", "cse", "cse"):
        with observer.timed(name):
            pass
    observer.times["parse"] = [0.003]
    observer.times["cse"] = [0.0005, 0.0005]
    observer.report()
    return stream.getvalue()


def test_the_plain_table_is_for_programs():
    assert observed(io.StringIO()) == (
        "step   runs        ms      %\n"
        "parse     1      3.00   75.0\n"
        "cse       2      1.00   25.0\n"
        "total            4.00  100.0\n"
    )


def test_a_terminal_gets_a_table():
    text = observed(Terminal())
    assert "fly-opt-py" in text
    assert "┃" in text
    assert all(word in text for word in ("parse", "75.0", "total", "4.00"))


def test_nothing_is_said_unasked():
    stream = io.StringIO()
    observer = Observer(stream=stream)
    with observer.watching("cse", "module"):
        pass
    observer.report()
    assert stream.getvalue() == ""


def test_dumps_around_a_pass_that_fails():
    stream = io.StringIO()
    observer = Observer(before_all=True, after_all=True, stream=stream)
    with pytest.raises(ValueError, match="no"), observer.watching("cse", "the module"):
        raise ValueError("no")
    assert stream.getvalue() == (
        "// -----// IR Dump Before cse //----- //\nthe module\n"
        "// -----// IR Dump After cse Failed //----- //\nthe module\n"
    )
