"""Known defects of LLVM's AMDGPU code generation, and how machine code shows them.

`si-pre-emit-peephole` (issue 215745) erases the S_AND of

    V_CMP …, implicit-def $vcc
    $vcc = S_AND_B64 $exec, $vcc, implicit-def $scc
    S_CBRANCH_VCCNZ …

because inactive lanes are zero in V_CMP's result. It does not consider that the SCC of S_AND may
be read: by the S_CSELECT of a `select` with the branch's condition, before the branch or in a later
block.

`machine-sink` (pull requests 178314, 178627 and 182162) moves instructions that read other lanes
behind divergent branches: see `sinking`.

`structurizecfg` (pull request 183792) hoists values to paths on which they are wrong: see
`hoisting`.

`loop-reduce` and `amdgpu-isel` together divide offsets into buffers so that their parts are out of
range: see `buffer_offsets`. What loop-reduce makes is the input of structurizecfg too.
"""

from __future__ import annotations

import re

from fly_llc.backends.amd.code import sections
from fly_llc.codegen.defects import Defect
from fly_llc.codegen.ir_defects import IRDefect

DEFECTS = (
    Defect(
        machine_pass="machine-sink",
        fixed=23,
        issue="https://github.com/llvm/llvm-project/pull/178314",
        possible="fly_llc.backends.amd.sinking:reads_other_lanes",
        strikes="fly_llc.backends.amd.sinking:may_be_moved",
        struck="fly_llc.backends.amd.sinking:were_moved",
        option="-disable-machine-sink",
    ),
    Defect(
        machine_pass="si-pre-emit-peephole",
        fixed=24,
        issue="https://github.com/llvm/llvm-project/issues/215745",
        possible="fly_llc.backends.amd.defects:has_branch_and_select",
        strikes="fly_llc.backends.amd.defects:and_sets_scc",
    ),
)

IR_DEFECTS = (
    IRDefect(
        ir_pass="structurizecfg",
        fixed=24,
        issue="https://github.com/llvm/llvm-project/pull/183792",
        possible="fly_llc.backends.amd.hoisting:may_occur",
        mended="fly_llc.backends.amd.hoisting:frozen",
    ),
    IRDefect(
        ir_pass="structurizecfg",
        fixed=None,
        issue="https://github.com/llvm/llvm-project/pull/207796",
        possible="fly_llc.backends.amd.buffer_offsets:may_occur",
        mended="fly_llc.backends.amd.buffer_offsets:whole",
        culprit="loop-reduce and amdgpu-isel",
    ),
)

# By the processors' names: the upper byte of S_CSELECT_B32 and S_CSELECT_B64, and the third bytes
# of S_CBRANCH_VCCZ and S_CBRANCH_VCCNZ, whose upper byte is 0xBF (SOP2 and SOPP in the ISA guides).
_ENCODINGS = (
    (re.compile(r"gfx(?:9|10)"), b"\x85", rb"[\x86\x87]\xbf"),
    (re.compile(r"gfx1[12]"), b"\x98", rb"[\xa3\xa4]\xbf"),
)

_TEXT = {
    "asm": (b"s_cselect_b", b"s_cbranch_vcc"),
    "mir": (b"S_CSELECT_B", b"S_CBRANCH_VCC"),
}

_AND = re.compile(rb"^ .*\$vcc(?:_lo)? = .*\bS_AND_B(?:32|64) .*implicit-def \$scc\b", re.MULTILINE)
_BRANCH_OR_END = re.compile(rb"^ +(S_CBRANCH_VCC)|^  bb\.|^\.\.\.", re.MULTILINE)


def has_branch_and_select(output: bytes, kind: str, cpu: str) -> bool:
    """Returns whether llc's output contains a branch that reads VCC, and an S_CSELECT. Other
    instructions that read SCC do not read that of a comparison's S_AND.

    Of an object, every aligned word is taken for an instruction.
    """
    if kind != "obj":
        return all(word in output for word in _TEXT[kind])
    known = next((row for row in _ENCODINGS if row[0].match(cpu)), None)
    if known is None:
        return True
    _, select, branch = known
    return any(
        select in code[3::4] and any(match.start() % 4 == 2 for match in re.finditer(branch, code))
        for code in sections(output)
    )


def and_sets_scc(mir: bytes) -> bool:
    """Returns whether a block of `mir` sets VCC by an S_AND whose SCC is not dead, and branches on
    VCC later."""
    for found in _AND.finditer(mir):
        after = _BRANCH_OR_END.search(mir, found.end())
        if after and after[1]:
            return True
    return False
