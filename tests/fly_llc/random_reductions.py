"""Random kernels of one wave that move values between lanes and compute with them: what pairs of
operations must not change.

Each lane loads `VALUES` floats, and stores as many. In between are blocks of random steps. Most
steps do the same to several values, as reductions and scans of several values do: an operation of a
value and of the same value from another lane. Others are what must not be paired, or not without
care: products that LLVM fuses with sums, negated values, clamps, and accesses to memory in between.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
from fly_host import program, text
from fly_link import link

LANES, VALUES = 64, 6
FLAGS = ("", "", "fast ", "contract ", "reassoc ", "nnan ninf ")
SPECIAL = (0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-40, -3e-39, 3e38)


def module(seed: int, count: int, cpu: str = "gfx942") -> str:
    """A module of `count` kernels, with a host program that launches them one by one."""
    chosen = random.Random(seed)
    kernels = "".join(_Kernel(chosen, number).text() for number in range(count))
    escaped = "".join(
        f"\\{ord(one):02X}" if one in '"\\' else one
        for one in _described(count, cpu).replace('"', '\\"')
    )
    return f"""target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\\22\\22,@progbits"
module asm ".ascii \\22{escaped}\\22"
module asm ".popsection"
{kernels}
declare i32 @llvm.amdgcn.workitem.id.x() #1
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32 immarg) #2
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32) #2
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32 immarg, i32 immarg, i32 immarg, i1 immarg) #2
declare float @llvm.fabs.f32(float) #1
declare float @llvm.maxnum.f32(float, float) #1
attributes #0 = {{ "target-cpu"="{cpu}" "amdgpu-flat-work-group-size"="64,64" }}
attributes #1 = {{ nocallback nofree nosync nounwind speculatable willreturn memory(none) }}
attributes #2 = {{ convergent nocallback nofree nounwind willreturn memory(none) }}
"""


def _described(count: int, cpu: str) -> str:
    words = ((program.Word("pointer", "given"),), (program.Word("pointer", "out"),))
    return text.write(
        program.Program(
            entry="all",
            target=cpu,
            parameters=(
                program.Tensor("given", "f32", (VALUES * LANES,), (1,), "r", contiguous=True),
                program.Tensor(
                    "out", "f32", (count * VALUES * LANES,), (1,), "rw", contiguous=True
                ),
            ),
            expressions=(("const", 1), ("const", LANES)),
            steps=tuple(
                program.Launch(f"k{number}", (0, 0, 0), (1, 0, 0), 0, words)
                for number in range(count)
            ),
        )
    )


def inputs(seed: int) -> np.ndarray:
    chosen = np.random.default_rng(seed)
    values = chosen.standard_normal(VALUES * LANES).astype(np.float32)
    special = chosen.random(values.size) < 0.02
    values[special] = chosen.choice(np.array(SPECIAL, np.float32), special.sum())
    return values


def results(obj: bytes, count: int, given: np.ndarray, folder: Path) -> np.ndarray:
    """What the kernels of an object store, as words; a NaN is a NaN, whatever its bits."""
    np.save(folder / "given.npy", given)
    np.save(folder / "out.npy", np.zeros(count * VALUES * LANES, np.float32))
    tool = Path(sys.executable).with_name("fly-run")
    words = [f"given={folder}/given.npy", f"out={folder}/out.npy:{folder}/stored.npy"]
    subprocess.run([tool, *words], input=link([obj]), check=True, capture_output=True, timeout=300)
    stored = np.load(folder / "stored.npy")
    return np.where(np.isnan(stored), np.float32(np.nan), stored).view(np.uint32)


class _Kernel:
    """Values are numbered as LLVM prints them. The blocks after the first are entered by some
    lanes, and merge what they change."""

    def __init__(self, chosen: random.Random, number: int):
        self.chosen, self.number = chosen, number
        self.lines: list[str] = []
        self.count = 3  # two arguments, and the first block
        self.block = "%2"
        self.flags = chosen.sample(FLAGS, 2)

    def new(self, text: str) -> str:
        self.lines.append(f"  %{self.count} = {text}")
        self.count += 1
        return f"%{self.count - 1}"

    def text(self) -> str:
        lane = self.new("tail call i32 @llvm.amdgcn.workitem.id.x()")
        values = []
        for at in range(VALUES):
            index = self.new(f"add i32 {lane}, {at * LANES}")
            address = self.new(f"getelementptr float, ptr addrspace(1) %0, i32 {index}")
            values.append(self.new(f"load float, ptr addrspace(1) {address}, align 4"))
        self.steps(values, lane)
        if self.chosen.random() < 0.5:
            before, at = list(values), self.block
            condition = self.new(f"icmp ult i32 {lane}, {self.chosen.choice((32, 40))}")
            inside, behind = "%inside", "%behind"
            self.lines.append(f"  br i1 {condition}, label {inside}, label {behind}\n\ninside:")
            self.steps(values, lane)
            self.lines.append(f"  br label {behind}\n\nbehind:")
            values = [
                self.new(f"phi float [ {one}, {at} ], [ {other}, {inside} ]")
                for one, other in zip(before, values, strict=True)
            ]
            self.steps(values, lane)
        for at, value in enumerate(values):
            self.store(value, lane, at)
        head = (
            f"define amdgpu_kernel void @k{self.number}(ptr addrspace(1) %0, ptr addrspace(1) %1)"
        )
        return "\n".join([f"{head} #0 {{", *self.lines, "  ret void", "}", "", ""])

    def store(self, value: str, lane: str, at: int) -> None:
        index = self.new(f"add i32 {lane}, {(self.number * VALUES + at) * LANES}")
        address = self.new(f"getelementptr float, ptr addrspace(1) %1, i32 {index}")
        self.lines.append(f"  store float {value}, ptr addrspace(1) {address}, align 4")

    def steps(self, values: list[str], lane: str) -> None:
        for _ in range(self.chosen.randint(2, 6)):
            members = self.chosen.sample(range(VALUES), self.chosen.choice((1, 2, 2, 2, 3, 4)))
            if self.chosen.random() < 0.3:
                self.other(values, members[0], lane)
            else:
                self.permuted(values, members, lane)

    def permuted(self, values: list[str], members: list[int], lane: str) -> None:
        """The same for each of the members, one after another, for several permutations."""
        operation, flags = (
            self.chosen.choice(("fadd", "fadd", "fmul", "fsub")),
            self.chosen.choice(self.flags),
        )
        moves = [self.move(lane) for _ in range(self.chosen.randint(1, 5))]
        swapped, select = self.chosen.random() < 0.3, self.chosen.random() < 0.2
        for member in members:
            for move in moves:
                value = values[member]
                word = self.new(f"bitcast float {value} to i32")
                other = self.new(f"bitcast i32 {self.new(move.format(word))} to float")
                if operation != "fsub":
                    swapped = self.chosen.random() < 0.3
                pair = f"{other}, {value}" if swapped else f"{value}, {other}"
                made = self.new(f"{operation} {flags}float {pair}")
                if select:
                    condition = self.new(f"icmp ugt i32 {lane}, 7")
                    made = self.new(f"select i1 {condition}, float {made}, float {value}")
                values[member] = made

    def move(self, lane: str) -> str:
        kind = self.chosen.random()
        if kind < 0.6:
            pattern = self.chosen.choice((16415, 8223, 4127, 2079, 1055))
            return f"tail call i32 @llvm.amdgcn.ds.swizzle(i32 {{}}, i32 {pattern})"
        if kind < 0.85:
            index = self.new(f"xor i32 {lane}, {self.chosen.choice((32, 63))}")
            index = self.new(f"shl i32 {index}, 2")
            return f"tail call i32 @llvm.amdgcn.ds.bpermute(i32 {index}, i32 {{}})"
        rows = "i32 177, i32 15, i32 15, i1 true"
        return f"tail call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 {{}}, {rows})"

    def other(self, values: list[str], member: int, lane: str) -> None:
        """Something that is not of the kind that is paired."""
        value, second = values[member], self.chosen.choice(values)
        kind, flags = (
            self.chosen.choice((0, 0, 0, 1, 2, 3, 4, 5, 6)),
            self.chosen.choice(self.flags),
        )
        if kind == 0:
            made = self.new(f"fmul {flags}float {value}, {second}")
        elif kind == 1:
            made = self.new(f"fadd {flags}float {value}, {second}")
        elif kind == 2:
            made = self.new(f"fneg float {value}")
        elif kind == 3:
            made = self.new(f"tail call float @llvm.fabs.f32(float {value})")
        elif kind == 4:
            made = self.new(f"tail call float @llvm.maxnum.f32(float {value}, float 0.000000e+00)")
        elif kind == 5:
            made = self.new(f"select i1 {self.new(f'fcmp olt float {value}, {second}')}, "
                            f"float {value}, float {second}")  # fmt: skip
        else:
            self.store(value, lane, member)
            index = self.new(f"add i32 {lane}, {self.number * VALUES * LANES}")
            address = self.new(f"getelementptr float, ptr addrspace(1) %1, i32 {index}")
            made = self.new(f"load float, ptr addrspace(1) {address}, align 4")
        values[member] = made
