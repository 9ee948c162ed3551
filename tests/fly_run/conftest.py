"""Code objects for tests, assembled by LLVM from the sources in `kernels`."""

import functools
import subprocess
import tempfile
from pathlib import Path

import pytest
from fly_common.programs import toolchain
from fly_host import program, text
from fly_image.amd.code_object import CodeObject

KERNELS = Path(__file__).parent / "kernels"

# C[i] = A[i] + B[i] over n elements, in blocks of 64.
ADD = program.Program(
    entry="add",
    target="gfx942",
    parameters=(
        program.Tensor("A", "f32", ("n",), (1,), "r", contiguous=True),
        program.Tensor("B", "f32", ("n",), (1,), "r", contiguous=True),
        program.Tensor("C", "f32", ("n",), (1,), "w", contiguous=True),
    ),
    expressions=(("extent", "A", 0), ("const", 64), ("ceildiv", 0, 1), ("const", 1), ("const", 0)),
    steps=(
        program.Launch(
            "add",
            (2, 3, 3),
            (1, 3, 3),
            4,
            (
                (program.Word("pointer", "A"),),
                (program.Word("pointer", "B"),),
                (program.Word("pointer", "C"),),
                (program.Word("integer", expression=0, size=8),),
            ),
        ),
    ),
)


def _llvm(program: str, *arguments: str, data: bytes = b"") -> bytes:
    path = toolchain.find_program(program)
    return subprocess.run([path, *arguments], input=data, capture_output=True, check=True).stdout


@functools.cache
def _assembled(name: str, target: str, manifest: str | None) -> bytes:
    source = (KERNELS / f"{name}.s").read_text()
    if manifest is not None:
        escaped = manifest.replace('"', '\\"')
        source += f'\n.section .fly.manifest,"",@progbits\n.ascii "{escaped}"\n'
    options = ("-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-filetype=obj")
    with tempfile.TemporaryDirectory() as folder:
        made, linked = Path(folder, "made.o"), Path(folder, "made.hsaco")
        made.write_bytes(_llvm("llvm-mc", *options, data=source.encode()))
        _llvm("ld.lld", "-shared", str(made), "-o", str(linked))
        return linked.read_bytes()


@pytest.fixture(scope="session")
def assemble():
    """assemble(name, target="gfx942", manifest=None) → the bytes of a code object."""

    def made(name: str, target: str = "gfx942", manifest: program.Program | None = None) -> bytes:
        written = None if manifest is None else text.write(manifest)
        return _assembled(name, target, written)

    return made


@pytest.fixture(scope="session")
def add(assemble) -> CodeObject:
    """The code object of `add`, with a host program."""
    return CodeObject.parse(assemble("add", manifest=ADD))


@pytest.fixture(scope="session")
def add_program() -> program.Program:
    return ADD
