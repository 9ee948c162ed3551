"""Runs a program with FlyDSL itself, and keeps the modules that it traces.

    python program.py JOB.json

This file runs in the interpreter that has FlyDSL, which need not have anything of this project: it
imports FlyDSL, torch and the standard library only. The job says

    program     a Python file, or a module with `module: true`
    arguments   of the program
    folder      where modules go: NUMBER-ENTRY.mlir
    cuda        the file fly/flydsl/cuda.py, which makes torch's GPU the CPU
    locations   whether the modules have source locations
    entry       the host function whose first trace is wanted; then the program ends. Or null
    types       null: the program runs as the main program, and what its calls trace is kept.
                Else the parameters of the entry, which is called: see `made`
    launch      null: launches do nothing. Else a command, which gets a module and a folder with
                the arguments, and changes the tensors there

and result.json in the folder says what came of it: {"modules": [[ENTRY, FILE], …], "error": null
or {"kind", "message", "file", "line"}}. Nothing is compiled here.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import inspect
import json
import os
import runpy
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

Job = dict[str, Any]


def flydsl(name: str) -> Any:
    """A module of FlyDSL's, of which this project's checkers know nothing."""
    return importlib.import_module(f"flydsl.{name}")


class Found(BaseException):
    """The wanted module is there."""


class Recorder:
    """What was traced and launched so far."""

    def __init__(self, job: Job):
        self.job = job
        self.folder = Path(job["folder"])
        self.modules: list[tuple[str, str]] = []
        self.launches = 0
        self.parameters: tuple[list[str], list[Any]] = ([], [])
        self.names: list[str] = []  # of the function's parameters
        self.waits = job["types"] is not None  # for the call, while the program's lines run

    def module(self, module: Any, entry: str) -> None:
        if self.waits:
            return
        name_arguments(module, entry, *self.parameters)
        file = f"{len(self.modules):03}-{entry}.mlir"
        text = module.operation.get_asm(enable_debug_info=self.job["locations"])
        (self.folder / file).write_text(text, encoding="utf-8")
        self.modules.append((entry, file))
        if entry == self.job["entry"]:
            raise Found

    def launch(self, file: str, arguments: dict[str, Any]) -> None:
        if self.job["launch"] is None:
            return
        folder = self.folder / f"{Path(file).stem}.{self.launches:03}"
        self.launches += 1
        folder.mkdir()
        tensors = store(folder, arguments)
        before = {name: as_bytes(tensor) for name, tensor in tensors.items()}
        command = [*self.job["launch"], str(self.folder / file), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            raise RuntimeError((lines or [f"the launch ended with {done.returncode}"])[0])
        import torch

        for name, tensor in tensors.items():
            data = (folder / f"{name}.bin").read_bytes()
            # Memory may be several arguments', of which kernels write one: what differs is new.
            if data != before[name]:
                old, new = (
                    torch.frombuffer(bytearray(one), dtype=torch.uint8)
                    for one in (before[name], data)
                )
                own = tensor.view(torch.uint8)
                own.copy_(torch.where(new != old, new, own))


def name_arguments(module: Any, entry: str, names: list[str], arguments: list[Any]) -> None:
    """Gives the parameters their names, so that later stages can take arguments by them."""
    ir, get_ir_types = flydsl("_mlir.ir"), flydsl("compiler.protocol").get_ir_types
    for op in module.body.operations:
        if (
            op.operation.name == "func.func"
            and ir.StringAttr(op.attributes["sym_name"]).value == entry
        ):
            break
    else:
        return
    told: list[dict[str, Any]] = []
    for name, argument in zip(names, arguments, strict=False):
        count = len(get_ir_types(argument))
        for part in range(count):
            one = {"fly.name": ir.StringAttr.get(name if count == 1 else f"{name}_{part}")}
            if kind := unsigned(argument):
                one["fly.dtype"] = ir.StringAttr.get(kind)
            told.append(one)
    inputs = list(op.regions[0].blocks[0].arguments)
    taken = set(names)
    while len(told) < len(inputs):  # a stream that FlyDSL adds
        name = "stream" if "stream" not in taken else f"stream_{len(told)}"
        taken.add(name)
        told.append({"fly.name": ir.StringAttr.get(name)})
    op.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(one) for one in told])
    module.operation.attributes["fly.entry"] = ir.StringAttr.get(entry)


def unsigned(argument: Any) -> str:
    """The unsigned type of a tensor's elements, which MLIR's type does not say."""
    held = getattr(argument, "torch_tensor", getattr(argument, "dltensor", None))
    dtype = str(getattr(held, "dtype", ""))
    return {"torch.uint8": "u8", "torch.uint16": "u16", "torch.uint32": "u32"}.get(dtype, "")


# -- arguments of launches ------------------------------------------------------------------------
def store(folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """Stores the arguments of a launch, and returns the tensors by name: contiguous views of their
    memory."""
    told: dict[str, Any] = {}
    tensors: dict[str, Any] = {}
    for name, value in arguments.items():
        tensor = tensor_of(value)
        if tensor is not None:
            flat = memory(tensor)
            tensors[name] = flat
            told[name] = {
                "dtype": element(value) or str(tensor.dtype).removeprefix("torch."),
                "pointer": type(value).__name__ == "PointerJitArg",
                "shape": list(tensor.shape),
                "strides": list(tensor.stride()),
            }
            (folder / f"{name}.bin").write_bytes(as_bytes(flat))
        elif type(value).__name__ == "Stream":
            continue
        elif isinstance(plain := getattr(value, "value", value), (bool, int, float)):
            told[name] = {"value": plain}
            if (flat := at_address(plain)) is not None:
                tensors[name] = flat
                told[name] = {
                    "dtype": "uint8", "address": True, "pointer": False,
                    "shape": [len(flat)], "strides": [1],
                }  # fmt: skip
                (folder / f"{name}.bin").write_bytes(as_bytes(flat))
    (folder / "arguments.json").write_text(json.dumps(told))
    return tensors


def at_address(value: Any) -> Any:
    """The bytes from an address on to the end of what torch has allocated there: kernels take
    addresses as integers, too. None for an integer that is no such address."""
    import torch

    if type(value) is not int or value < 1 << 16:  # where no system has memory of a program
        return None
    for one in gc.get_objects():
        if type(one) is torch.Tensor and one.device.type == "cpu":
            storage = one.untyped_storage()
            start, size = storage.data_ptr(), storage.nbytes()
            if start <= value < start + size:
                whole = torch.empty(0, dtype=torch.uint8).set_(storage)
                return whole[value - start :]
    return None


def element(value: Any) -> str:
    """torch's name of a pointer's element type, which need not be that of the tensor there; of
    integers the one with a sign, as MLIR's type has none."""
    if type(value).__name__ != "PointerJitArg":
        return ""
    name = getattr(value.element_type, "__name__", "").lower()
    return name.replace("uint", "int")


