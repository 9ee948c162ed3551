"""Instructions that read other lanes and that LLVM's MachineSink moves behind divergent branches.

These instructions are not marked as convergent, as their intrinsics are: WMMA of gfx11, scaled MFMA
of gfx950, and the V_PERMLANE of gfx11 and later that LLVM 21 and 22 forgot. If the result is used
only where some lanes go, the pass moves the instruction there, and what computes its operands with
it. Lanes that do not go there then have no operands, or those of before: reloads of registers that
were spilled write active lanes only, and V_PERMLANE reads zeros from the others.
"""

from __future__ import annotations

import re

from fly_llc.backends.amd.code import sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fly_llc.mir.block import Block
    from fly_llc.mir.function import Function

# All opcodes of LLVM 22 for convergent intrinsics without memory that are not convergent, but those
# of compares, which the pass knows to depend on EXEC.
_OPCODE = (
    r"V_WMMA_\w+_(?:two|three)addr_w(?:32|64)|V_MFMA_SCALE_\w+"
    r"|V_PERMLANE(?:64|X?16_VAR|_(?:BCAST|DOWN|UP|XOR))_B32(?:_e32|_e64)?"
)
_IN_MIR = re.compile(rb" = (?:[a-z]+ )*(?:%b) " % _OPCODE.encode())
_RESULT = re.compile(rf"^(?:early-clobber )?(%\d+):\S+ = (?:[a-z]+ )*(?:{_OPCODE}) ")
_DIVERGENT = re.compile(r"(?:^|= )SI_(?:IF|ELSE|LOOP|WATERFALL_LOOP|NON_UNIFORM\w*) ")
_IN_TEXT = re.compile(
    rb"\tv_(?:wmma_\w+ |mfma_scale_|permlane(?:64|x?16_var|_(?:bcast|down|up|xor))_b32)"
)

# By the processors' names: the bytes of the instructions' first words, from one of them on (ISA
# guides: VOP3P of WMMA and of the scales of MFMA, VOP1 and VOP3 of V_PERMLANE).
_PERMLANE64 = (1, rb"[\xce\xcf].[\x7e\x7f]")
_ENCODINGS = (
    (re.compile(r"gfx(?:9-|10)"), ()),
    (re.compile(r"gfx9"), ((2, rb"\xac\xd3"),)),
    (re.compile(r"gfx11"), ((2, rb"[\x40-\x45]\xcc"), _PERMLANE64)),
    (re.compile(r"gfx12"), ((2, rb"[\x0f\x10]\xd7|[\x70-\x73]\xd6"), _PERMLANE64)),
)


def reads_other_lanes(output: bytes, kind: str, cpu: str) -> bool:
    """Returns whether llc's output contains such an instruction.

    Of an object, every aligned word is taken for an instruction.
    """
    if kind == "mir":
        return bool(_IN_MIR.search(output))
    if kind != "obj":
        found = _IN_TEXT.finditer(output)
        return any(cpu.startswith("gfx11") or b"wmma" not in match[0] for match in found)
    known = next((row[1] for row in _ENCODINGS if row[0].match(cpu)), None)
    if known is None:
        return True
    return any(
        any(match.start() % 4 == first for match in re.finditer(word, code, re.DOTALL))
        for code in sections(output)
        for first, word in known
    )


def may_be_moved(mir: bytes) -> bool:
    """Returns whether a function of `mir` has such an instruction and a divergent branch."""
    from fly_llc import mir as machine

    return any(
        any(True for _ in _places(function)) and any(map(_diverges, function.blocks))
        for function in machine.parse(mir.decode()).functions
    )


def were_moved(before: bytes, after: bytes) -> bool:
    """Returns whether the pass has moved such an instruction to another block behind a divergent
    branch, by the MIR before and after it."""
    from fly_llc import mir as machine

    later = {one.name: one for one in machine.parse(after.decode()).functions}
    for function in machine.parse(before.decode()).functions:
        if (other := later.get(function.name)) is None:
            continue
        places = dict(_places(other))
        for register, block in _places(function):
            to = places.get(register)
            if to is None or (to != block and _branches(other, block, to)):
                return True
    return False


def _places(function: Function) -> Iterator[tuple[str, int]]:
    """The results of such instructions, and their blocks."""
    for block in function.blocks:
        for instruction in block.instructions:
            if found := _RESULT.match(instruction.text):
                yield found[1], block.number


def _diverges(block: Block) -> bool:
    return any(_DIVERGENT.search(one.text) for one in block.instructions)


def _branches(function: Function, start: int, end: int) -> bool:
    """Whether a divergent branch is on a way from a block to another."""
    successors = {block.number: block.successors for block in function.blocks}
    ways = _reached(successors, start, end) & _reached(function.predecessors, end, start)
    return any(_diverges(function.block(number)) for number in ways | {start} - {end})


def _reached(edges: dict[int, list[int]], start: int, end: int) -> set[int]:
    """The blocks that edges lead to from `start`, but not through `end`."""
    waiting, found = [start], {start}
    while waiting:
        for to in edges[waiting.pop()]:
            if to not in found and to != end:
                found.add(to)
                waiting.append(to)
    return found
