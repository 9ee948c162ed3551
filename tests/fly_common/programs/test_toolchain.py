"""The search for LLVM, among folders that the tests make."""

import os
import signal
from pathlib import Path

import pytest
from fly_common.errors import InputError, MissingError
from fly_common.programs import toolchain


def program(path: Path, body: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def versioned(path: Path, version: str) -> Path:
    return program(path, f"echo 'Debian LLVM version {version}'")


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Surroundings without any LLVM, but for /usr/lib's."""
    monkeypatch.delenv("FLY_LLVM_DIR", raising=False)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "no-rocm"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    return tmp_path


@pytest.fixture
def no_debian(nowhere, monkeypatch):
    """Nor that one: PATH is all there is."""
    monkeypatch.setattr(toolchain, "_matches", lambda folder, pattern: [])
    monkeypatch.setenv("PATH", str(nowhere / "path"))
    toolchain._find_program.cache_clear()
    toolchain._find_library.cache_clear()
    yield nowhere
    toolchain._find_program.cache_clear()
    toolchain._find_library.cache_clear()


def test_a_prefix_that_was_named_is_the_only_one(nowhere, monkeypatch):
    llc = program(nowhere / "mine" / "bin" / "llc")
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere / "mine"))
    assert toolchain.find_program("llc") == str(llc)
    with pytest.raises(MissingError) as caught:
        toolchain.find_program("ld.lld")
    assert "has no bin/ld.lld" in caught.value.message
    assert "apt-get install llvm-22 lld-22" in (caught.value.hint or "")


def test_the_answer_follows_the_environment(nowhere, monkeypatch):
    before = toolchain.find_program("llc")
    llc = program(nowhere / "mine" / "bin" / "llc")
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere / "mine"))
    assert toolchain.find_program("llc") == str(llc)
    monkeypatch.delenv("FLY_LLVM_DIR")
    assert toolchain.find_program("llc") == before


def test_rocm_before_debian_if_it_is_new_enough(nowhere, monkeypatch):
    debian = toolchain.find_program("llc")
    assert "/usr/lib/llvm-" in debian
    for name, version in (("new", "23.0.0git"), ("old", "19.0.0git")):
        versioned(nowhere / name / "llvm" / "bin" / "llc", version)
    monkeypatch.setenv("ROCM_PATH", str(nowhere / "old"))
    assert toolchain.find_program("llc") == debian
    monkeypatch.setenv("ROCM_PATH", str(nowhere / "new"))
    assert toolchain.find_program("llc") == str(nowhere / "new" / "llvm" / "bin" / "llc")


def test_on_path_a_version_in_the_name_comes_first(no_debian):
    versioned(no_debian / "path" / "llc", "25.0.0")
    versioned(no_debian / "path" / "llc-22", "22.1.8")
    newest = versioned(no_debian / "path" / "llc-24", "24.0.0")
    assert toolchain.find_program("llc") == str(newest)


def test_on_path_an_old_one_is_none(no_debian):
    versioned(no_debian / "path" / "llc", "14.0.6")
    program(no_debian / "path" / "llc-22", "echo what am I")
    with pytest.raises(MissingError, match="LLVM's llc was not found"):
        toolchain.find_program("llc")
    with pytest.raises(MissingError, match=r"libLLVM\.so\) was not found"):
        toolchain.find_library()


def test_lld_says_its_version_its_own_way(no_debian):
    found = program(no_debian / "path" / "ld.lld", "echo 'Debian LLD 22.1.8 (compatible with GNU)'")
    assert toolchain.find_program("ld.lld") == str(found)


def test_the_library_is_found_and_real(nowhere):
    library = Path(toolchain.find_library())
    assert library.is_file()
    assert not library.is_symlink()
    assert "libLLVM" in library.name


def test_the_library_of_a_named_prefix(nowhere, monkeypatch):
    library = nowhere / "mine" / "lib" / "libLLVM.so.22.1"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    (library.parent / "libLLVM.so").symlink_to("libLLVM.so.22.1")
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere / "mine"))
    assert toolchain.find_library() == str(library)
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere))
    with pytest.raises(MissingError, match=r"has no lib/libLLVM\.so"):
        toolchain.find_library()


def test_running(nowhere, monkeypatch):
    program(nowhere / "mine" / "bin" / "upper", "echo warned >&2; tr a-z A-Z; exit 3")
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere / "mine"))
    done = toolchain.run_program("upper", [], b"text")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"TEXT", b"warned\n")


def test_a_program_that_does_not_read_its_input_is_no_error(nowhere, monkeypatch):
    program(nowhere / "mine" / "bin" / "deaf", "exec <&-; echo done")
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere / "mine"))
    assert toolchain.run_program("deaf", [], b"x" * 1_000_000).stdout == b"done\n"


def test_a_crash_names_signal_and_reason(nowhere, monkeypatch):
    program(
        nowhere / "mine" / "bin" / "llc",
        "exec >&2; echo first; echo 'LLVM ERROR: Cannot select: x'; echo '#0 frame'; kill -ABRT $$",
    )
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere / "mine"))
    with pytest.raises(toolchain.Crash) as caught:
        toolchain.run_program("llc", [], b"")
    assert isinstance(caught.value, InputError)
    assert caught.value.signal == signal.SIGABRT
    assert caught.value.message == "llc crashed (signal 6) on this input"
    assert caught.value.hint == "LLVM ERROR: Cannot select: x"
    assert caught.value.stderr.endswith("#0 frame\n")


def test_what_can_not_be_run(nowhere, monkeypatch):
    path = program(nowhere / "mine" / "bin" / "llc")
    path.write_bytes(b"\x00\x01not a program")
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere / "mine"))
    with pytest.raises(MissingError, match="can't be run: Exec format error"):
        toolchain.run_program("llc", [], b"")


def test_descriptors_are_passed_on(nowhere, monkeypatch):
    program(nowhere / "mine" / "bin" / "show", 'cat "$1"')
    monkeypatch.setenv("FLY_LLVM_DIR", str(nowhere / "mine"))
    handle = os.memfd_create("held")
    try:
        os.write(handle, b"held in memory")
        name = f"/proc/self/fd/{handle}"
        done = toolchain.run_program("show", [name], None, pass_fds=(handle,))
    finally:
        os.close(handle)
    assert done.stdout == b"held in memory"