def as_bytes(tensor: Any) -> bytes:
    import torch

    return bytes(tensor.detach().view(torch.uint8).numpy())


def memory(tensor: Any) -> Any:
    """The elements from a tensor's first to its last, as a tensor of one dimension."""
    count = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    count = count if tensor.numel() else 0
    return tensor.detach().as_strided((count,), (1,))


def tensor_of(value: Any) -> Any:
    """The tensor of an argument: of a pointer, the one that begins there."""
    import torch

    if isinstance(value, torch.Tensor):
        return value
    for name in ("torch_tensor", "dltensor"):
        if isinstance(held := getattr(value, name, None), torch.Tensor):
            return held
    if type(value).__name__ != "PointerJitArg" or not value.pointer.value:
        return None
    for one in gc.get_objects():
        if isinstance(one, torch.Tensor) and one.data_ptr() == value.pointer.value:
            return memory(one)
    raise RuntimeError("no tensor begins at the address of a pointer")


# -- the interface to FlyDSL ----------------------------------------------------------------------
def install(recorder: Recorder) -> None:
    """Puts the recorder where FlyDSL compiles and launches."""
    jit_function = flydsl("compiler.jit_function")

    class Kept:
        """What FlyDSL keeps of a compiled function: here, the file of the module."""

        def __init__(self, module: Any, name: str, *_: Any, **__: Any):
            self.file = "" if recorder.waits else recorder.modules[-1][1]
            # Arguments by their place among all of the call's; constants are in no module.
            own = set(recorder.parameters[0])
            self.own = [pair for pair in enumerate(recorder.names) if pair[1] in own]
            self._entry = name
            self._ir_text = self._source_ir = ""
            self._link_libs: list[str] = []
            self._ktrace_names: dict[str, Any] = {}
            self._ktrace_traced = False

        def _get_func_exe(self) -> Any:
            return lambda *_: None

    def compile(_: Any, module: Any, *, func_name: str = "", **__: Any) -> Any:
        recorder.module(module, func_name)
        return module

    def call_state(kept: Kept) -> Any:
        def launch(given: tuple[Any, ...]) -> None:
            arguments = {name: given[at] for at, name in kept.own if at < len(given)}
            recorder.launch(kept.file, arguments)

        return launch

    convert = jit_function.convert_to_jit_arguments

    def converted(signature: Any, bound: Any) -> Any:
        found = convert(signature, bound)
        recorder.names = list(signature.parameters)
        recorder.parameters = (list(found[0]), list(found[1]))
        return found

    jit_function.convert_to_jit_arguments = converted
    jit_function.MlirCompiler.compile = classmethod(compile)
    jit_function.CompiledArtifact = Kept
    jit_function._build_call_state = lambda signature, values, kept: call_state(kept)
    jit_function._call_state_from_spec = lambda spec, kept: call_state(kept)
    # The launches read tensors of the CPU, which FlyDSL would only compile for.
    jit_function._is_compile_placeholder = lambda *_, **__: False
    jit_function._capture_ktrace_names = lambda *_: None
    jit_function._prepare_aot_signature = lambda *_: (None, "it was not compiled")


