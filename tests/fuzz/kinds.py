"""The kinds of inputs, and the functions that read each in process."""

from __future__ import annotations

import dataclasses
import functools
import os
import random
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from fly_host import text as host_text
from fly_host.program import Program, Scalar, Tensor
from fly_image.amd.code_object import CodeObject
from fly_opt.pipeline import registry

from fuzz import corpus, damage

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
EXTENT = 32  # of a dynamic dimension
INSTRUCTIONS = 3000  # limit for a mutated kernel
NEED_OPTIONS = ("fly-set-target", registry.EMIT_LLVM)
PASSES = (
    *(name for name in registry.descriptions() if name not in NEED_OPTIONS),
    *("canonicalize", "cse", "symbol-dce", "gpu-kernel-outlining", "lower-affine"),
    *(
        "convert-scf-to-cf",
        "convert-gpu-to-rocdl",
        "convert-math-to-rocdl",
        "reconcile-unrealized-casts",
    ),
)


@dataclass(frozen=True)
class Kind:
    """`seeds()` returns valid inputs; `read(data, generator)` does in this process what the tools
    do with an input, and raises a FlyError for one that it rejects. `share` is the percentage of
    cases of this kind. `suffix` is that of its files, `tool` the tool that reports errors."""

    name: str
    tool: str
    suffix: str
    text: bool
    share: int
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, random.Random], None]
    special: damage.Damage | None = None


# -- MLIR and LLVM IR -----------------------------------------------------------------------------
def read_mlir(data: bytes, generator: random.Random) -> None:
    """Mostly parses, verifies and prints. Otherwise runs the passes of its RUN line or others, or a
    target's whole pipeline."""
    from fly_opt.pipeline import stage
    from fly_opt.pipeline.options import Options

    way = generator.random()
    if way < 0.5:
        options = Options(locations=way < 0.2)
    elif way < 0.6:
        options = Options(emit="llvm")
    elif way < 0.75:
        named = [one for one in dict.fromkeys(_FLAG.findall(data)) if one.decode() in PASSES]
        steps = [one.decode() for one in named[:6]]
        if not steps or way < 0.65:
            steps = generator.sample(PASSES, generator.choice((1, 2, 3)))
        text = ",".join(_placed(step) for step in steps)
        options = Options(passes=f"builtin.module({text})")
    else:
        options = Options(target=generator.choice(TARGETS), debug_info=way > 0.95)
    stage.compile(data, options)


_FLAG = re.compile(rb" --([a-z][a-z0-9-]+)")


@functools.cache
def _placed(name: str) -> str:
    from fly_opt.pipeline.runner import implicit_nest
    from fly_opt.pipeline.text import Step

    return str(implicit_nest(Step(name, "")))


def read_llvm_ir(data: bytes, generator: random.Random) -> None:
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.source import prepare
    from fly_opt.emission import llvm_text

    if generator.random() < 0.5:
        llvm_text.bridge(data.decode(errors="replace"))
    prepare(data, Options(), "<stdin>")
    _sometimes_compile(data, generator)


def _sometimes_compile(data: bytes, generator: random.Random, share: float = 0.02) -> None:
    """llc is a process of 20 ms, and its errors have many forms."""
    from fly_llc import Options, compile

    if generator.random() < share:
        compile(data, Options(level=generator.choice((0, 2)), timeout=10.0))


def read_bitcode(data: bytes, generator: random.Random) -> None:
    """llvm-dis reads bitcode in a process of 15 ms, so few cases use it."""
    from fly_common import artifact
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.source import prepare

    kind = artifact.identify(data)
    if kind != artifact.BITCODE or generator.random() < 0.1:
        prepare(data, Options(), "<stdin>")
        _sometimes_compile(data, generator, 0.2)


def read_mir(data: bytes, generator: random.Random) -> None:
    from fly_llc import mir
    from fly_llc.codegen import points, resume
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.source import prepare
    from fly_llc.insertion import filters

    text = data.decode(errors="replace")
    name = generator.choice([*filters.SHIPPED])
    generator.choice(
        (
            lambda: str(mir.parse(text)),
            lambda: filters.shipped(name)(text, []),
            lambda: resume.user_registers(resume.readable(data)),
            lambda: points.read_note(data),
        )
    )()
    prepare(data, Options(start_after=generator.choice((None, None, "post-ra"))), "<stdin>")
    _sometimes_compile(data, generator)


# -- objects, code objects, programs --------------------------------------------------------------
def read_object(data: bytes, generator: random.Random) -> None:
    from fly_link.backends.amd import inputs, linker, undefined

    if generator.random() < 0.02:
        linker.link([data], ["<stdin>"])
        return
    read = inputs.read([data], ["<stdin>"])
    inputs.check_targets(read)
    inputs.check_duplicates(read)
    undefined.check(read)
    inputs.the_manifest(read)


def read_hsaco(data: bytes, generator: random.Random) -> None:
    from fly_run.devices.options import Options
    from fly_run.devices.registry import open_device
    from fly_run.launch import execution, launch
    from fly_run.shell import inspect

    code = CodeObject.parse(data, "x.hsaco")
    inspect.text([code], "x.hsaco"), inspect.as_json([code])
    if generator.random() < 0.5:
        return
    options = Options(max_instructions=INSTRUCTIONS, strict=generator.random() < 0.2)
    opened = open_device("emulator", code.target, options)
    try:
        module, program = opened.load(code), code.program
        if program is not None:
            execution.run(program, code, module, opened, values_for(program))
        else:
            kernel = next(iter(code.kernels.values()))
            sizes = (2, 1, 1), (64, 1, 1)
            given = [np.zeros(max(1, one.size), np.uint8) for one in kernel.arguments]
            call = launch.bind_arguments(code, kernel.name, *sizes, list(given), 0, None)
            call.run(module, opened)
    finally:
        opened.close()


