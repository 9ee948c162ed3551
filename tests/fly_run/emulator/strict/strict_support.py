"""Correct kernels, and mutants of them with one line of their assembly missing."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from emulator_support.engine import PRELUDE, assemble, launch
from fly_common.errors import Fault
from fly_common.programs import toolchain

KERNELS = {
    "scale": """kernel void k(global float *A, global float *B, int n) {
        if (INDEX < n) B[INDEX] = A[INDEX] * 3.0f + A[(INDEX * 7) % n]; }""",
    "rotate": """kernel void k(global float *A, global float *B, int n) {
        local float s[256];
        float v = INDEX < n ? A[INDEX] : 0.0f;
        for (int i = 0; i < 3; i++) {
            s[TID] = v;
            BARRIER;
            v += s[(TID + 64) % 256];
            if (i < 2) { BARRIER; }
        }
        B[INDEX] = v; }""",
    "transpose": """kernel void k(global float *A, global float *B, int n) {
        local float s[16][17];
        int x = TID % 16, y = TID / 16;
        s[y][x] = A[INDEX];
        BARRIER;
        B[INDEX] = s[x][y]; }""",
    "product": """kernel void k(global float *A, global float *B, int n) {
        local float s[16][16], t[16][16];
        int x = TID % 16, y = TID / 16;
        float sum = 0.0f;
        for (int i = 0; i < 2; i++) {
            s[y][x] = A[i * 256 + TID]; t[y][x] = A[TID];
            BARRIER;
            for (int j = 0; j < 16; j++) sum += s[y][j] * t[j][x];
            if (i == 0) { BARRIER; }
        }
        B[INDEX] = sum; }""",
    "count": """kernel void k(global float *A, global float *B, int n) {
        float sum = 0.0f; int found = 0;
        for (int i = TID; i < n; i += 64)
            if (A[i] > 0.0f) { sum += A[i]; found++; }
        B[INDEX] = found ? sum / found : -1.0f; }""",
}
WAIT = re.compile(r"\s+s_wait(?!cnt_depctr|_alu)")  # except those for hazards of the ALU
BARRIER = re.compile(r"\s+s_barrier")
# Sets a vector register to a constant, as the kernel does for counters and sums.
SET = re.compile(r"\s+v_mov_b32_e32 (v\d+), -?[\d.]+$")


@dataclass(frozen=True)
class Mutant:
    """A kernel without line `number` of its assembly, `line`."""

    kernel: str
    target: str
    level: str
    number: int
    line: str

    @property
    def invalidates(self) -> bool:
        """Whether it is the wait before a cache invalidation. Without outstanding loads, that only
        affects when other workgroups see global memory, which --strict does not check."""
        lines = assembly(self.kernel, self.target, self.level)
        return "loadcnt " in self.line and "global_inv" in lines[self.number + 1]

    @property
    def text(self) -> str:
        lines = assembly(self.kernel, self.target, self.level)
        return "\n".join([*lines[: self.number], *lines[self.number + 1 :]])


@functools.cache
def assembly(kernel: str, target: str, level: str) -> tuple[str, ...]:
    words = ["-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-nogpulib"]
    words += [f"-mcpu={target}", level, "-S", "-o", "-", "-"]
    done = toolchain.run_program("clang", words, (PRELUDE + KERNELS[kernel]).encode())
    assert done.returncode == 0, done.stderr.decode()
    return tuple(done.stdout.decode().splitlines())


def body(lines: tuple[str, ...], level: str) -> range:
    """Returns the executed lines. clang emits a kernel's body twice, once as a function, which the
    kernel only calls without optimisation."""
    label = "__clang_ocl_kern_imp_k:" if level == "-O0" else "k:"
    first = next(at for at, line in enumerate(lines) if line.startswith(label))
    ends = (at for at in range(first, len(lines)) if re.search("s_endpgm|s_setpc", lines[at]))
    return range(first, next(ends))


def mutants(what: re.Pattern[str], target: str, level: str) -> Iterator[Mutant]:
    """Yields a mutant for each line that matches `what`. Initialisations are only removed if no
    earlier line names the register and it is set to a constant once: otherwise it may hold an old
    value."""
    for kernel in KERNELS:
        lines = assembly(kernel, target, level)
        texts = {number: re.sub(r"\s*;.*", "", lines[number]) for number in body(lines, level)}
        sets = [found[1] for text in texts.values() if (found := SET.match(text))]
        for number, text in texts.items():
            found = what.match(text)
            if not found:
                continue
            if what is SET:
                before = " ".join(line for at, line in texts.items() if at < number)
                if sets.count(found[1]) > 1 or _names(before, int(found[1][1:])):
                    continue
            yield Mutant(kernel, target, level, number, text.strip())


def _names(text: str, number: int) -> bool:
    """Whether assembly names a vector register, alone or in a range."""
    ranges = re.findall(r"\bv(?:(\d+)\b|\[(\d+):(\d+)\])", text)
    return number == 0 or any(
        int(one or low) <= number <= int(one or high) for one, low, high in ranges
    )


def run(text: str, target: str, **options: Any) -> Fault | None:
    """Returns the fault of a kernel from assembly, or None. Two workgroups of 256 for 440 elements:
    in both wave sizes a wave has all, some or no active items, so that every path is taken."""
    code = assemble(text, target)
    a = np.linspace(-1, 1, 512, dtype="f4")
    b = np.zeros(512, "f4")
    try:
        launch(code, [a, b, np.int32(440)], 2, 256, strict=True, **options)
    except Fault as fault:
        return fault
    return None
