"""Libraries of launchers that are kept: used again, damaged, built by several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fly_host import program as host
from fly_host.native import engine, library
from fly_host.native.specialisation import (
    Options,
)
from fly_store import built_library

from .test_guards import native, program


def test_a_kept_library_is_used_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = program(host.Scalar("n", "i32"))
    native(made, 1)
    assert len(list(cache.glob("launcher-*.so"))) == 1
    library._loaded.clear()
    monkeypatch.setattr(engine, "library", lambda *_: 1 / 0)
    found, driver = native(made, 1)
    assert found.call(4) is None
    assert len(driver.log) == 1


@pytest.mark.parametrize("folder", ["file", "open to others", "relative"])
def test_a_library_that_can_t_be_kept(
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is compiled each time, without a word."""
    path = tmp_path / "cache"
    if folder == "file":
        path.write_text("")
    else:
        path.mkdir()
        path.chmod(0o777)
    monkeypatch.setenv("FLY_CACHE_DIR", "cache" if folder == "relative" else str(path))
    library._loaded.clear()
    found, driver = native(program(host.Scalar("n", "i32")), 1)
    assert found.call(1) is None
    assert len(driver.log) == 1
    assert folder == "file" or list(path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


def test_nobody_is_told_of_a_launcher_that_is_built(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    native(program(host.Scalar("n", "i32")), 1)
    assert len(list(cache.iterdir())) == 1
    assert capsys.readouterr() == ("", "")


def test_a_library_s_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {library.key_of("a", Options()), library.key_of("b", Options())}
    keys.add(library.key_of("a", Options(opt_level=2)))
    keys.add(library.key_of("a", Options(in_process=False)))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_llvmlite", lambda: "0.0")
        keys.add(library.key_of("a", Options()))
    with monkeypatch.context() as patch:
        patch.setattr(library.sysconfig, "get_config_var", lambda name: "cpython-399")
        keys.add(library.key_of("a", Options()))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "target", lambda: ("x86_64-unknown-linux-gnu", "znver5"))
        keys.add(library.key_of("a", Options()))
    assert len(keys) == 7


@pytest.mark.parametrize("damage", ["cut", "flipped", "exchanged", "empty"])
def test_a_damaged_library_is_built_again(damage: str, cache: Path) -> None:
    made = program(host.Scalar("n", "i32"))
    native(made, 1)
    (path,) = cache.glob("launcher-*.so")
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes(
        {
            "cut": whole[:-9],
            "flipped": whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :],
            "exchanged": (cache / "other").write_bytes(b"x") and b"\x7fELF" + whole[4:],
            "empty": b"",
        }[damage]
    )
    library._loaded.clear()
    found, driver = native(made, 1)
    assert found.call(3) is None
    assert len(driver.log) == 1
    assert path.read_bytes() == whole


TWO = """
import sys
sys.path.insert(0, sys.argv[1])
from host_hammer.__main__ import launchers
name, call, array = launchers()[0]
print(call(array, 3, 0.5)[1][0])
"""


def test_two_processes_at_once(cache: Path) -> None:
    tests = str(Path(__file__).parent.parent.parent)
    words = [sys.executable, "-c", TWO, tests]
    running = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
        for _ in range(3)
    ]
    for process in running:
        out, error = process.communicate(timeout=120)
        assert (process.returncode, out) == (0, b"5\n"), error
    made = list(cache.glob("launcher-*.so"))
    assert made
    assert all(built_library.read(str(path))[0] for path in made)


def test_many_libraries_need_no_descriptors() -> None:
    """Each is loaded from a descriptor that is closed: its number is the next one's."""
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        loaded = library.load(f"define i32 @f() {{ ret i32 {number} }}\n", Options())
        assert loaded.f() == number
    assert len(os.listdir("/proc/self/fd")) == before
