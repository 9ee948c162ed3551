"""A third opinion: LLVM's constant folding of AMDGPU intrinsics, against emulator and oracle.

`opt -passes=instcombine` computes an intrinsic on constants; the same intrinsic on loaded values is
compiled to the instruction and executed.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from oracle.launching import build, launch
from oracle.launching.device import on_emulator
from oracle.probes.probe import EDGES
from oracle.program.hsaco import llvm_program

LANES = 64
WIDTH = {"i1": 8, "i32": 32, "float": 32, "half": 16, "double": 64, "<2 x half>": 32}


@dataclass(frozen=True)
class Fold:
    """An intrinsic, its result's type and its arguments' types. `ulp`: of a float result."""

    name: str
    result: str
    arguments: tuple[str, ...]
    ulp: int = 0

    @property
    def call(self) -> str:
        return f"call {self.result} @llvm.amdgcn.{self.name}"


FOLDS = [
    Fold("fract.f16", "half", ("half",)),
    Fold("fract.f32", "float", ("float",)),
    Fold("fract.f64", "double", ("double",)),
    Fold("rcp.f32", "float", ("float",), ulp=1),
    Fold("sin.f32", "float", ("float",), ulp=1),
    Fold("cos.f32", "float", ("float",), ulp=1),
    Fold("cvt.pkrtz", "<2 x half>", ("float", "float")),
    Fold("fmed3.f32", "float", ("float", "float", "float")),
    Fold("ubfe.i32", "i32", ("i32", "i32", "i32")),
    Fold("sbfe.i32", "i32", ("i32", "i32", "i32")),
    Fold("perm", "i32", ("i32", "i32", "i32")),
    Fold("frexp.mant.f32", "float", ("float",)),
    Fold("frexp.exp.i32.f32", "i32", ("float",)),
    Fold("frexp.mant.f64", "double", ("double",)),
    Fold("class.f32", "i1", ("float", "i32")),
    Fold("class.f64", "i1", ("double", "i32")),
    Fold("fmul.legacy", "float", ("float", "float")),
]
EDGE = {"float": "f32", "double": "f64", "half": "f16", "i32": "32"}


@functools.cache
def samples() -> np.ndarray:
    """uint64[fold, argument, lane]."""
    rng = np.random.default_rng(3)
    result = np.zeros((len(FOLDS), 3, LANES), np.uint64)
    for number, fold in enumerate(FOLDS):
        for position, kind in enumerate(fold.arguments):
            edges = np.array(EDGES[EDGE[kind]], np.uint64)
            chosen = rng.choice(edges, LANES)
            if len(fold.arguments) == 1:
                chosen[: len(edges)] = edges[:LANES]
            if kind in ("i32", "float"):
                chosen[-24:] = rng.integers(0, 1 << 32, 24, np.uint64)
            if fold.name == "perm" and position == 2:  # selectors: bytes of 0 to 15
                chosen = rng.integers(0, 1 << 32, LANES, np.uint64) & np.uint64(0x0F0F0F0F)
            if fold.name in ("sin.f32", "cos.f32"):
                chosen = rng.choice(np.array(EDGES["tame32"][:12], np.uint64), LANES)
            result[number, position] = chosen
        if fold.name == "fmed3.f32":
            # Beside an infinity LLVM takes the others' minimum or maximum before it looks for NaN,
            # where the manual has the minimum of all three.
            values = result[number].astype(np.uint32).view(np.float32)
            odd = np.isinf(values).any(0) & np.isnan(values).any(0)
            result[number][:, odd] = result[number][:, ~odd][:, :1]
    return result


def literal(kind: str, raw: int) -> str:
    raw = int(raw)
    if kind == "half":
        return f"0xH{raw & 0xFFFF:04X}"
    if kind == "double":
        return f"0x{raw:016X}"
    if kind == "float":
        # LLVM writes a float as the double of the same value; of a NaN, by its bits moved up.
        if raw & 0x7F800000 == 0x7F800000 and raw & 0x7FFFFF:
            return f"0x{(raw & 0x80000000) << 32 | 0x7FF << 52 | (raw & 0x7FFFFF) << 29:016X}"
        value = np.array([raw], np.uint32).view(np.float32).astype(np.float64)
        return f"0x{int(value.view(np.uint64)[0]):016X}"
    return str(raw)


def bits_of(kind: str, text: str) -> int | None:
    """The bits of a constant that opt printed; None for a value that it did not fold."""
    if kind == "i1":
        return {"true": 1, "false": 0}.get(text)
    if kind == "<2 x half>":
        if text == "zeroinitializer":
            return 0
        halves = re.findall(r"half (\S+?)[,>]", text)
        if len(halves) != 2:
            splat = re.fullmatch(r"splat \(half (\S+)\)", text)
            halves = [splat[1]] * 2 if splat else []
        found = [bits_of("half", half) for half in halves]
        return found[0] | found[1] << 16 if found and None not in found else None
    if text.startswith("%"):
        return None
    if kind == "i32":
        return int(text) & 0xFFFFFFFF
    if kind == "half" and text.startswith("0xH"):
        return int(text[3:], 16)
    value = (
        np.array([int(text, 16)], np.uint64).view(np.float64)
        if text.startswith("0x")
        else np.array([float(text)])
    )
    dtype = {"half": np.float16, "float": np.float32, "double": np.float64}[kind]
    with np.errstate(all="ignore"):
        return int(value.astype(dtype).view(f"u{np.dtype(dtype).itemsize}")[0])


def declarations() -> str:
    return "".join(
        f"declare {fold.result} @llvm.amdgcn.{fold.name}({', '.join(fold.arguments)})\n"
        for fold in FOLDS
    )


@functools.cache
def folded() -> dict[tuple[int, int], int]:
    """(fold, lane) → the bits of what opt computed of the samples."""
    inputs = samples()
    text = declarations()
    for number, fold in enumerate(FOLDS):
        for lane in range(LANES):
            arguments = ", ".join(
                f"{kind} {literal(kind, inputs[number, position, lane])}"
                for position, kind in enumerate(fold.arguments)
            )
            text += f"define {fold.result} @f{number}_{lane}() {{\n"
            text += f"  %r = {fold.call}({arguments})\n  ret {fold.result} %r\n}}\n"
    command = [llvm_program("opt"), "-S", "-passes=instcombine", "-mtriple=amdgcn-amd-amdhsa"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    found = re.findall(r"@f(\d+)_(\d+)\(\).*?\n  ret (.*?)\n", done.stdout, re.DOTALL)
    result = {}
    for number, lane, value in found:
        kind = FOLDS[int(number)].result
        raw = bits_of(kind, value.removeprefix(kind).strip())
        if raw is not None:
            result[int(number), int(lane)] = raw
    return result


@functools.cache
def compiled(target: str) -> bytes:
    """A kernel (inputs, outputs) that executes every intrinsic on the values of each lane."""
    body = ""
    for number, fold in enumerate(FOLDS):
        for position, kind in enumerate(fold.arguments):
            at = (number * 3 + position) * LANES
            body += f"""
  %i{number}_{position} = add i32 %lane, {at}
  %p{number}_{position} = getelementptr i64, ptr addrspace(1) %in, i32 %i{number}_{position}
  %a{number}_{position} = load {kind}, ptr addrspace(1) %p{number}_{position}"""
        arguments = ", ".join(f"{kind} %a{number}_{k}" for k, kind in enumerate(fold.arguments))
        kind = fold.result
        stored = f"%r{number}"
        body += f"\n  %r{number} = {fold.call}({arguments})"
        if kind == "i1":
            body += f"\n  %z{number} = zext i1 %r{number} to i8"
            kind, stored = "i8", f"%z{number}"
        body += f"""
  %o{number} = add i32 %lane, {number * LANES}
  %q{number} = getelementptr i64, ptr addrspace(1) %out, i32 %o{number}
  store {kind} {stored}, ptr addrspace(1) %q{number}
