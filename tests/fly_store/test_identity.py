"""What identifies LLVM's programs for the keys of results."""

from pathlib import Path

import pytest
from fly_common.programs import toolchain
from fly_store import identity


@pytest.fixture
def prefix(monkeypatch, tmp_path) -> Path:
    """A folder with a program of LLVM's, and the only one where it is looked for."""
    path = tmp_path / "bin" / "llc"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setenv("FLY_LLVM_DIR", str(tmp_path))
    return tmp_path


def test_a_program_is_identified_by_its_content(prefix):
    before = identity.program("llc")
    assert identity.program("llc") == before
    (prefix / "bin" / "llc").write_text("#!/bin/sh\n# another build\n")
    assert identity.program("llc") != before


def test_a_program_is_identified_by_the_content_of_its_library(prefix):
    without = identity.program("llc")
    library = prefix / "lib" / "libLLVM.so"
    library.parent.mkdir()
    library.write_bytes(b"")
    toolchain._find_library.cache_clear()
    with_library = identity.program("llc")
    assert with_library != without
    library.write_bytes(b"another")
    assert identity.program("llc") != with_library
