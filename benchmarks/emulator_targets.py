"""The time of a wave instruction on two targets with waves of 32 lanes, and what makes it differ.

    python benchmarks/emulator_targets.py [--targets gfx1201,gfx1250] [--rounds 300]
                                          [--kernels matmul] [--share 1.0] [--json]

Three tables:

1. Kernels of tests/kernels, compiled by clang -O3 for each target. Compilers choose instructions
   for their target, and some have no effect in the emulator (waits, `s_delay_alu`, `s_clause`,
   cache controls): they are part of the code, are counted, and take no time. So the table has the
   time of a launch, of an instruction, and of an instruction with an effect.
2. What is executed: instructions by mnemonic whose numbers differ by `--share` percent of a
   kernel's instructions or more, those without effect first.
3. If both are gfx12: the same instructions on both, in a loop of 32 copies, so most wait for the
   one before: they must take the same time. It includes a part of the loop and of the launch, which
   is what `s_wait_dscnt` takes. Copies of `v_fmac_f32` and of `ds_load_2addr_b32` are a run, which
   one handler executes.

Times are of this thread's processor (CLOCK_THREAD_CPUTIME_ID), so that other work on the machine
counts as little as possible. The targets alternate, launch by launch, and the fastest counts.
"""

from __future__ import annotations

import json as json_module
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

COPIES, TURNS, WAVES = 32, 512, 4
# Instructions that both targets have. v1: 4 · lane; v2: rows of 16 lanes, 128 bytes apart;
# v3: a stride of 36 bytes; v[8:9]: the address of 4 · lane; s[2:3]: the buffer.
SAME = {
    "v_add_f32": "v_add_f32 v4, v5, v6",
    "v_fmac_f32": "v_fmac_f32 v4, v5, v6",
    "v_pk_fma_f16": "v_pk_fma_f16 v4, v5, v6, v7",
    "v_exp_f32": "v_exp_f32 v4, v5",
    "v_add_nc_u32": "v_add_nc_u32 v4, s4, v5",
    "v_mul_lo_u32": "v_mul_lo_u32 v4, v5, v6",
    "v_lshlrev_b64": "v_lshlrev_b64_e32 v[4:5], 2, v[6:7]",
    "v_cmp_gt_i32": "v_cmp_gt_i32 vcc_lo, s4, v5",
    "v_cndmask_b32": "v_cndmask_b32 v4, v5, v6, vcc_lo",
    "v_fma_f64": "v_fma_f64 v[4:5], v[6:7], v[6:7], v[10:11]",
    "s_add_co_i32": "s_add_co_i32 s5, s5, 3",
    "s_load_b128": "s_load_b128 s[8:11], s[2:3], 0x10",
    "ds_load_b32, a run": "ds_load_b32 v4, v1",
    "ds_load_b32, two runs": "ds_load_b32 v4, v2",
    "ds_load_b32, scattered": "ds_load_b32 v4, v3",
    "ds_load_2addr_b32, a run": "ds_load_2addr_b32 v[4:5], v1 offset1:32",
    "ds_load_b128, a run": "ds_load_b128 v[4:7], v12",
    "ds_store_b32, a run": "ds_store_b32 v1, v5",
    "global_load_b32, a run": "global_load_b32 v4, v[8:9], off",
    "global_load_b32, scalar base": "global_load_b32 v4, v1, s[2:3]",
    "global_load_b32, two runs": "global_load_b32 v4, v2, s[2:3]",
    "global_load_b128, a run": "global_load_b128 v[4:7], v12, s[2:3]",
    "global_store_b32, a run": "global_store_b32 v1, v5, s[2:3]",
    "a barrier": "s_barrier_signal -1\n  s_barrier_wait -1",
    "s_wait_dscnt": "s_wait_dscnt 0x0",
    "s_delay_alu": "s_delay_alu instid0(VALU_DEP_1)",
}
LOOP = """  s_load_b64 s[2:3], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_and_b32 v0, 31, v0
  v_lshlrev_b32 v1, 2, v0
  v_lshlrev_b32 v12, 4, v0
  v_and_b32 v2, 15, v0
  v_lshlrev_b32 v2, 2, v2
  v_and_b32 v3, 16, v0
  v_lshlrev_b32 v3, 3, v3
  v_add_nc_u32 v2, v2, v3
  v_mul_u32_u24 v3, 36, v0
  s_wait_kmcnt 0x0
  v_mov_b32 v8, s2
  v_mov_b32 v9, s3
  v_add_co_u32 v8, vcc_lo, v8, v1
  v_add_co_ci_u32 v9, vcc_lo, 0, v9, vcc_lo
  v_mov_b32 v4, 0
  v_mov_b32 v5, 1.0
  v_mov_b32 v6, 0.5
  v_mov_b32 v7, 2.0
  v_mov_b32 v10, 0
  v_mov_b32 v11, 1.0
  s_mov_b32 s4, 3
  s_mov_b32 s5, 0
  s_mov_b32 s6, {turns}
again:
{body}
  s_add_co_i32 s6, s6, -1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 again
  s_endpgm"""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Compiled:
    """A kernel on one target: instructions executed, those without effect, and the fastest launch
    in milliseconds."""

    kernel: str
    target: str
    instructions: int
    idle: int
    ms: float
    mnemonics: dict[str, int]
    idle_mnemonics: list[str]

    @property
    def ns(self) -> float:
        return self.ms * 1e6 / self.instructions

    @property
    def ns_of_effective(self) -> float:
        return self.ms * 1e6 / (self.instructions - self.idle)


