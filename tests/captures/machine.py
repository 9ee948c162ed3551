"""Runs the measured instructions on the emulator, with operands laid out as in the captures."""

from __future__ import annotations

import re

import numpy as np
from emulator_support.engine import compile_opencl, launch
from fly_common.programs import toolchain

LANES = 32
LANE = np.arange(LANES)
OLD = 0x56781234  # content of registers that an instruction need not write
DOT = """kernel void k(global uint *A, global uint *B, global uint *C, global uint *D, int n) {{
  int t = INDEX;
  if (t < n)
    __asm volatile("v_dot2_f32_{form} %0, %1, %2, %3"
                   : "=v"(D[t]) : "v"(A[t]), "v"(B[t]), "v"(C[t])); }}"""
MATRIX = """
typedef uint ab __attribute__((ext_vector_type({factors})));
typedef uint cd __attribute__((ext_vector_type({results})));
kernel void k(global ab *A, global ab *B, global cd *C, global cd *D) {{
  cd all = D[TID];
  __asm volatile("v_wmma_{name} %0, %1, %2, %3{modifiers}"
                 : "+v"(all) : "v"(A[TID]), "v"(B[TID]), "v"(C[TID]));
  D[TID] = all; }}"""
# One instruction by its words: A from v0 on, B from v8, C from v16, D from v24; returns v24 and
# v31.
WORDS = """__asm volatile("{moves}.long {words}\\n v_mov_b32 %0, v24\\n v_mov_b32 %1, v31"
  : "=v"(D[{n}]), "=v"(D[{n} + 1]) : : {clobbers});"""


def dots(target: str, form: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """v_dot2_f32: uint32[count] each."""
    found = np.zeros_like(a)
    code = compile_opencl(DOT.format(form=form), target, "-O1")
    launch(code, [a, b, c, found, np.int32(len(found))], -(-len(found) // 64), 64)
    return found


def matrix(
    target: str, result: str, form: str, factors: list[np.ndarray], c: np.ndarray, upper: int = 0
) -> np.ndarray:
    """Runs v_wmma. Returns D, uint32[16, 16], for A by rows, B by columns (uint16[16, 16] each, k
    second) and C. On gfx1201 k is ordered as in the captures: a lane of the first half has k 0 to
    7. `upper`: 16-bit results are in the upper halves of gfx1100's registers."""
    packed, short = target == "gfx1201", result != "f32"
    sides = [_factors(side, packed).view(np.uint32) for side in factors]
    rows, registers = _rows(packed), 4 if packed and short else 8
    words = c.astype(np.uint32)[rows, LANE[:, None] % 16]
    if packed and short:
        words = words[:, ::2] | words[:, 1::2] << np.uint32(16)
    elif short:
        words = words << np.uint32(16 * upper)
    found = np.full((LANES, registers), OLD, np.uint32)
    source = MATRIX.format(
        factors=sides[0].shape[1],
        results=registers,
        name=f"{result}_16x16x16_{form}",
        modifiers=" op_sel:[0,0,1]" if upper else "",
    )
    launch(compile_opencl(source, target, "-O1"), [*sides, words, found], 1, LANES)
    if packed and short:
        found = np.stack([found & np.uint32(0xFFFF), found >> np.uint32(16)], 2).reshape(LANES, 8)
    elif short:
        kept = found >> np.uint32(16 * (1 - upper)) & np.uint32(0xFFFF)
        if (kept != (OLD >> 16 * (1 - upper) & 0xFFFF)).any():
            raise SystemExit(f"captures: {result} in the half {upper} changes the other half")
        found = found >> np.uint32(16 * upper) & np.uint32(0xFFFF)
    whole = np.zeros((16, 16), np.uint32)
    whole[rows, LANE[:, None] % 16] = found
    return whole


def _factors(side: np.ndarray, packed: bool) -> np.ndarray:
    """uint16[lane, element]: gfx1201's lanes share k, gfx1100's upper lanes repeat the lower
    ones."""
    lines = side.astype(np.uint16)[LANE % 16]
    if not packed:
        return np.ascontiguousarray(lines)
    return np.ascontiguousarray(np.where(LANE[:, None] < 16, lines[:, :8], lines[:, 8:]))


def _rows(packed: bool) -> np.ndarray:
    """int[lane, element]: the row of C and D."""
    element, side = np.arange(8), LANE[:, None] // 16
    return element + 8 * side if packed else 2 * element + side


def known(target: str, cases: np.ndarray) -> np.ndarray:
    """bool[count]: which of the instructions cases[:, :2] LLVM's disassembler knows."""
    octets = np.ascontiguousarray(cases[:, :2]).view(np.uint8).tolist()
    text = "\n".join(" ".join(f"{octet:#x}" for octet in case) for case in octets)
    options = ["-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "--disassemble"]
    done = toolchain.run_program("llvm-mc", options, text.encode())
    refused = {int(line) for line in re.findall(rb":(\d+):\d+: warning: invalid", done.stderr)}
    return np.array([line not in refused for line in range(1, len(cases) + 1)])


def words(target: str, cases: np.ndarray) -> np.ndarray:
    """Returns v24 and v31 after each instruction with the words cases[:, :2], with all registers of
    A, B and C set to the words that follow: uint32[count, 2]."""
    clobbers = ", ".join(f'"v{register}"' for register in range(32))
    body = []
    for number, case in enumerate(cases.tolist()):
        moves = "".join(
            f"v_mov_b32 v{first + register}, {word:#x}\\n "
            for first, word in zip((0, 8, 16, 24), (*case[2:5], OLD), strict=True)
            for register in range(8)
        )
        spelled = f"{case[0]:#x}, {case[1]:#x}"
        body.append(WORDS.format(moves=moves, words=spelled, n=2 * number, clobbers=clobbers))
    source = "kernel void k(global uint *D) {\n" + "\n".join(body) + "}"
    found = np.zeros((len(cases), 2), np.uint32)
    launch(compile_opencl(source, target, "-O1"), [found], 1, LANES)
    return found
