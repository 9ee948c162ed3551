"""Lane permutations described by an instruction's modifiers or offset: DPP and ds_swizzle.

A permutation is a list of 64 numbers: the lane from which each lane reads, -1 for none.
Sources: CDNA3 ISA manual, "Data Parallel Processing" and "DS_SWIZZLE_B32"; RDNA3 ISA manual,
"DPP16" and "DPP8".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import WIDE, Lowering, Source
from fly_run.emulator.state import LANES

ROW = 16  # lanes of a DPP row; a bank is a quarter of it


def _in_row(lane: int, place: int) -> int:
    """Returns the lane at `place` in this lane's row, or -1."""
    return lane - lane % ROW + place if 0 <= place < ROW else -1


def _in_wave(lane: int) -> int:
    return lane if 0 <= lane < LANES else -1


# name → the lane from which lane `lane` reads, given the modifier's number
SHIFTS: dict[str, Callable[[int, int], int]] = {
    "row_shl": lambda lane, n: _in_row(lane, lane % ROW + n),
    "row_shr": lambda lane, n: _in_row(lane, lane % ROW - n),
    "row_ror": lambda lane, n: _in_row(lane, (lane % ROW - n) % ROW),
    "wave_shl": lambda lane, n: _in_wave(lane + 1),
    "wave_rol": lambda lane, n: (lane + 1) % LANES,
    "wave_shr": lambda lane, n: _in_wave(lane - 1),
    "wave_ror": lambda lane, n: (lane - 1) % LANES,
    "row_mirror": lambda lane, n: _in_row(lane, ROW - 1 - lane % ROW),
    "row_half_mirror": lambda lane, n: lane - lane % 8 + 7 - lane % 8,
    # The last lane of the preceding 16 (32) lanes.
    "row_bcast": lambda lane, n: lane - lane % (n + 1) - 1,
    "row_newbcast": lambda lane, n: _in_row(lane, n),
    # gfx10 and later
    "row_share": lambda lane, n: _in_row(lane, n),
    "row_xmask": lambda lane, n: lane ^ n,
}
MODIFIERS = (
    "quad_perm",
    "dpp8",
    *SHIFTS,
    "row_mask",
    "bank_mask",
    "bound_ctrl",
    "fi",
    "clamp",
    "mul",
    "div",
)
INACTIVE, BOUND = 2, 1  # bits of the extra word of fly_dpp


def is_dpp(modifiers: Mapping[str, object]) -> bool:
    """Whether an instruction has a DPP control: mnemonics of comparisons do not tell."""
    return any(name in modifiers for name in ("quad_perm", "dpp8", *SHIFTS))


def permutation(modifiers: Mapping[str, object]) -> list[int]:
    quad = modifiers.get("quad_perm")
    if isinstance(quad, tuple):
        return [lane - lane % 4 + int(quad[lane % 4]) for lane in range(LANES)]
    eight = modifiers.get("dpp8")
    if isinstance(eight, tuple):
        return [lane - lane % 8 + int(eight[lane % 8]) for lane in range(LANES)]
    for name, shift in SHIFTS.items():
        number = modifiers.get(name)
        if number is not None:
            return [shift(lane, int(number)) for lane in range(LANES)]  # type: ignore[call-overload]
    raise Unsupported("this DPP control")


def written_lanes(modifiers: Mapping[str, object]) -> int:
    """Returns the lanes that row_mask and bank_mask enable."""
    rows, banks = (int(modifiers.get(n, 15)) for n in ("row_mask", "bank_mask"))  # type: ignore[call-overload]
    return sum(
        1 << lane
        for lane in range(LANES)
        if rows >> (lane // ROW) & 1 and banks >> (lane % ROW // 4) & 1
    )


def move(lowering: Lowering, source: Source, element: str) -> Source:
    """Moves the permuted source into a temporary, and narrows EXEC until `fly_restore_exec`."""
    if source.kind != "v":
        raise Unsupported("DPP of an operand that is not a vector register")
    modifiers = dict(lowering.instruction.modifiers)
    table = lowering.registers.constants.row(permutation(modifiers))
    wide = element in WIDE
    target = lowering.temporary(2 if wide else 1)
    # DPP8 has no bound_ctrl: it reads 0 from an inactive lane.
    bound = BOUND if modifiers.get("bound_ctrl") or "dpp8" in modifiers else 0
    inactive = INACTIVE if modifiers.get("fi") else 0
    lowering.add(
        "fly_dpp_64" if wide else "fly_dpp",
        target,
        source.offset,
        table,
        immediate=written_lanes(modifiers),
        extra=bound | inactive,
    )
    return Source("v", target)


def _reversed(lane: int) -> int:
    """Reverses the low five bits of a lane's number."""
    return int(f"{lane & 31:05b}"[::-1], 2)


def swizzle(pattern: int) -> list[int]:
    """Decodes ds_swizzle's offset: FFT order or rotation in 32 lanes (bits 15 to 13), quad
    permutation (bit 15), or a bit mask (and, or, xor) within 32 lanes."""
    if pattern & 0xE000 == 0xE000:
        keep = pattern & 31
        return [
            lane & 32 | _reversed(lane) >> keep.bit_count() | lane & keep for lane in range(LANES)
        ]
    if pattern & 0xE000 == 0xC000:
        turn = pattern >> 5 & 31
        turn = -turn if pattern & 0x400 else turn
        keep = pattern & 31
        return [lane & 32 | (lane & keep) | ((lane + turn) & ~keep & 31) for lane in range(LANES)]
    if pattern & 0x8000:
        return [lane & ~3 | pattern >> 2 * (lane & 3) & 3 for lane in range(LANES)]
    keep, insert, flip = pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31
    return [lane & 32 | ((lane & keep | insert) ^ flip) for lane in range(LANES)]
