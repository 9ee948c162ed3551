"""Options of plugins: their flags, variables, values and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest
from fly_common.errors import UsageError
from fly_plugin import options
from fly_plugin.activation import Request, activate
from fly_plugin.manifest import Plugin


@dataclass(frozen=True)
class Several:
    count: int
    how_much: float = 0.5
    quick: bool = False
    name: str = "x"
    kind: Literal["one", "two"] = field(default="one", metadata={"help": "Which."})

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("count is negative")


@dataclass(frozen=True)
class Odd:
    what: list[int] | None = None


PLUGIN = Plugin(id="a-b", version="1", options="option_classes:Several")


@pytest.fixture(autouse=True)
def classes(monkeypatch):
    """The classes above by a name that can be imported."""
    import sys
    import types

    module = types.ModuleType("option_classes")
    module.Several, module.Odd, module.Three = Several, Odd, 3
    Several.__module__ = Odd.__module__ = "option_classes"
    vars(module).update(Literal=Literal)
    monkeypatch.setitem(sys.modules, "option_classes", module)


def bind(value=None, **given: str):
    flags = {name.replace("_", "-"): [text] for name, text in given.items()}
    (one,) = activate([Request(PLUGIN, "test", value)], flags)
    return one.options


def test_flags_and_variables():
    found = options.of(PLUGIN)
    assert [one.flag for one in found] == [
        *("--a-b-count", "--a-b-how-much", "--a-b-quick", "--a-b-name", "--a-b-kind")
    ]
    assert found[1].variable == "FLY_A_B_HOW_MUCH"
    assert [one.metavar for one in found] == ["N", "X", "[BOOL]", "TEXT", "one|two"]
    assert found[4].help == "Which."


def test_values(monkeypatch):
    assert bind(a_b_count="3") == Several(3)
    given = {"a_b_count": "3", "a_b_how_much": "2", "a_b_quick": "true", "a_b_kind": "two"}
    assert bind(**given) == Several(3, 2.0, True, kind="two")
    monkeypatch.setenv("FLY_A_B_COUNT", "7")
    monkeypatch.setenv("FLY_A_B_QUICK", "off")
    assert bind() == Several(7)
    assert bind(a_b_count="8") == Several(8)  # a flag wins
    assert bind(Several(9)) == Several(9)  # and a value is final


def test_flags_of_values():
    made = Several(3, quick=True, kind="two")
    words = options.flags("a-b", made)
    assert words == ["--a-b-count=3", "--a-b-quick=true", "--a-b-kind=two"]
    given = dict(word.removeprefix("--").replace("-", "_").split("=") for word in words)
    assert bind(**given) == made
    assert options.flags("a-b", Several(1, how_much=2.0))[1] == "--a-b-how-much=2.0"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "it needs --a-b-count=… or FLY_A_B_COUNT"),
        ({"a_b_count": "x"}, "--a-b-count=x: must be an integer"),
        ({"a_b_count": "1", "a_b_how_much": "much"}, "--a-b-how-much=much: must be a number"),
        ({"a_b_count": "1", "a_b_quick": "2"}, "--a-b-quick=2: must be true or false"),
        ({"a_b_count": "1", "a_b_kind": "six"}, "--a-b-kind=six: must be one of one, two"),
        ({"a_b_count": "-1"}, "its options: count is negative"),
    ],
)
def test_wrong_values(given, said):
    with pytest.raises(UsageError) as caught:
        bind(**given)
    assert caught.value.message == f"plugin 'a-b' (a record 1): {said}"


def test_a_value_of_another_class():
    with pytest.raises(UsageError, match=r"its options are a option_classes\.Several, not 3"):
        bind(3)
    with pytest.raises(UsageError, match="its options are none: it has none, not 3"):
        activate([Request(Plugin(id="a"), "test", 3)])


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("option_classes:Three", "its options, option_classes:Three, are not a dataclass"),
        ("option_classes:Odd", "its option what is of type"),
        ("option_classes:Nix", "its options: AttributeError"),
    ],
)
def test_a_class_that_is_none_of_options(reference, said):
    with pytest.raises(Exception, match=said):
        activate([Request(Plugin(id="a", options=reference), "test")])


def test_a_flag_with_two_meanings():
    other = Plugin(id="a", version="1", passes={"a-b-count": "m:X"})
    with pytest.raises(UsageError) as caught:
        activate([Request(PLUGIN, "test", Several(1)), Request(other, "test")])
    assert caught.value.message == (
        "--a-b-count is an option of the plugin 'a-b' (a record 1) and the pass 'a-b-count' of the"
        " plugin 'a' (a record 1)"
    )