@dataclass(frozen=True)
class Same:
    """Nanoseconds of one instruction on each target, with its part of the loop around it."""

    name: str
    ns: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.ns[1] / self.ns[0]


def fastest(launches: Sequence[Callable[[], None]], rounds: int) -> list[float]:
    """The shortest processor time of each launch in seconds; they alternate."""
    least = [float("inf")] * len(launches)
    for _ in range(rounds):
        for number, launch in enumerate(launches):
            start = time.thread_time()
            launch()
            least[number] = min(least[number], time.thread_time() - start)
    return least


def binding(data: bytes, kernel: str, arguments: list[Any], target: str, **options: Any) -> Any:
    """Returns the device, the loaded function and its packed arguments."""
    from fly_image.amd.code_object import CodeObject
    from fly_run.devices.options import Options
    from fly_run.emulator.machine import Emulator
    from oracle.launching.launch import pack

    device = Emulator(target, Options(threads=1, **options))
    function = device.load(CodeObject.parse(data)).function(kernel)

    def bind(name: str, array: Any) -> int:
        return device.adopt(array.ctypes.data, array.nbytes, label=name)

    return device, function, pack(data, kernel, arguments, bind)


def compiled(work: Any, targets: Pair, rounds: int) -> list[Compiled]:
    import numpy as np
    from executed import Counter, without_effect
    from oracle.launching import build

    launches, counted, kept = [], [], []
    for target in targets:
        data = build.opencl(work.source, target, 3)
        own = [x.copy() if isinstance(x, np.ndarray) else x for x in work.arguments]
        counter = Counter()
        for options in ({"observers": (counter,)}, {}):
            device, function, packed = binding(data, work.kernel, own, target, **options)

            def launch(device=device, function=function, packed=packed) -> None:
                device.launch(function, work.grid, work.block, packed)

            launch()
            kept.append((device, own))
        launches.append(launch)
        counted.append((counter.found, without_effect(counter.counts, function)))
    times = fastest(launches, rounds)
    return [
        Compiled(
            work.name,
            target,
            sum(executed.values()),
            sum(idle.values()),
            seconds * 1e3,
            executed,
            sorted(idle),
        )
        for target, (executed, idle), seconds in zip(targets, counted, times, strict=True)
    ]


