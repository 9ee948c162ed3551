"""Backends by name: what is known, what is taken, and when a factory is called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fly_backend import registry
from fly_backend.amd import ROCM
from fly_backend.backend import Backend
from fly_common.errors import MissingError, UsageError
from fly_common.record import replace

pytestmark = pytest.mark.usefixtures("clean_registry")

REQUIRED = (
    *("namespaces", "namespace", "upstream", "intrinsics", "dialect", "lowering", "codegen"),
)
MINE = replace(ROCM, name="mine")


def refused(work, *arguments) -> tuple[str, str | None]:
    with pytest.raises((UsageError, MissingError)) as caught:
        work(*arguments)
    return caught.value.message, caught.value.hint


def test_an_unknown_name_lists_the_known():
    registry.register("mine", lambda: MINE)
    message, hint = refused(registry.find, "vulkan")
    assert message == "unknown backend 'vulkan'"
    assert hint == f"the backends are {', '.join([*registry.BUILT_IN, 'mine'])}"


@pytest.mark.parametrize("name", ["rocm", "ROCm", "ROCM", "Rocm"])
def test_names_are_not_case_sensitive(name: str):
    assert registry.find(name) is ROCM


def test_a_registered_name_is_not_case_sensitive():
    registry.register("Mine", lambda: MINE)
    assert registry.find("MINE") is registry.find("mine") is MINE


@pytest.mark.parametrize("second", ["mine", "MINE"])
def test_a_name_is_registered_once(second: str):
    registry.register("mine", lambda: MINE)
    message = "the backend mine is already registered"
    assert refused(registry.register, second, lambda: MINE) == (message, None)
    assert registry.find("mine") is MINE


@pytest.mark.parametrize("name", ["rocm", "RoCm"])
def test_a_built_in_name_is_taken(name: str):
    message, _ = refused(registry.register, name, lambda: MINE)
    assert message == "the backend rocm is built in"


@pytest.mark.parametrize("name", ["", "2mine", "a b", "a=b", None])
def test_what_is_no_name(name):
    message, _ = refused(registry.register, name, lambda: MINE)
    assert message == f"{name!r} can't be the name of a backend"


def test_a_record_is_no_factory():
    message, hint = refused(registry.register, "mine", MINE)
    assert message == "the backend mine needs a factory, not Backend"
    assert hint == "a function without arguments that returns a fly_backend.backend.Backend"


def test_a_factory_is_called_once_when_the_backend_is_first_used():
    calls = []

    def factory() -> Backend:
        calls.append(1)
        return MINE

    registry.register("mine", factory)
    assert registry.find("rocm") is ROCM
    assert (calls, registry.loaded()) == ([], registry.built_in())
    assert registry.find("mine") is registry.find("mine") is MINE
    assert (calls, registry.loaded()) == ([1], (*registry.built_in(), MINE))


def test_a_factory_that_fails_is_told_and_asked_again():
    answers = iter([ValueError("not yet"), MINE])

    def factory() -> Backend:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    registry.register("mine", factory)
    message, _ = refused(registry.find, "mine")
    assert message == "backend mine: its factory failed: ValueError: not yet"
    assert registry.find("mine") is MINE


@pytest.mark.parametrize(("made", "what"), [(ROCM, "the backend rocm"), (7, "int")])
def test_what_a_factory_must_return(made, what: str):
    registry.register("mine", lambda: made)
    message, hint = refused(registry.find, "mine")
    assert message == f"backend mine: its factory returned {what}"
    assert hint == "it must return a fly_backend.backend.Backend of that name"


def test_a_backend_compiles_for_its_own_rows_unless_it_says_others():
    fields = {name: vars(ROCM)[name] for name in REQUIRED}
    assert Backend(name="mine", default_target="m1", **fields).compiles == ("mine",)
    assert MINE.compiles == ("rocm",)


def test_the_packages_that_a_record_refers_to(template: Backend):
    assert template.packages == (
        *("fly_backend_template", "fly_dialect", "fly_link", "fly_llc", "fly_trace"),
    )


LISTENING = """
import importlib.metadata, sys
asked = []
real = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **what: asked.append(what["group"]) or real(**what)
from fly_backend import registry
registry.find("rocm"), registry.loaded(), registry.default()
print(asked, "guest" in sys.modules)
print(registry.find("GUEST").name, asked, "guest" in sys.modules)
"""


def test_entry_points_are_read_only_for_names_that_nobody_else_has(tmp_path: Path):
    info = tmp_path / "guest-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\nguest = guest:BACKEND\n")
    (tmp_path / "guest.py").write_text(
        "from fly_backend.amd import ROCM\n"
        "from fly_common.record import replace\n"
        "BACKEND = replace(ROCM, name='guest')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", LISTENING],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["[] False", "guest ['fly.backends'] True"]
