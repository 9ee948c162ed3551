"""Where ptxas and nvdisasm are found, in which order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fly_common.errors import MissingError
from fly_common.programs import cuda_toolkit


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path: Path) -> None:
    """No package, no PATH, no toolkit."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages")])
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("FLY_PTXAS", raising=False)
    monkeypatch.setattr(cuda_toolkit, "DEFAULT", str(tmp_path / "cuda"))


def program(folder: Path, name: str = "ptxas", mode: int = 0o755) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(mode)
    cuda_toolkit._find.cache_clear()
    return str(folder / name)


def test_the_order(monkeypatch, tmp_path: Path):
    assert cuda_toolkit.find_optional("ptxas") is None
    for folder in ("cuda", "path", *(f"packages/{one}" for one in cuda_toolkit.FOLDERS[::-1])):
        made = program(tmp_path / folder)
        assert cuda_toolkit.find_optional("ptxas") == cuda_toolkit.find_program("ptxas") == made
    chosen = program(tmp_path / "chosen", "my-ptxas")
    monkeypatch.setenv("FLY_PTXAS", chosen)
    assert cuda_toolkit.find_program("ptxas") == chosen
    monkeypatch.setenv("FLY_PTXAS", "")
    assert cuda_toolkit.find_program("ptxas") == made


def test_none_at_all(monkeypatch, tmp_path: Path):
    program(tmp_path / "path")
    program(tmp_path / "path", "nvdisasm")
    monkeypatch.setenv("FLY_PTXAS", "none")
    assert cuda_toolkit.find_optional("ptxas") is None
    assert cuda_toolkit.find_program("nvdisasm") == str(tmp_path / "path" / "nvdisasm")


def test_what_lies_beside_the_chosen_one(monkeypatch, tmp_path: Path):
    program(tmp_path / "path", "nvdisasm")
    monkeypatch.setenv("FLY_PTXAS", program(tmp_path / "chosen"))
    assert cuda_toolkit.find_program("nvdisasm") == str(tmp_path / "path" / "nvdisasm")
    beside = program(tmp_path / "chosen", "nvdisasm")
    assert cuda_toolkit.find_program("nvdisasm") == beside


def test_a_file_that_cannot_be_run_is_passed_over(tmp_path: Path):
    program(tmp_path / "packages" / cuda_toolkit.FOLDERS[0], mode=0o644)
    assert cuda_toolkit.find_optional("ptxas") is None


@pytest.mark.parametrize("name", ["ptxas", "nvdisasm"])
def test_what_is_missing(monkeypatch, tmp_path: Path, name: str):
    with pytest.raises(MissingError) as caught:
        cuda_toolkit.find_program(name)
    assert caught.value.message == f"{name} was not found"
    assert caught.value.hint == cuda_toolkit.HOW_TO_GET[name]
    monkeypatch.setenv("FLY_PTXAS", str(tmp_path))
    with pytest.raises(MissingError, match=f"FLY_PTXAS={tmp_path} is not a program"):
        cuda_toolkit.find_program(name)
