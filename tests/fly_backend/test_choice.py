"""Which backend compiles for which target: arguments, environment, defaults."""

from __future__ import annotations

import pytest
from fly_backend import choice, registry
from fly_backend.amd import ROCM
from fly_backend.choice import aliased, choose
from fly_common.errors import UsageError
from fly_common.record import replace
from fly_target import registry as targets

pytestmark = pytest.mark.usefixtures("clean_registry")

OWN = replace(targets.BUILT_IN["gfx90a"], name="own1", backend="own")


@pytest.fixture
def own(clean_registry, monkeypatch):
    """A backend with one target of its own."""
    monkeypatch.setitem(targets.BUILT_IN, "own1", OWN)
    made = replace(ROCM, name="own", compiles=("own",), default_target="own1")
    registry.register("own", lambda: made)
    return made


@pytest.fixture
def mine(clean_registry):
    """A backend for rocm's targets."""
    registry.register("mine", lambda: replace(ROCM, name="mine", default_target="gfx950"))


def chosen(target: str | None = None, backend: str | None = None) -> tuple[str, str]:
    made = choose(target, backend)
    return made.backend.name, made.target


@pytest.mark.usefixtures("own", "mine")
@pytest.mark.parametrize(
    ("environment", "arguments", "expected"),
    [
        ({}, (), ("rocm", "gfx942")),
        ({"FLY_TARGET": "gfx90a"}, (), ("rocm", "gfx90a")),
        ({"FLY_TARGET": "own1"}, (), ("own", "own1")),
        ({"FLY_BACKEND": "OWN"}, (), ("own", "own1")),
        ({"FLY_BACKEND": "Mine"}, (), ("mine", "gfx950")),
        ({"FLY_BACKEND": ""}, (), ("rocm", "gfx942")),
        ({"FLY_BACKEND": "mine", "FLY_TARGET": "gfx90a"}, (), ("mine", "gfx90a")),
        ({"FLY_BACKEND": "mine"}, ("gfx90a",), ("mine", "gfx90a")),
        ({"FLY_TARGET": "gfx90a"}, ("gfx942",), ("rocm", "gfx942")),
        ({}, ("own1",), ("own", "own1")),
        ({}, (None, "own"), ("own", "own1")),
        ({}, ("gfx90a", "mine"), ("mine", "gfx90a")),
        ({"FLY_BACKEND": "own"}, ("gfx90a", "mine"), ("mine", "gfx90a")),
        # A default that does not fit an explicit backend does not count.
        ({"FLY_TARGET": "gfx90a"}, (None, "own"), ("own", "own1")),
        ({"FLY_TARGET": "gfx90a"}, (None, "mine"), ("mine", "gfx90a")),
    ],
)
def test_what_is_chosen(monkeypatch, environment, arguments, expected):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert chosen(*arguments) == expected


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("environment", "arguments", "message"),
    [
        ({}, ("gfx942", "own"), "the backend own does not compile for 'gfx942'"),
        (
            {"FLY_BACKEND": "own"},
            ("gfx942",),
            "the backend own, which FLY_BACKEND names, does not compile for 'gfx942'",
        ),
        (
            {"FLY_BACKEND": "own", "FLY_TARGET": "gfx942"},
            (),
            "the backend own, which FLY_BACKEND names, does not compile for 'gfx942'",
        ),
    ],
)
def test_contradictions(monkeypatch, environment, arguments, message):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError) as caught:
        choose(*arguments)
    assert (caught.value.message, caught.value.hint) == (message, "its targets are own1")


def test_a_target_without_a_row_is_left_to_who_needs_the_row(own):
    assert chosen("nosuch1") == ("rocm", "nosuch1")
    assert chosen("nosuch1", "own") == ("own", "nosuch1")
    with pytest.raises(UsageError, match="unknown target 'nosuch1'"):
        choice.row_of(choose("nosuch1"))


def test_the_row_has_the_backend_that_was_chosen(mine):
    assert choice.row_of(choose("gfx90a")).backend == "rocm"
    row = choice.row_of(choose("gfx90a", "mine"))
    assert row == replace(targets.find("gfx90a"), backend="mine")


def test_the_targets_of_a_backend(own):
    assert choice.targets_of(own) == ("own1",)
    assert set(choice.targets_of(ROCM)) == {
        name for name, row in targets.BUILT_IN.items() if row.backend == "rocm"
    }


@pytest.mark.parametrize("names", [("target",), ("arch",), ("chip",), ("target", "arch", "chip")])
def test_arch_and_chip_are_other_names_of_the_target(names):
    assert aliased(**dict.fromkeys(names, "gfx942")) == "gfx942"


def test_no_name_at_all():
    assert aliased() is None


@pytest.mark.parametrize(("first", "second"), [("arch", "chip"), ("target", "arch")])
def test_aliases_that_differ(first: str, second: str):
    with pytest.raises(UsageError) as caught:
        aliased(**{first: "gfx942", second: "gfx950"})
    assert caught.value.message == f"{first}='gfx942' and {second}='gfx950' contradict each other"
    assert caught.value.hint == "arch= and chip= are other names of target="