"""
    text = f"""target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
{declarations()}
define amdgpu_kernel void @probe(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
{body}
  ret void
}}
"""
    with tempfile.TemporaryDirectory() as folder:
        middle, path = Path(folder, "k.o"), Path(folder, "k.hsaco")
        code = [llvm_program("llc"), f"-mcpu={target}", "-filetype=obj", "-o", str(middle)]
        subprocess.run(code, input=text, text=True, check=True, capture_output=True)
        subprocess.run(
            [llvm_program("ld.lld"), "-shared", str(middle), "-o", str(path)], check=True
        )
        return path.read_bytes()


def equal(fold: Fold, got: int, expected: int) -> bool:
    width = WIDTH[fold.result]
    got &= (1 << width) - 1
    if got == expected:
        return True
    if fold.result in ("float", "half", "double"):
        a, b = (
            np.array([x], np.uint64).astype(f"u{width // 8}").view(f"f{width // 8}")[0]
            for x in (got, expected)
        )
        near = fold.ulp > 0 and (a == b or abs(got - expected) <= fold.ulp)
        return bool(near or (a != a and b != b))
    if fold.result == "<2 x half>":
        pairs = [
            (x & 0xFFFF, y & 0xFFFF) for x, y in ((got, expected), (got >> 16, expected >> 16))
        ]
        nan = [all(v & 0x7FFF > 0x7C00 for v in pair) for pair in pairs]
        return all(is_nan or x == y for is_nan, (x, y) in zip(nan, pairs, strict=True))
    return False


@pytest.mark.parametrize("device", ["emulator", "oracle"])
@pytest.mark.parametrize("target", build.TARGETS)
def test_folding(target, device):
    inputs = samples()
    outputs = np.zeros((len(FOLDS), LANES), np.uint64)
    run = on_emulator if device == "emulator" else launch.on_oracle
    result = run(compiled(target), "probe", (1, 1, 1), (LANES, 1, 1), [inputs, outputs])
    expected = folded()
    # Every intrinsic is folded on most of its samples, or the test tests nothing.
    for number, fold in enumerate(FOLDS):
        count = sum(1 for place in expected if place[0] == number)
        assert count >= LANES // 2, f"{fold.name} is folded {count} times"
    wrong = [
        f"{FOLDS[n].name}({', '.join(f'{int(x):#x}' for x in inputs[n, :, lane])}):"
        f" {int(result.arguments[1][n, lane]):#x}, LLVM {value:#x}"
        for (n, lane), value in expected.items()
        if not equal(FOLDS[n], int(result.arguments[1][n, lane]), value)
    ]
    assert not wrong, "\n".join(wrong)
