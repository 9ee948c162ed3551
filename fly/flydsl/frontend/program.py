"""Runs a program with FlyDSL itself, and keeps the modules that it traces.

    python program.py FOLDER CUDA.py FILE [ARGUMENT…]
    python program.py FOLDER CUDA.py -m MODULE [ARGUMENT…]

This file runs in the interpreter that has FlyDSL, which need not have anything of this project: it
imports FlyDSL and the standard library only. CUDA.py is `fly/flydsl/cuda.py`, which makes torch's
GPU the CPU.

Each module becomes FOLDER/NUMBER-ENTRY.mlir, with its locations, when its host function is called
for the first time with arguments of these types; FOLDER/NUMBER-ENTRY.json says what the
parameters are called. Nothing is compiled. A launch does nothing, unless the variable
FLY_TRACES_LAUNCH is a command: then each launch stores the arguments as .npy and .json, and runs
the command with the module's path and the folder of the arguments; it must store the tensors that
it changes there.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any


class Recorder:
    """The folder that the modules go to, and what was launched."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.numbers = itertools.count()
        self.launches = itertools.count()
        self.command = os.environ.get("FLY_TRACES_LAUNCH", "")
        self.last: Path | None = None

    def module(self, text: str, entry: str) -> Path:
        file = self.folder / f"{next(self.numbers):03}-{entry}.mlir"
        file.write_text(text, encoding="utf-8")
        self.last = file
        return file

    def launch(self, file: Path, names: list[str], values: tuple[Any, ...]) -> None:
        if not self.command:
            return
        folder = self.folder / f"{file.stem}.{next(self.launches):03}"
        folder.mkdir()
        tensors = store(folder, names, values)
        done = subprocess.run(
            [*self.command.split("\0"), str(file), str(folder)], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{file.stem}: {done.stderr.strip().splitlines()[-1:]}")
        load(folder, tensors)


def store(folder: Path, names: list[str], values: tuple[Any, ...]) -> dict[str, Any]:
    """Stores the arguments of a launch; returns the tensors by name."""
    said: list[dict[str, Any]] = []
    tensors: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        kind, held = described(value)
        if kind in ("tensor", "pointer"):
            tensors[name] = held
            whole = held if kind == "tensor" else held.reshape(-1)
            save(folder / f"{name}.bin", whole)
            said.append(
                {
                    "name": name,
                    "kind": kind,
                    "dtype": str(held.dtype),
                    "shape": list(whole.shape),
                    "stride": list(whole.stride()),
                }
            )
        elif kind == "scalar":
            said.append({"name": name, "kind": kind, "value": held})
        else:
            said.append({"name": name, "kind": kind})
    (folder / "arguments.json").write_text(json.dumps(said))
    return tensors


def load(folder: Path, tensors: dict[str, Any]) -> None:
    raise NotImplementedError


def save(file: Path, tensor: Any) -> None:
    raise NotImplementedError


def described(value: Any) -> tuple[str, Any]:
    raise NotImplementedError


def install(recorder: Recorder) -> None:
    """Puts the recorder where FlyDSL compiles and launches."""
    from flydsl.compiler import jit_function

    files: dict[int, Path] = {}

    class Kept:
        """What FlyDSL calls a compiled artifact: the file of the module."""

        def __init__(self, module: Any, name: str, *_: Any, **__: Any):
            assert recorder.last is not None
            self.file = recorder.last
            self._entry = name
            self._ir_text = self._source_ir = ""
            self._link_libs: list[str] = []
            self._ktrace_names: dict[str, Any] = {}
            self._ktrace_traced = False

    def compile(_: Any, module: Any, *, func_name: str = "", **__: Any) -> Any:
        recorder.module(module.operation.get_asm(enable_debug_info=True), func_name)
        return module

    def call_state(signature: Any, values: tuple[Any, ...], kept: Kept) -> Any:
        names = list(signature.parameters)
        return lambda given: recorder.launch(kept.file, names, given)

    del files
    jit_function.MlirCompiler.compile = classmethod(compile)
    jit_function.CompiledArtifact = Kept
    jit_function._build_call_state = call_state
    jit_function._capture_ktrace_names = lambda *_: None
    jit_function._prepare_aot_signature = lambda *_: (None, "not compiled")


def main() -> int:
    folder, cuda, *command = sys.argv[1:]
    specification = importlib.util.spec_from_file_location("cuda_on_cpu", cuda)
    module = importlib.util.module_from_spec(specification)  # type: ignore[arg-type]
    specification.loader.exec_module(module)  # type: ignore[union-attr]
    module.install()
    os.environ["FLYDSL_RUNTIME_ENABLE_CACHE"] = "0"
    install(Recorder(Path(folder)))
    as_module = command[0] == "-m"
    name, sys.argv = command[as_module], command[as_module:]
    if as_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(name).resolve().parent))
        runpy.run_path(name, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
