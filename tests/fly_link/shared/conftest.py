"""Libraries and C programs for the tests of this folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fly_link.shared import building
from library_support.functions import ordered, row_sums, saxpy, scratched

FAKE = Path(__file__).parents[2] / "library_support" / "fake_cuda.c"


@pytest.fixture(scope="session")
def images():
    """Images by target and name."""
    found = {}
    for target in ("sm_80", "sm_90a", "gfx942"):
        for function in (saxpy, row_sums):
            found[target, function.name] = function.compile(target=target).data
    return found


@pytest.fixture(scope="session")
def libraries(images, tmp_path_factory):
    """A folder with libsaxpy.so, librow_sums.so, their headers: for three targets and the CPU."""
    folder = tmp_path_factory.mktemp("libraries")
    for name in ("saxpy", "row_sums"):
        targets = ("gfx942", "sm_80", "sm_90a")
        given = [images[target, name] for target in targets]
        made = building.make(given, [f"{target}.bin" for target in targets], for_cpu=True)
        (folder / f"lib{name}.so").write_bytes(made.data)
        (folder / f"{name}.h").write_text(made.header)
    return folder


@pytest.fixture(scope="session")
def streams(tmp_path_factory):
    """A folder with libordered.so, libscratched.so, whose functions have parameters for streams."""
    folder = tmp_path_factory.mktemp("streams")
    for function in (ordered, scratched):
        made = building.make([function.compile(target="sm_90a").data], ["k"], for_cpu=True)
        (folder / f"lib{function.name}.so").write_bytes(made.data)
        (folder / f"{function.name}.h").write_text(made.header)
    return folder


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory):
    """A folder with a libcuda.so.1 that runs nothing."""
    folder = tmp_path_factory.mktemp("fake")
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", str(FAKE)]
    subprocess.run([*command, "-o", folder / "libcuda.so.1"], check=True)
    return folder
