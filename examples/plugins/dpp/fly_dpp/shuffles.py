"""The machine pass: ds_swizzle_b32 and ds_bpermute_b32 become v_mov_b32_dpp.

    %4:vgpr_32 = DS_SWIZZLE_B32 %3, 1055, 0, implicit $exec
    →
    %4:vgpr_32 = V_MOV_B32_dpp undef %9:vgpr_32, %3, 177, 15, 15, 1, implicit $exec

Both take a value of another lane of the wave. The first two go through the LDS unit: some 64 cycles
and a wait. DPP is a modifier of an operand of a vector instruction. Where each lane reads from a
lane of its row of 16 by a pattern that DPP has, a DPP move does the same. It runs behind
instruction selection, in SSA form, so that LLVM's later passes do the rest: GCNDPPCombine folds the
move into its users, and waits and hazards (two wait states before DPP on gfx9) are inserted for
what is there then.

Inactive lanes: ds_swizzle and ds_bpermute return 0 for a lane that reads from an inactive one. So
does DPP with bound_ctrl:1 and without fetch-inactive. Lanes that are inactive themselves keep their
registers in both cases. Row and bank masks are 15, so that no lane keeps its old value; `old` is
undefined.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from fly_common.errors import InputError
from fly_llc import mir
from fly_llc.mir import Function, Instruction, Operand
from fly_target import registry

from fly_dpp.controls import find
from fly_dpp.lane_values import LaneValues
from fly_dpp.options import Options

SWIZZLE, PERMUTE = "DS_SWIZZLE_B32", "DS_BPERMUTE_B32"
GROUP = 32  # the lanes that ds_swizzle permutes
_VECTOR, _EITHER = _CLASSES = ("vgpr_32", "av_32")
_VIRTUAL = re.compile(r"%(\d+)")
_CPU = re.compile(r'"target-cpu"="([\w-]+)"')


def content(options: Options) -> Callable[[bytes], bytes]:
    """What is at the slot."""
    return lambda data: transformed(data.decode(), options.report).encode()


def main(text: str, words: Sequence[str]) -> str:
    """The filter `dpp`, for `fly-llc --insert post-isel=dpp`. It always reports."""
    if words:
        raise InputError(f"dpp has no option {words[0]}")
    return transformed(text, True)


def transformed(text: str, report: bool) -> str:
    """Returns the MIR with DPP moves."""
    if SWIZZLE not in text and PERMUTE not in text:
        return text
    module = mir.parse(text)
    chip = _CPU.search(module.ir)
    row = registry.get(chip[1]) if chip else None
    if row is None or row.amd is None:
        return text
    for function in module.functions:
        if not function.is_ssa:
            raise InputError(
                f"{function.name} is not in SSA form",
                hint="insert dpp behind instruction selection: --insert post-isel=dpp",
            )
        lanes = _wave_size(module.ir, function.name) or row.wave_size
        values = LaneValues(function, lanes, _item_is_lane(module.ir, function, lanes))
        done = _replace(function, values, row.cpu, row.amd.generation)
        if report and done:
            replaced = sum(count for name, count in done.items() if name != "kept")
            told = ", ".join(f"{count} {name}" for name, count in done.items() if name != "kept")
            print(
                f"dpp: {function.name}: {replaced} of {sum(done.values())} lane shuffles became DPP"
                f" moves{f' ({told})' if told else ''}",
                file=sys.stderr,
            )
    return str(module)


def _replace(function: Function, values: LaneValues, chip: str, generation: int) -> dict[str, int]:
    """Replaces the shuffles of a function. Returns how many, by opcode, and those that were
    kept."""
    done: dict[str, int] = {}
    numbers = [int(number) for number in _VIRTUAL.findall(str(function))]
    fresh = max(numbers, default=0) + 1
    classes = function.classes
    for block in function.blocks:
        for one in block.instructions:
            if one.opcode not in (SWIZZLE, PERMUTE):
                continue
            control = _control(one, values, chip, generation)
            source = one.operands[0 if one.opcode == SWIZZLE else 1]
            registers = (one.results[0].register or "", source.register or "")
            if control is None or any(classes.get(name) not in _CLASSES for name in registers):
                done["kept"] = done.get("kept", 0) + 1
                continue
            for name in registers:
                _constrain(function, name)
            name = one.opcode.lower()
            done[name] = done.get(name, 0) + 1
            old = f"undef %{fresh}:vgpr_32"
            fresh += 1
            one.replace(
                "V_MOV_B32_dpp",
                operands=[old, source, control, 15, 15, 1, "implicit $exec"],
            )
    return done


def _constrain(function: Function, register: str) -> None:
    """Makes a virtual register of either vector file a VGPR: DPP has no accumulation registers.
    Other instructions that take either file take it as well."""
    number = register.removeprefix("%")
    wide = f"- {{ id: {number}, class: {_EITHER},"
    if wide not in function.header:
        return
    function.header = function.header.replace(wide, wide.replace(_EITHER, _VECTOR))
    for block in function.blocks:
        for one in block.instructions:
            if f"{register}:{_EITHER}" in one.text:
                results = [
                    Operand.parse(
                        str(result).replace(f"{register}:{_EITHER}", f"{register}:{_VECTOR}")
                    )
                    for result in one.results
                ]
                one.replace(results=results)


def _control(one: Instruction, values: LaneValues, chip: str, generation: int) -> int | None:
    """Returns the DPP control that does the same as a shuffle, or None."""
    number = one.operands[1 if one.opcode == SWIZZLE else 2].integer
    if number is None:
        return None
    if one.opcode == SWIZZLE:
        sources = swizzled(number, values.lanes)
    else:
        sources = _addressed(values.of(one.operands[0]), number, values.lanes)
    return None if sources is None else find(sources, chip, generation)


def swizzled(offset: int, lanes: int) -> list[int] | None:
    """Returns the lane from which each lane reads by ds_swizzle's offset; None for rotations and
    the order of FFTs, which DPP has not."""
    offset &= 0xFFFF
    if offset & 0xFF00 == 0x8000:
        return [lane & ~3 | offset >> 2 * (lane & 3) & 3 for lane in range(lanes)]
    if offset & 0x8000:
        return None
    keep, insert, flip = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return [lane & ~(GROUP - 1) | (lane & keep | insert) ^ flip for lane in range(lanes)]


def _addressed(addresses: Sequence[tuple[int, int]], offset: int, lanes: int) -> list[int] | None:
    """Returns the lane from which each lane reads by ds_bpermute: bits 2 and up of the address,
    modulo the wave. None if they are not certain."""
    wanted = (lanes - 1) << 2
    if offset or any(known & wanted != wanted for _, known in addresses):
        return None
    return [(bits & wanted) >> 2 for bits, _ in addresses]


def _item_is_lane(ir: str, function: Function, lanes: int) -> bool:
    """Whether the low bits of $vgpr0 are the number of the lane: in a kernel, it has the work
    item's x number, and the extent along x is a multiple of the wave. A call would return a value
    there, and a function that is no kernel takes an argument."""
    extent = _extent_x(ir, function.name)
    is_kernel = " amdgpu_kernel " in _definition(ir, function.name)
    calls = any("CALL" in one.opcode for block in function.blocks for one in block.instructions)
    return is_kernel and not calls and extent > 0 and extent % lanes == 0


def _definition(ir: str, name: str) -> str:
    found = re.search(rf'^ *define [^\n]*@"?{re.escape(name)}"?\([^\n]*', ir, re.MULTILINE)
    return found[0] if found else ""


def _wave_size(ir: str, name: str) -> int:
    """Returns the wave size that a function's features name, or 0."""
    number = re.search(r" #(\d+)", _definition(ir, name))
    group = number and re.search(rf"^ *attributes #{number[1]} = [^\n]*", ir, re.MULTILINE)
    size = group and re.search(r"\+wavefrontsize(\d+)", group[0])
    return int(size[1]) if size else 0


def _extent_x(ir: str, name: str) -> int:
    """Returns the required extent of a kernel's workgroups along x, or 0."""
    number = re.search(r"!reqd_work_group_size !(\d+)", _definition(ir, name))
    sizes = number and re.search(rf"^ *!{number[1]} = !\{{i32 (\d+),", ir, re.MULTILINE)
    return int(sizes[1]) if sizes else 0
