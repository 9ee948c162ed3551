"""The library's chain and the shell's pipe are one: the same bytes after every stage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fly_common.programs import toolchain
from fly_trace.session.load import load_file

from fly.chains.chain import Chain, chain, results
from fly.chains.stage import Stage

ROOT = Path(__file__).parents[3]
MODULE = (ROOT / "tests/fly_opt/data/vector_add.mlir").read_bytes()
TARGETS = ("gfx90a", "gfx942", "gfx950")
BIN = Path(sys.executable).parent


def shell(command: str, data: bytes) -> bytes:
    """What a command of the shell makes, with LLVM's programs and ours on PATH."""
    llvm = os.path.dirname(toolchain.find_program("opt"))
    environment = {**os.environ, "PATH": f"{BIN}:{llvm}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        input=data,
        env=environment,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def stages_of(chained: Chain) -> list[bytes]:
    return [data for _, data in results(chained, MODULE)]


@pytest.mark.parametrize("target", TARGETS)
def test_each_stage_gives_the_pipes_bytes(target: str):
    data = MODULE
    commands = (f"fly-opt-py --target {target}", "opt -S -O3", "fly-llc", "fly-link")
    for command, made in zip(commands, stages_of(chain(target)), strict=True):
        data = shell(command, data)
        assert made == data, command


def test_the_whole_pipe():
    pipe = "fly-opt-py --target gfx942 | opt -S -O3 | fly-llc | fly-link"
    assert shell(pipe, MODULE) == stages_of(chain("gfx942"))[-1]


@pytest.mark.parametrize(
    ("entry", "target"),
    [
        ("vector_add", "gfx90a"),
        ("row_softmax:row_softmax", "gfx942"),
        ("layernorm", "gfx942"),
        ("histogram", "gfx950"),
        ("mfma_gemm:gemm_wmma", "gfx1201"),
    ],
)
def test_jit_gives_the_bytes_of_the_pipe_from_the_file(entry: str, target: str):
    module, _, name = entry.partition(":")
    path = ROOT / "examples" / f"{module}.py"
    pipe = (
        f"fly-trace {path}{':' + name if name else ''} --target {target}"
        f" | fly-opt-py --target {target}"
        " | opt -S -O3 | fly-llc | fly-link"
    )
    function = getattr(load_file(str(path)), name or module)
    assert shell(pipe, b"") == function.compile(target=target).hsaco


def test_without_opt():
    pipe = "fly-opt-py --target gfx942 | fly-llc | fly-link"
    assert shell(pipe, MODULE) == stages_of(chain("gfx942", opt=None))[-1]


def test_opt_at_another_level():
    pipe = "fly-opt-py --target gfx942 | opt -S -O1 | fly-llc | fly-link"
    assert shell(pipe, MODULE) == stages_of(chain("gfx942", opt=("-S", "-O1")))[-1]


def test_our_tools_as_external_commands():
    whole = chain("gfx942")
    pieces = whole.replace("llc", Stage.command(["fly-llc"], suffix=".o")).replace(
        "link", Stage.command(["fly-link"], suffix=".hsaco")
    )
    assert stages_of(pieces) == stages_of(whole)


def test_llvms_own_programs_in_their_place():
    words = ["llc", "-mcpu=gfx942", "-filetype=obj", "-o", "-", "-"]
    link = ["ld.lld", "-shared", "--no-undefined", "-o", "{output}", "{input}"]
    whole = chain("gfx942")
    pieces = whole.replace("llc", Stage.command(words, suffix=".o")).replace(
        "link", Stage.command(link, suffix=".hsaco")
    )
    assert stages_of(pieces) == stages_of(whole)


def test_a_refused_input_gives_a_command_that_refuses_it_too(tmp_path: Path):
    from fly_common.errors import InputError

    with pytest.raises(InputError) as raised:
        list(results(chain("gfx942"), b"module { nonsense }"))
    again = (raised.value.hint or "").rpartition("reproduce: ")[2]
    assert again.startswith("fly-opt-py --target gfx942 < ")
    done = subprocess.run(
        ["bash", "-c", again],
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert raised.value.message in done.stderr
