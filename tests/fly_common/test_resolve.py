"""What an entry point refers to is judged before anybody uses it."""

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from fly_backend import registry
from fly_backend.backend import Backend
from fly_common.errors import MissingError
from fly_common.resolve import load

WHERE = "backend {}: the entry point {} of fly.backends"


def loaded(name: str, value: str) -> Backend:
    return load(EntryPoint(name, value, "fly.backends"), "backend", Backend)


def test_one_of_the_kind_and_the_name():
    assert loaded("rocm", registry.BUILT_IN["rocm"]) is registry.find("rocm")


@pytest.mark.parametrize(
    ("name", "value", "message", "hint"),
    [
        (
            "mine",
            "no_such_module:ONE",
            "can't be loaded: ModuleNotFoundError: No module named 'no_such_module'",
            "mend the package that has it, or uninstall it",
        ),
        (
            "mine",
            "os:sep",
            "is str, not the backend mine",
            "it must refer to a fly_backend.backend.Backend of that name",
        ),
        (
            "mine",
            "fly_backend.amd:ROCM",
            "is the backend rocm, not the backend mine",
            "it must refer to a fly_backend.backend.Backend of that name",
        ),
    ],
)
def test_another_is_refused_by_what_it_is(name: str, value: str, message: str, hint: str):
    with pytest.raises(MissingError) as refused:
        loaded(name, value)
    assert refused.value.message == f"{WHERE.format(name, value)} {message}"
    assert refused.value.hint == hint


def test_a_long_reason_is_cut(monkeypatch):
    def fails():
        raise ValueError("x" * 1000)

    entry = SimpleNamespace(name="mine", value="m:f", group="g", load=fails)
    with pytest.raises(MissingError) as refused:
        load(entry, "backend", Backend)
    assert refused.value.message.endswith(f"ValueError: {'x' * 188}")


def test_an_installed_backend_is_found_by_its_name(tmp_path, monkeypatch):
    """The registry asks the entry points, and judges what they refer to."""
    info = tmp_path / "guest-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\nguest = fly_backend.amd:ROCM\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingError, match="is the backend rocm, not the backend guest"):
        registry.find("guest")
