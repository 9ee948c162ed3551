"""The table of options is what the stages, their command lines and their decorator have."""

from __future__ import annotations

import fly_llc
import fly_opt
import pytest
from fly_common.command_line import options
from fly_common.record import fields_of
from fly_llc import cli


def test_each_field_has_a_row():
    opt_py = set(fields_of(fly_opt.Options))
    assert set(options.of_stage("opt-py")) == opt_py
    assert set(options.of_stage("llc")) == set(fly_llc.Options.__annotations__)


@pytest.mark.parametrize("field", options.of_stage("llc"))
def test_what_a_command_line_says_comes_back(field):
    """Words → parameters → fields → words."""
    row = options.of_stage("llc")[field]
    texts = {"level": "1", "seconds": "2.5", "switch": None}
    text = texts.get(row.kind, "asm" if field == "emit" else "-x")
    words = [row.flag] if text is None else [row.flag, text]
    said = cli.command.read(words)
    assert said is not None
    fields = options.fields("llc", said)
    assert list(fields) == [field]
    assert options.words("llc", fields) == words


def test_what_nobody_says_is_left_to_the_stage():
    assert options.fields("llc", {"insert": None, "no_verify": False}) == {}
    assert options.words("llc", {"verify": True, "in_process": False, "level": None}) == []


def test_words_of_opt_py_are_its_own_flags():
    said = {"target": "gfx942", "debug_info": True, "locations": False}
    assert options.words("opt-py", said) == ["--target", "gfx942", "-g"]
