"""The time of instructions on the emulator, one by one, to find those that stand out.

    python benchmarks/emulator_instructions.py [--targets gfx942,gfx1201,gfx1250] [--rounds 12]
                                               [--only ds_] [--json]

Each is executed in a loop of 16 copies by one wave, all of whose lanes are active: nanoseconds of
an instruction, with its part of the loop, and in parentheses how many times that of `v_add_f32` on
the same target. Instructions have gfx9's names; those that a target lacks have a dash. Accesses are
of a run (the lanes' data follow each other), of rows (runs of 16 lanes, 1 KiB apart) or scattered
(each lane 80 bytes from the one before).

Times are of this thread's processor (CLOCK_THREAD_CPUTIME_ID). Each instruction has all its rounds
before the next; the fastest launch counts, less that of an empty loop.
"""

from __future__ import annotations

import json as json_module
import sys
import time
from pathlib import Path

import typer

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

COPIES, TURNS = 16, 600
NEIGHBOUR = "v_add_f32"
# s[2:3]: the buffer; s[40:43]: a raw resource of it; s44: selects bytes; s48, s49: lanes.
# v1, v3, v6: 4, 16 and 2 times the lane; v20, v21, v7: the same for rows; v5: scattered;
# v8 to v11: results; v12 to v19: operands.
SETUP = """s_load_dwordx2 s[2:3], s[0:1], 0x0
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
v_lshlrev_b32 v3, 4, v0
v_and_b32 v4, 15, v0
v_lshrrev_b32 v5, 4, v0
v_lshlrev_b32 v5, 10, v5
v_lshl_or_b32 v7, v4, 1, v5
v_lshl_or_b32 v20, v4, 2, v5
v_lshl_or_b32 v21, v4, 4, v5
v_mul_u32_u24 v5, 80, v0
v_lshlrev_b32 v6, 1, v0
s_waitcnt lgkmcnt(0)
s_mov_b32 s40, s2
s_mov_b32 s41, s3
s_mov_b32 s42, 0x40000
s_mov_b32 s43, 0x27000
s_mov_b32 s44, 0x05040100
s_mov_b32 s48, 0x76543210
s_mov_b32 s49, 0xfedcba98
s_mov_b32 s50, 3
s_mov_b64 s[52:53], 5
s_mov_b32 s61, {turns}"""
LOOP = """again:
{body}
  s_sub_u32 s61, s61, 1
  s_cmp_lg_u32 s61, 0
  s_cbranch_scc1 again
  s_endpgm"""
SCALAR = """
s_mov_b32 s45, s44
s_add_u32 s45, s44, s48
s_and_b32 s45, s44, s48
s_mul_i32 s45, s44, s48
s_load_dwordx4 s[56:59], s[2:3], 0x10
v_readfirstlane_b32 s45, v12
v_readlane_b32 s45, v12, 3
"""
VECTOR = """
v_mov_b32 v8, v12
v_add_f32 v8, v12, v13
v_fma_f32 v8, v12, v13, v14
v_max_f32 v8, v12, v13
v_exp_f32 v8, v12
v_rcp_f32 v8, v12
v_sin_f32 v8, v12
v_fma_f64 v[8:9], v[12:13], v[14:15], v[16:17]
v_fma_f16 v8, v12, v13, v14
v_pk_fma_f16 v8, v12, v13, v14
v_cvt_f32_i32 v8, v12
v_cvt_i32_f32 v8, v12
v_cvt_u32_f32 v8, v12
v_cvt_f16_f32 v8, v12
v_cvt_pk_u8_f32 v8, v12, v13, v14
v_add_u32 v8, v12, v13
v_mul_lo_u32 v8, v12, v13
v_lshlrev_b64 v[8:9], 2, v[12:13]
v_perm_b32 v8, v12, v13, s44
v_perm_b32 v8, v12, v13, v14
v_cmp_gt_i32 vcc, s50, v12
v_cndmask_b32 v8, v12, v13, vcc
v_add_co_u32 v8, vcc, v12, v13
v_addc_co_u32 v8, vcc, v12, v13, vcc
v_mov_b32_dpp v8, v12 row_shr:1 row_mask:0xf bank_mask:0xf
v_add_f32_dpp v8, v12, v13 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
v_permlane16_b32 v8, v12, s48, s49
v_permlanex16_b32 v8, v12, s48, s49
v_permlane32_swap_b32 v8, v12
ds_bpermute_b32 v8, v1, v12
ds_permute_b32 v8, v1, v12
ds_swizzle_b32 v8, v12 offset:swizzle(SWAP,16)
"""
# The size in mnemonics of loads and stores, of memory and of LDS; the registers of its data, and
# the offsets of a run and of rows.
SIZES = (
    ("dword", "dword", "b32", "b32", "v8", "v1", "v20"),
    ("dwordx4", "dwordx4", "b128", "b128", "v[8:11]", "v3", "v21"),
    ("ushort", "short", "u16", "b16", "v8", "v6", "v7"),
)