# -- calls ----------------------------------------------------------------------------------------
def made(told: Job, annotation: Any) -> Any:
    """An argument of the type that the caller told: a tensor (dtype, shape, strides; null is
    dynamic), a scalar (dtype), a constant (value)."""
    flyc, fx = flydsl("compiler"), flydsl("expr")
    import torch

    if told["kind"] == "constant":
        return told["value"]
    if told["kind"] == "scalar":
        whole = told["dtype"].startswith(("i", "u", "index", "bool"))
        return 1 if whole else 1.0
    dtype = getattr(torch, told["torch"])
    if "Pointer" in str(annotation):
        kind = getattr(fx, told["fx"])
        return flyc.from_c_void_p(kind, ctypes.c_void_p(None))
    shape, strides = told["shape"], told["strides"]
    # Any extents do where they are dynamic; a stride of one would be taken for static.
    sizes = [16 * (dimension + 2) if one is None else one for dimension, one in enumerate(shape)]
    steps, step = [], 1
    for size in reversed(sizes):
        steps.insert(0, step)
        step *= size
    given = [own if one is None else one for own, one in zip(steps, strides, strict=True)]
    count = 1 + sum((n - 1) * s for n, s in zip(sizes, given, strict=True))
    tensor = torch.zeros(max(count, 1), dtype=dtype).as_strided(sizes, given)
    argument = flyc.from_torch_tensor(tensor, **told["align"])
    shapes = [dimension for dimension, one in enumerate(shape) if one is None]
    dynamic = [dimension for dimension, one in enumerate(strides) if one is None]
    if shapes:
        argument.mark_shape_dynamic(shapes, [told["multiples"][0][one] for one in shapes])
    if dynamic:
        argument.mark_stride_dynamic(dynamic, [told["multiples"][1][one] for one in dynamic])
    return argument


def call(job: Job, recorder: Recorder, names: dict[str, Any]) -> None:
    """Calls the entry, or the only host function of a program, with arguments of these types."""
    JitFunction = flydsl("compiler.jit_function").JitFunction
    hosts = {name: one for name, one in names.items() if isinstance(one, JitFunction)}
    if job["entry"] is None and len(hosts) != 1:
        listed = ", ".join(hosts) or "none"
        raise LookupError(f"name the host function, as in FILE:ENTRY; the file has {listed}")
    entry = job["entry"] or next(iter(hosts))
    if entry not in hosts:
        raise LookupError(f"there is no @flyc.jit function {entry}: {', '.join(hosts) or 'none'}")
    job["entry"] = hosts[entry].func.__name__
    arguments = {}
    for name, one in inspect.signature(hosts[entry].func, eval_str=False).parameters.items():
        if name in job["types"]:
            arguments[name] = made(job["types"][name], one.annotation)
        elif one.default is inspect.Parameter.empty and "Stream" not in str(one.annotation):
            raise LookupError(f"parameter {name} of {entry} has no type: --sig '{name}: …'")
    if unknown := set(job["types"]) - set(inspect.signature(hosts[entry].func).parameters):
        raise LookupError(f"{entry} has no parameter {sorted(unknown)[0]}")
    hosts[entry]._mem_cache.clear()  # of the program's own calls
    hosts[entry]._call_state_cache.clear()
    recorder.waits = False
    hosts[entry](**arguments)


def run(job: Job, recorder: Recorder) -> None:
    program, sys.argv = job["program"], [job["program"], *job["arguments"]]
    if job["module"]:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, str(Path(program).resolve().parent))
    if job["types"] is None:
        runpy.run_path(program, run_name="__main__")
    else:
        call(job, recorder, runpy.run_path(program, run_name="traced"))


def place(job: Job, error: BaseException) -> tuple[str | None, int | None]:
    """The innermost line of the program, or of what is beside it, that an error comes from."""
    home = str(Path(job["program"]).resolve().parent)
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError):
        return error.filename, error.lineno
    own = [one for one in frames if str(Path(one.filename).resolve()).startswith(home)]
    return (own[-1].filename, own[-1].lineno) if own and not job["module"] else (None, None)


def main() -> int:
    job = json.loads(Path(sys.argv[1]).read_text())
    specification = importlib.util.spec_from_file_location("cuda_on_cpu", job["cuda"])
    module = importlib.util.module_from_spec(specification)  # type: ignore[arg-type]
    specification.loader.exec_module(module)  # type: ignore[union-attr]
    module.install()
    os.environ["FLYDSL_RUNTIME_ENABLE_CACHE"] = "0"
    recorder = Recorder(job)
    install(recorder)
    told = None
    try:
        run(job, recorder)
    except Found:
        pass
    except BaseException as error:
        if not (isinstance(error, SystemExit) and error.code in (None, 0)):
            file, line = place(job, error)
            lines = [one.strip() for one in str(error).splitlines() if one.strip()]
            kind = "" if isinstance(error, LookupError) else type(error).__name__
            told = {"kind": kind, "message": " ".join(lines[:1]), "file": file, "line": line}
    result = {"modules": recorder.modules, "error": told}
    (Path(job["folder"]) / "result.json").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
