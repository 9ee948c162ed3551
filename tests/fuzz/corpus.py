"""Valid inputs of every kind, to be mutated: artifacts of the examples, and the tests' inputs."""

from __future__ import annotations

import functools
import io
import re
from pathlib import Path

import numpy as np
from fly_common.programs import toolchain
from fly_host import text as host_text
from fly_host.program import Program
from fly_image.amd.code_object import CodeObject

ROOT = Path(__file__).resolve().parents[2]
# Small examples (FILE or FILE:ENTRY) that cover each generation of chips.
EXAMPLES = (
    ("vector_add", "gfx942"),
    ("saxpy", "gfx1100"),
    ("histogram", "gfx90a"),
    ("transpose", "gfx1201"),
    ("tiled_copy", "gfx950"),
    ("mfma_gemm:gemm_f16", "gfx942"),
)
LIT_SIZE = 6000  # bytes; larger inputs of lit tests only take longer


@functools.cache
def _chains() -> list[dict[str, bytes]]:
    """Returns each stage's output for each example, by the suffix of its file."""
    from fly_trace.session.trace import trace_file

    import fly
    from fly.chains import chain as chains

    made: list[dict[str, bytes]] = []
    for name, target in EXAMPLES:
        file, _, entry = name.partition(":")
        source = str(ROOT / "examples" / f"{file}.py")
        text = trace_file(source, entry or None, {}, locations=not made, target=target)
        data = text.encode()
        found = {".mlir": data}
        for stage, result in chains.results(fly.chain(target=target), data):
            found[stage.suffix] = result
        made.append(found)
    return made


def _stages(suffix: str) -> list[bytes]:
    return [chain[suffix] for chain in _chains()]


def _lit(pattern: str) -> list[bytes]:
    """Returns the inputs of lit tests, unmodified, except the deliberately invalid ones."""
    paths = sorted(ROOT.glob(f"test/lit/{pattern}"))
    return [path.read_bytes() for path in paths if path.stat().st_size <= LIT_SIZE]


def mlir() -> list[bytes]:
    """Traced modules, and each part of a lit test, with the RUN line that has its passes."""
    parts = []
    for text in _lit("*/*.mlir"):
        run = b"".join(re.findall(rb"^// RUN: fly-opt-py.*\n", text, re.M)[:1])
        for part in re.split(rb"^// -----.*\n", text, flags=re.M):
            parts.append(part if part.startswith(run) else run + part)
    return [*_stages(".mlir"), *parts]


def llvm_ir() -> list[bytes]:
    return [*_stages(".opt.ll"), *_stages(".ll")[:2], *_lit("fly-llc/*.ll")]


def bitcode() -> list[bytes]:
    return [
        toolchain.run_program("llvm-as", ["-o", "-", "-"], text).stdout
        for text in _stages(".opt.ll")
    ]


# Passes of llc, before and after register allocation and frame lowering.
STOPS = ("finalize-isel", "machine-scheduler", "virtregrewriter", "prologepilog")


def mir() -> list[bytes]:
    """MIR as llc prints it at some passes, and as fly-llc does, which records where to resume."""
    from fly_llc import Options, compile

    texts = _stages(".opt.ll")
    stopped = [
        toolchain.run_program("llc", [f"-stop-after={stop}", *_cpu(text)], text).stdout
        for stop, text in zip(STOPS, texts, strict=False)
    ]
    noted = [compile(text, Options(emit="mir", stop_after="post-ra")) for text in texts[:2]]
    return [*stopped, *noted, *noted]


def _cpu(text: bytes) -> list[str]:
    match = re.search(rb'"target-cpu"="(\w+)"', text)
    return [f"-mcpu={match[1].decode() if match else 'gfx942'}", "-o", "-", "-"]


def objects() -> list[bytes]:
    return _stages(".o")


def hsacos() -> list[bytes]:
    return _stages(".hsaco")


def programs() -> list[bytes]:
    """The texts of host programs, as many as there are code objects, in their order."""
    return [host_text.write(program_of(data)).encode() for data in hsacos()]


@functools.cache
def program_of(hsaco: bytes) -> Program:
    found = CodeObject.parse(hsaco).program
    assert found is not None
    return found


def arrays() -> list[bytes]:
    """.npy files of common shapes and types."""
    made = (
        np.zeros(64, np.float32),
        np.arange(24, dtype=np.int64).reshape(2, 3, 4),
        np.asfortranarray(np.ones((3, 5), np.float16)),
        np.zeros((0, 4), np.uint8),
        np.array(7, np.int32),
        np.array([True, False]),
    )
    found = []
    for array in made:
        for version in ((1, 0), (2, 0)):
            file = io.BytesIO()
            np.lib.format.write_array(file, array, version=version)
            found.append(file.getvalue())
    return found