def instructions() -> dict[str, str]:
    """Returns the instructions by the names that the table has."""
    found = {}
    for line in (SCALAR.strip() + VECTOR).strip().split("\n"):
        name = line.split()[0]
        found[name if name not in found else f"{name}, a selector for each lane"] = line
    for load, store, read, write, data, run, rows in SIZES:
        for what, at in (("a run", run), ("rows", rows), ("scattered", "v5")):
            lines = (
                f"ds_read_{read} {data}, {at}",
                f"ds_write_{write} {at}, {data}",
                f"global_load_{load} {data}, {at}, s[2:3]",
                f"global_store_{store} {at}, {data}, s[2:3]",
                f"buffer_load_{load} {data}, {at}, s[40:43], 0 offen",
                f"buffer_store_{store} {data}, {at}, s[40:43], 0 offen",
            )
            found |= {f"{line.split()[0]}, {what}": line for line in lines}
    found["ds_add_u32, scattered"] = "ds_add_u32 v5, v8"
    found["global_atomic_add, scattered"] = "global_atomic_add v5, v8, s[2:3]"
    return found


def measured(targets: list[str], rounds: int, only: str) -> dict[str, dict[str, float]]:
    """Returns nanoseconds of each instruction on each target that has it."""
    import numpy as np
    from emulator_support import frame
    from emulator_targets import binding
    from oracle.launching import build
    from oracle.probes.probe import known_to
    from oracle.probes.rdna_probe import spelled

    memory = np.ones(1 << 16, np.float32)

    def seconds(target: str, instruction: str) -> float:
        rdna = target in build.RDNA
        lanes = 32 if rdna else 64
        setup, body = SETUP.format(turns=TURNS), "\n".join([instruction] * COPIES)
        setup += "".join(f"\nv_mov_b32 v{8 + n}, {1 + n % 2}.0" for n in range(12))
        text = setup + "\n" + LOOP.format(body=body)
        whole = frame.kernel(
            target,
            spelled(text, target) if rdna else text,
            vgprs=32,
            sgprs=96,
            lanes=lanes,
            items=lanes,
            lds=8192,
            directives=() if rdna else (".amdhsa_accum_offset 32",),
            metadata=() if rdna else (".agpr_count: 0",),
        )
        device, function, packed = binding(build.assemble(whole, target), "k", [memory], target)
        least = float("inf")
        for _ in range(1 + rounds):
            start = time.thread_time()
            device.launch(function, (1, 1, 1), (lanes, 1, 1), packed)
            least = min(least, time.thread_time() - start)
        return least

    chosen = {name: text for name, text in instructions().items() if name.startswith(only)}
    chosen[NEIGHBOUR] = instructions()[NEIGHBOUR]
    found: dict[str, dict[str, float]] = {name: {} for name in chosen}
    for target in targets:
        empty = seconds(target, "")
        texts = [spelled(t, target) if target in build.RDNA else t for t in chosen.values()]
        for name, known in zip(chosen, known_to(target, texts), strict=True):
            if known:
                whole = seconds(target, chosen[name])
                found[name][target] = (whole - empty) * 1e9 / (COPIES * TURNS)
    return found


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    targets: str = typer.Option("gfx942,gfx1201,gfx1250", help="Targets, separated by commas."),
    rounds: int = typer.Option(12, min=1, help="Launches of each instruction."),
    only: str = typer.Option("", help="Those whose name begins so."),
    json: bool = typer.Option(False, help="Print the figures as JSON."),
) -> None:
    """The time of instructions on the emulator, one by one."""
    names = targets.split(",")
    found = measured(names, rounds, only)
    if json:
        print(json_module.dumps(found))
        return
    print(f"{'ns (times v_add_f32)':36}" + "".join(f"{name:>16}" for name in names))
    for name, times in found.items():
        cells = [
            f"{times[t]:8.2f} ({times[t] / found[NEIGHBOUR][t]:4.1f})" if t in times else "–"
            for t in names
        ]
        print(f"{name:36}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    app()
