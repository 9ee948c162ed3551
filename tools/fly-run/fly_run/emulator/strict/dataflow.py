"""Registers read and written by the steps of an instruction, derived from its lowering.

A step's operands are places in the wave state. The size of each follows from its operation's
signature, or for memory accesses from the data they move. So there is no second list of
instructions that could disagree with the first. Only handlers of other forms (`custom`, `flow`)
have rows of their own here.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Instruction, Register, split_mnemonic
from fly_run.emulator.lowering.registers import Registers
from fly_run.emulator.lowering.steps import Step
from fly_run.emulator.semantics.base.access import (
    BUFFER_INDEX,
    BUFFER_OFFSET,
    Access,
    Atomic,
    ScalarAccess,
)
from fly_run.emulator.semantics.base.operation import SIZES, Operation


@dataclass(frozen=True)
class Place:
    """Part of a wave state: `count` rows (`lanes`) or `count` dwords starting at byte `offset`.
    `element` is the type in the signature, `role` the use of the bytes: "value", "address" or
    "lane" (a lane's number)."""

    offset: int
    count: int
    lanes: bool
    element: str = "i32"
    role: str = "value"

    def words(self) -> range:
        """The byte offsets of its rows or dwords."""
        unit = state.ROW if self.lanes else 4
        return range(self.offset, self.offset + self.count * unit, unit)


@dataclass(frozen=True)
class Effect:
    """One step: its operation, and the places it reads and writes in the order of operands."""

    step: Step
    operation: Operation
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


MATRIX_FORMS = ("matrix", "wmma")
SCC = Place(state.SCC, 1, False)
VCC = Place(state.VCC, 2, False)
VCC_LO = Place(state.VCC, 1, False)
EXEC = Place(state.EXEC, 2, False)
M0 = Place(state.M0, 1, False)
READS_SCC = frozenset(
    """
s_addc_u32 s_subb_u32 s_cmov_b32 s_cmov_b64 s_cmovk_i32 s_cselect_b32 s_cselect_b64
fly_read_scc s_cbranch_scc0 s_cbranch_scc1
""".split()  # noqa: SIM905
)

# Operands of handlers without a signature, results first: S a dword, D two, V a row, W two rows, T
# three, Q four, F four dwords, E eight, R a row of constants, + read and written. Implicit reads
# and writes are in the second text.
_CUSTOM: dict[str, tuple[str, str]] = {
    "v_readlane_b32": ("S", "VS"),
    "v_writelane_b32": ("+V", "SS"),
    "v_readfirstlane_b32": ("S", "V"),
    "ds_bpermute_b32": ("V", "VV"),
    "ds_bpermute_fi_b32": ("V", "VV"),
    "ds_permute_b32": ("V", "VV"),
    "ds_swizzle_b32": ("V", "VR"),
    "v_permlane16_swap_b32": ("+V+V", ""),
    "v_permlane32_swap_b32": ("+V+V", ""),
    # A lane without a source keeps its value.
    "v_permlane64_b32": ("V", "V"),
    **dict.fromkeys(("v_permlane16_b32", "v_permlanex16_b32"), ("+V", "VSS")),
    **dict.fromkeys(("v_permlane16_var_b32", "v_permlanex16_var_b32"), ("+V", "VV")),
    "s_set_gpr_idx_on": ("", "S"),
    "s_set_gpr_idx_idx": ("", "S"),
    "s_set_gpr_idx_mode": ("", ""),
    "s_movrels_b32": ("S", "S"),
    "s_movrels_b64": ("D", "D"),
    "s_movreld_b32": ("S", "S"),
    "s_movreld_b64": ("D", "D"),
    "s_movrelsd_2_b32": ("S", "S"),
    "fly_relative_read": ("V", "V"),
    "fly_relative_write": ("V", "V"),
    "fly_block_begins": ("", ""),
    "fly_block_register": ("", ""),
    "s_subvector_loop_begin": ("S", ""),
    "s_subvector_loop_end": ("+S", ""),
    "fly_lane_address": ("V", ""),
    "ds_append": ("V", ""),
    "ds_consume": ("V", ""),
    "fly_transpose_b16": ("W", "W"),
    "fly_transpose_b8": ("W", "W"),
    "fly_transpose_b4": ("W", "W"),
    "fly_transpose_b6": ("T", "T"),
    "fly_dpp": ("V", "VR"),
    "fly_dpp_64": ("W", "WR"),
    "fly_restore_exec": ("", ""),
    "fly_indexed_move": ("V", "V"),
    "fly_mode_single": ("", ""),
    "fly_mode_double": ("", ""),
    "fly_use_control": ("", ""),
    **dict.fromkeys(("fly_set_mode", "fly_set_mode_bits"), ("", "S")),
    "fly_get_mode": ("S", ""),
    "s_getpc_b64": ("D", ""),
    "s_setpc_b64": ("", "D"),
    "s_swappc_b64": ("D", "D"),
    "s_call_b64": ("D", ""),
    "s_memtime": ("D", ""),
    "s_memrealtime": ("D", ""),
    "fly_matrix_lanes": ("V", "VR"),
    **{f"v_permlane_{kind}_b32": ("V", "VSS") for kind in ("bcast", "up", "down", "xor")},
    "v_permlane_idx_gen_b32": ("V", "VS"),
    "fly_transpose_columns_b16": ("Q", "Q"),
    "fly_transpose_columns_b8": ("W", "W"),
    "fly_transpose_columns_b6": ("T", "T"),
    "fly_transpose_columns_b4": ("W", "W"),
    "fly_tensor_copy": ("", "FEFF"),
    # The following reads do the same: this is only a shortcut.
    "fly_read_pair": ("", ""),
    **dict.fromkeys(
        """
s_barrier_signal s_barrier_wait fly_named_init fly_named_join fly_named_signal fly_named_leave
fly_named_signal_first fly_named_wait fly_signal_first
s_sleep s_sleep_var s_monitor_sleep fly_cluster_signal fly_cluster_signal_first fly_cluster_wait
fly_branch_vcc_lo_zero fly_branch_vcc_lo_nonzero
s_cbranch_scc0 s_cbranch_scc1 s_cbranch_vccz s_cbranch_vccnz s_cbranch_execz
s_cbranch_execnz s_branch s_barrier s_endpgm s_endpgm_saved s_trap fly_end_of_code
""".split(),  # noqa: SIM905
        ("", ""),
    ),
}
_BESIDES: dict[str, tuple[tuple[Place, ...], tuple[Place, ...]]] = {
    "s_cbranch_vccz": ((VCC,), ()),
    "s_cbranch_vccnz": ((VCC,), ()),
    "fly_branch_vcc_lo_zero": ((VCC_LO,), ()),
    "fly_branch_vcc_lo_nonzero": ((VCC_LO,), ()),
    "s_cbranch_execz": ((EXEC,), ()),
    "s_cbranch_execnz": ((EXEC,), ()),
    "s_set_gpr_idx_on": ((), (M0,)),
    **dict.fromkeys(
        ("fly_indexed_move", "fly_relative_read", "fly_relative_write", "s_movrelsd_2_b32"),
        ((M0,), ()),
    ),
    "fly_block_register": ((M0,), ()),
    **dict.fromkeys(("s_subvector_loop_begin", "s_subvector_loop_end"), ((EXEC,), (EXEC,))),
    **dict.fromkeys(("s_set_gpr_idx_idx", "s_set_gpr_idx_mode"), ((M0,), (M0,))),
    **{f"s_movrel{end}_b{width}": ((M0,), ()) for end in "sd" for width in (32, 64)},
    **dict.fromkeys(
        ("fly_signal_first", "fly_named_signal_first", "fly_cluster_signal_first"), ((), (SCC,))
    ),
    **dict.fromkeys(("fly_lane_address", "ds_append", "ds_consume"), ((M0,), ())),
}
_KINDS = {"S": (1, False), "D": (2, False), "V": (1, True), "W": (2, True)}
_KINDS |= {"T": (3, True), "R": (1, True), "Q": (4, True), "F": (4, False), "E": (8, False)}
_ROWS = {"global": 2, "flat": 2}  # of a vector address without a scalar base


class UnknownEffect(Exception):
    """There is no row for a handler."""


def effects_of(
    instruction: Instruction, steps: list[Step], table: dict[str, Operation], registers: Registers
) -> tuple[Effect, ...]:
    """Returns the places that each step reads and writes. A matrix instruction is one step here,
    with the operand sizes that the disassembler prints; that gfx11 preserves a half of D's
    registers with 16-bit elements is not represented. UnknownEffect for a handler without a row."""
    name, _ = split_mnemonic(instruction.mnemonic)
    operation = table.get(name)
    if operation is not None and operation.form in MATRIX_FORMS:
        return (_matrix(instruction, operation, registers),)
    return tuple(_effect(step, table, registers.mask_count) for step in steps)


def _matrix(instruction: Instruction, operation: Operation, registers: Registers) -> Effect:
    places = [
        Place(registers.row(operand, operand.count, instruction), operand.count, True)
        for operand in instruction.operands
        if isinstance(operand, Register) and operand.bank != "s"
    ]
    target, *sources = places
    if operation.detail.sparse:
        sources.append(target)
    return Effect(Step(operation.name), operation, tuple(sources), (target,))


def _effect(step: Step, table: dict[str, Operation], masks: int) -> Effect:
    name, _, kinds = step.handler.rpartition(".")
    operation = table.get(step.handler) or table.get(name)
    if operation is None:
        raise UnknownEffect(step.handler)
    if operation.form == "valu":
        reads, writes = _valu(step, operation, kinds, masks)
    elif operation.form == "scalar":
        reads, writes = _scalar(step, operation)
    elif operation.form == "smem":
        reads, writes = _smem(step, operation)
    elif isinstance(operation.detail, Access | Atomic):
        reads, writes = _memory(step, operation, kinds)
    elif operation.mnemonic in _CUSTOM:
        reads, writes = _custom(step, operation)
    else:
        raise UnknownEffect(step.handler)
    if operation.mnemonic in READS_SCC:
        reads.append(SCC)
    more_reads, more_writes = _BESIDES.get(operation.mnemonic, ((), ()))
    return Effect(step, operation, (*reads, *more_reads), (*writes, *more_writes))


_Both = tuple[list[Place], list[Place]]


def _valu(step: Step, operation: Operation, kinds: str, masks: int) -> _Both:
    def place(offset: int, element: str, kind: str) -> Place:
        count = masks if element == "mask" else SIZES[element]
        return Place(offset, count, kind == "v", element)

    outputs, inputs = operation.outputs, operation.inputs
    count = len(outputs)
    writes = [
        place(offset, element, "m" if element == "mask" else "v")
        for offset, element in zip(step.operands, outputs, strict=False)
    ]
    reads = [
        place(offset, element, kind)
        for offset, element, kind in zip(step.operands[count:], inputs, kinds, strict=True)
    ]
    return ([*reads, writes[0]] if operation.accumulate else reads), writes


def _scalar(step: Step, operation: Operation) -> _Both:
    count = len(operation.outputs)
    elements = (*operation.outputs, *operation.inputs)
    places = [
        Place(offset, SIZES[element], False, element)
        for offset, element in zip(step.operands, elements, strict=True)
    ]
    writes, reads = places[:count], places[count:]
    if operation.accumulate:
        reads.append(writes[0])
    if operation.detail == "scc":
        writes.append(SCC)
    if "saveexec" in operation.name or "wrexec" in operation.name:
        reads.append(EXEC)
        writes.append(EXEC)
    return reads, writes


def _smem(step: Step, operation: Operation) -> _Both:
    data, pointer, offset = step.operands
    access: ScalarAccess = operation.detail
    base = Place(pointer, 4 if access.buffer else 2, False, "i64", "address")
    reads = [base, Place(offset, 1, False, "i32", "address")]
    moved = Place(data, access.dwords, False)
    if access.kind == "load":
        return reads, [moved]
    reads.append(moved)
    if access.atomic is None or not access.atomic.returns:
        return reads, []
    return reads, [Place(data, access.atomic.size // 4, False)]


def _memory(step: Step, operation: Operation, variant: str) -> _Both:
    form, detail = operation.form, operation.detail
    operands = (*step.operands, 0, 0, 0, 0)
    data, address, base = operands[:3]
    reads: list[Place] = []
    if variant == "v":
        reads.append(Place(address, _ROWS.get(form, 1), True, "i32", "address"))
    elif form in ("global", "flat"):
        reads.append(Place(address, 1, True, "i32", "address"))
        reads.append(Place(base, 2, False, "i64", "address"))
    if form == "scratch":
        reads.append(Place(base, 1, False, "i32", "address"))
    elif form == "buffer":
        count = bool(step.extra & BUFFER_INDEX) + bool(step.extra & BUFFER_OFFSET)
        if count:
            reads.append(Place(address, count, True, "i32", "address"))
        reads.append(Place(base, 4, False, "i32", "address"))
        reads.append(Place(operands[3], 1, False, "i32", "address"))
    if isinstance(detail, Access):
        moved = Place(data, detail.dwords, True)
        return (reads, [moved]) if detail.kind == "load" else ([*reads, moved], [])
    count = detail.size // 4
    source = data if form == "buffer" else operands[3]
    reads.append(Place(source, count * detail.values, True))
    return reads, ([Place(data, count, True)] if detail.returns else [])


def _custom(step: Step, operation: Operation) -> _Both:
    outputs, inputs = _CUSTOM[operation.mnemonic]
    reads: list[Place] = []
    writes: list[Place] = []
    places = iter(step.operands)
    both = False
    for letter in outputs:
        if letter == "+":
            both = True
            continue
        count, lanes = _KINDS[letter]
        place = Place(next(places), count, lanes)
        writes.append(place)
        if both:
            reads.append(place)
        both = False
    for letter in inputs:
        count, lanes = _KINDS[letter]
        reads.append(Place(next(places), count, lanes, role="lane" if letter == "R" else "value"))
    return reads, writes