def values_for(program: Program) -> dict[str, np.ndarray | int | float]:
    """Returns an argument for each parameter of a program, of EXTENT elements a dimension."""
    from fly_run.launch.arrays import dtypes

    made: dict[str, np.ndarray | int | float] = {}
    for one in program.parameters:
        if isinstance(one, Scalar):
            made[one.name] = 1
        if not isinstance(one, Tensor):
            continue
        shape = [min(e, 4096) if isinstance(e, int) else EXTENT for e in one.shape[:4]]
        made[one.name] = np.zeros(shape, dtypes.numpy_dtype(one.dtype))
    return made


def read_program(data: bytes, generator: random.Random) -> None:
    """A program's text, and what it does for the code that it was made for, by either reader."""
    from fly_host.readers import interpreter, python_code, python_text
    from fly_run.shell import inspect
    from launch_recording import record

    interpreter.MOST_ITERATIONS = python_text.MOST_ITERATIONS = 1000
    read = host_text.read(data)
    for hsaco in corpus.hsacos():
        code = CodeObject.parse(hsaco)
        if code.target == read.target and all(one.kernel in code.kernels for one in read.launches):
            damaged = dataclasses.replace(code, program=read)
            inspect.text([damaged], "x.hsaco"), inspect.as_json([damaged])
            host_text.read(host_text.write(read))
            reader = generator.choice((interpreter.run, python_code.run))
            record(read, damaged, values_for(read), reader)
            return


# -- files ----------------------------------------------------------------------------------------
def read_array(data: bytes, generator: random.Random) -> None:
    from fly_run.shell import npy
    from fly_trace.signatures import npy_headers

    path = str(_folder() / "x.npy")
    Path(path).write_bytes(data)
    if generator.random() < 0.3:
        str(npy_headers.of_npy(path, static=generator.random() < 0.5))
    else:
        npy.dump(npy.load(path))


KEY = sha256(b"the key of an entry").hexdigest()
CONTENT = b"the content of an entry\n" * 20


def entries() -> list[bytes]:
    """Returns a store's two files of one entry, joined, so that one mutation covers both."""
    return [b"".join(_files(Path(made))) for made in [_fresh()]]


def _fresh() -> str:
    from fly_store.store import Store

    folder = str(_folder() / "store")
    Store(folder).put(KEY, CONTENT, label="test", suffix=".ll", origin=("fingerprint", b"input"))
    return folder


def _files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in _paths(folder)]


def _paths(folder: Path) -> list[Path]:
    """Returns the file of the key, and that of the object."""
    kinds = ("keys", "objects")
    return [path for kind in kinds for path in sorted((folder / kind).rglob("*")) if path.is_file()]


class WrongContent(Exception):
    """The store returned content that was never stored."""


def read_entry(data: bytes, generator: random.Random) -> None:
    """A mutated store returns the content or nothing, and the content can be stored again."""
    from fly_store.store import Store

    folder = Path(_fresh())
    key, held = _paths(folder)
    if generator.random() < 0.7:
        key.write_bytes(data[: -len(CONTENT)] if generator.random() < 0.7 else data)
    else:
        held.write_bytes(data[-len(CONTENT) :])
    store = Store(folder)
    if store.get(KEY) not in (None, CONTENT):
        raise WrongContent("get gave something else")
    if store.obtain(KEY, lambda: CONTENT, label="test", suffix=".ll") != CONTENT:
        raise WrongContent("obtain gave something else")
    if store.get(KEY) != CONTENT:
        raise WrongContent("the entry was not made again")
    key.unlink()
    held.unlink(missing_ok=True)


_root = Path(tempfile.gettempdir())


def use_folder(root: Path) -> None:
    """Sets the folder for the files of processes; the caller removes it."""
    global _root
    _root = root


def _folder() -> Path:
    """Returns a folder of this process's own."""
    folder = _root / str(os.getpid())
    folder.mkdir(exist_ok=True)
    return folder


KINDS = {
    kind.name: kind
    for kind in (
        Kind("mlir", "fly-opt-py", ".mlir", True, 20, corpus.mlir, read_mlir, damage.exchange),
        Kind("llvm-ir", "fly-llc", ".ll", True, 12, corpus.llvm_ir, read_llvm_ir, damage.exchange),
        Kind("bitcode", "fly-llc", ".bc", False, 4, corpus.bitcode, read_bitcode),
        Kind("mir", "fly-llc", ".mir", True, 12, corpus.mir, read_mir, damage.exchange),
        Kind("object", "fly-link", ".o", False, 13, corpus.objects, read_object),
        Kind("hsaco", "fly-run", ".hsaco", False, 13, corpus.hsacos, read_hsaco, damage.elf_code),
        Kind(
            "program",
            "fly-run",
            ".json",
            True,
            12,
            corpus.programs,
            read_program,
            damage.json_value,
        ),
        Kind("npy", "fly-run", ".npy", False, 9, corpus.arrays, read_array, damage.npy_header),
        Kind("cache", "fly-llc", ".entry", False, 5, entries, read_entry),
    )
}
