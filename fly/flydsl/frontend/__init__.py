"""`fly-trace --frontend flydsl`: FlyDSL's own tracing as the first stage.

FlyDSL runs in an interpreter that has its wheel (`fly.flydsl.frontend.program`); what it traces
comes back as a module of the dialect `fly`, for the stages that follow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from fly_common.errors import InputError, MissingError, Place, UsageError
from fly_common.quoting import quoted
from fly_dialect.layouts.integers import Int
from fly_trace.frontends import Request
from fly_trace.signatures.signature import Constant, ParameterType, ScalarType, TensorType

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
CUDA = HERE.parent / "cuda.py"
# FlyDSL's variables that say which GPU to trace for.
CHIPS = ("FLYDSL_GPU_ARCH", "ARCH", "HSA_OVERRIDE_GFX_VERSION")
# Element type → torch's name, and FlyDSL's of a pointer's elements.
DTYPES = {
    "f32": ("float32", "Float32"),
    "f16": ("float16", "Float16"),
    "bf16": ("bfloat16", "BFloat16"),
    "f64": ("float64", "Float64"),
    "f8E4M3FN": ("float8_e4m3fn", "Float8E4M3FN"),
    "f8E5M2": ("float8_e5m2", "Float8E5M2"),
    "f8E4M3FNUZ": ("float8_e4m3fnuz", "Float8E4M3FNUZ"),
    "f8E5M2FNUZ": ("float8_e5m2fnuz", "Float8E5M2FNUZ"),
    "i8": ("int8", "Int8"),
    "i16": ("int16", "Int16"),
    "i32": ("int32", "Int32"),
    "i64": ("int64", "Int64"),
    "u8": ("uint8", "Uint8"),
    "u16": ("uint16", "Uint16"),
    "u32": ("uint32", "Uint32"),
    "u64": ("uint64", "Uint64"),
}


def trace(request: Request) -> str:
    """Returns the module that FlyDSL traces of a host function. InputError for what the program
    does wrong, UsageError for a request that does not fit it, MissingError without FlyDSL."""
    target = request.target or next(filter(None, map(os.environ.get, CHIPS)), None)
    if target is None:
        raise UsageError(
            "FlyDSL traces for one GPU", hint=f"name it: --target CHIP, or the variable {CHIPS[0]}"
        )
    if not Path(request.path).is_file():
        raise UsageError(f"{request.path}: no such file")
    with tempfile.TemporaryDirectory() as folder:
        result = record(
            request.python or sys.executable,
            target,
            folder=folder,
            program=request.path,
            entry=request.entry,
            arguments=list(request.arguments),
            types={name: described(name, one) for name, one in request.types.items()} or None,
            locations=request.locations,
        )
        found = chosen(request, result)
        return (Path(folder) / found).read_text(encoding="utf-8")


def record(
    python: str,
    target: str,
    *,
    folder: str,
    program: str,
    output: IO[Any] | None = None,
    **job: Any,
) -> dict[str, Any]:
    """Runs a program with FlyDSL in the interpreter `python`, and returns the result of
    `fly.flydsl.frontend.program`. MissingError if that has no FlyDSL. What the program prints goes
    to `output`, or to stderr."""
    out: IO[Any] = output or sys.stderr
    job = {
        "program": program, "folder": folder, "cuda": str(CUDA), "module": False, "arguments": [],
        "entry": None, "types": None, "launch": None, "locations": True, **job,
    }  # fmt: skip
    file = Path(folder) / "job.json"
    file.write_text(json.dumps(job))
    variables = {**os.environ, **dict.fromkeys(CHIPS[:2], target)}
    try:
        done = subprocess.run(
            [python, PROGRAM, file],
            env=variables,
            stdout=out,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise MissingError(f"{python}: {error.strerror}", hint=INSTALL) from None
    if not (Path(folder) / "result.json").exists():
        said = done.stderr.decode(errors="replace")
        missing = [name for name in ("flydsl", "torch") if f"No module named '{name}" in said]
        if missing:
            raise MissingError(f"{python} has no {' and no '.join(missing)}", hint=INSTALL)
        last = (said.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise MissingError(f"FlyDSL did not run in {python}: {last}", hint=INSTALL)
    out.write(done.stderr.decode(errors="replace"))
    return json.loads((Path(folder) / "result.json").read_text())


INSTALL = (
    "`python -m venv flydsl && flydsl/bin/pip install flydsl==0.4.2 torch`, and"
    " --python flydsl/bin/python"
)


def chosen(request: Request, result: dict[str, Any]) -> str:
    """The file of the module that a request asks for."""
    modules, error = result["modules"], result["error"]
    entries = list(dict.fromkeys(entry for entry, _ in modules))
    if request.entry is None and len(entries) > 1 and not request.types:
        raise UsageError(
            f"{request.path} traces several host functions: {', '.join(entries)}",
            hint=f"name one, as in {request.path}:{entries[0]}",
        )
    wanted = [file for entry, file in modules if request.entry in (None, entry)]
    if wanted:
        return wanted[0]
    if error is None:
        what = "nothing" if request.entry is None else f"no {request.entry}"
        traced = f", but {', '.join(entries)}" if entries else ""
        raise UsageError(
            f"{request.path}, run as a program, traces {what}{traced}",
            hint="give the types of its parameters with --sig, so that it is called",
        )
    if not error["kind"]:
        raise UsageError(f"{request.path}: {error['message']}")
    message = f"{error['kind']}: {error['message']}"
    raise InputError(message, place=Place(error["file"] or request.path, error["line"]))


def described(name: str, one: ParameterType) -> dict[str, Any]:
    """A parameter's type for `fly.flydsl.frontend.program`."""
    if isinstance(one, Constant):
        return {"kind": "constant", "value": one.value}
    if isinstance(one, ScalarType):
        return {"kind": "scalar", "dtype": one.dtype.name}
    if not isinstance(one, TensorType):
        raise UsageError(f"--sig: {name} is {one}, which FlyDSL's tracing is not given")
    if one.dtype.name not in DTYPES:
        raise UsageError(f"--sig: {name}: torch has no tensors of {quoted(one.dtype.name)}")
    torch, own = DTYPES[one.dtype.name]
    shape, strides = one.leaves
    return {
        "kind": "tensor",
        "torch": torch,
        "fx": own,
        "shape": [leaf.value for leaf in shape],
        "strides": [leaf.value for leaf in strides],
        "multiples": [list(map(_multiple, shape)), list(map(_multiple, strides))],
        "align": {} if one.align is None else {"assumed_align": one.align},
    }


def _multiple(leaf: Int) -> int:
    return leaf.divisibility