def same(targets: Pair, rounds: int) -> list[Same]:
    import numpy as np
    from emulator_support import frame
    from oracle.launching import build

    found = []
    for name, instruction in SAME.items():
        launches = []
        memory = np.ones(4096, np.float32)
        for target in targets:
            body = f"  {instruction}\n" * COPIES
            text = frame.kernel(target, LOOP.format(turns=TURNS, body=body), lds=2048)
            data = build.assemble(text, target)
            device, function, packed = binding(data, "k", [memory], target)

            def launch(device=device, function=function, packed=packed) -> None:
                device.launch(function, (1, 1, 1), (32 * WAVES, 1, 1), packed)

            launch()
            launches.append(launch)
        lines = COPIES * TURNS * WAVES * len(instruction.splitlines())
        least = [seconds * 1e9 / lines for seconds in fastest(launches, rounds)]
        found.append(Same(name, (least[0], least[1])))
    return found


def mix(pair: Sequence[Compiled], share: float) -> list[tuple[str, int, int, bool]]:
    """Rows of mnemonics, their numbers on both targets, and whether they have an effect."""
    first, second = pair
    smallest = min(first.instructions, second.instructions) * share / 100
    idle = {*first.idle_mnemonics, *second.idle_mnemonics}
    rows = [
        (name, first.mnemonics.get(name, 0), second.mnemonics.get(name, 0), name not in idle)
        for name in sorted(first.mnemonics.keys() | second.mnemonics.keys())
    ]
    rows = [row for row in rows if abs(row[1] - row[2]) >= smallest]
    return sorted(rows, key=lambda row: (row[3], -abs(row[1] - row[2])))


def report(pairs: Sequence[Sequence[Compiled]], alike: Sequence[Same], share: float) -> None:
    targets = [one.target for one in pairs[0]] if pairs else ["", ""]
    print("kernel          target   instructions  no effect       ms      ns  ns with effect")
    for pair in pairs:
        for one in pair:
            print(
                f"{one.kernel:15} {one.target:8} {one.instructions:12,} {one.idle:10,}"
                f" {one.ms:8.3f} {one.ns:7.2f} {one.ns_of_effective:15.2f}"
            )
        first, second = pair
        print(
            f"{'':15} {'ratio':8} {second.instructions / first.instructions:12.2f}"
            f" {second.idle / first.idle:10.2f} {second.ms / first.ms:8.2f}"
            f" {second.ns / first.ns:7.2f} {second.ns_of_effective / first.ns_of_effective:15.2f}"
        )
    for pair in pairs:
        print(f"\n{pair[0].kernel}: executed{targets[0]:>22} {targets[1]:>10}")
        for name, one, other, effective in mix(pair, share):
            print(f"  {name:32} {one:10,} {other:10,}  {'' if effective else 'no effect'}")
    if not alike:
        return
    print(f"\n{'the same instructions, ns':32} {targets[0]:>8} {targets[1]:>8}    ratio")
    for one in alike:
        print(f"{one.name:32} {one.ns[0]:8.2f} {one.ns[1]:8.2f} {one.ratio:8.2f}")


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    targets: str = typer.Option("gfx1201,gfx1250", help="Two targets, separated by a comma."),
    rounds: int = typer.Option(300, min=1, help="Launches of each kernel on each target."),
    kernels: str = typer.Option("", help="Measure these only, separated by commas."),
    share: float = typer.Option(1.0, help="Percent from which a mnemonic's difference is shown."),
    json: bool = typer.Option(False, help="Print the figures as JSON."),
) -> None:
    """The time of a wave instruction on two targets, and what makes it differ."""
    import emulator

    first, comma, second = targets.partition(",")
    if not comma or "," in second:
        sys.exit(f"error: --targets {targets}: give two, separated by a comma")
    both = first, second
    works = [work for work in emulator.chosen(kernels, second) if work.source != "matrix.cl"]
    pairs = [compiled(work, both, rounds) for work in works]
    alike = same(both, max(1, rounds // 3)) if all(t.startswith("gfx12") for t in both) else []
    if json:
        found = [[asdict(one) for one in pair] for pair in pairs]
        print(json_module.dumps({"kernels": found, "same": [asdict(one) for one in alike]}))
    else:
        report(pairs, alike, share)


if __name__ == "__main__":
    app()
