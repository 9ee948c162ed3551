"""The library for machine passes: it loses nothing, and it knows what it edits."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from fly_common.errors import InputError
from fly_llc import Options, compile, mir
from fly_llc.codegen import resume
from fly_llc.codegen.points import named
from fly_llc.insertion import filters
from fly_llc.mir import kinds, registers
from fly_llc.mir.dependences import dependences, regions
from fly_llc.mir.instruction import Instruction
from fly_llc.mir.liveness import live_outs, live_sets
from fly_llc.shipped.amd import peephole
from fly_target.amd.waits import GFX9, GFX11

from .woven import CASES, ir

CPUS = ["gfx942", "gfx1100", "gfx1201"]


def dump(source: bytes, folder) -> dict[str, str]:
    compile(source, Options(dump=str(folder)))
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> dict[str, str]:
    """MIR of all examples at every named point."""
    found = {}
    for case in CASES:
        possible = [cpu for cpu in CPUS if cpu in case.targets]
        for cpu in possible if case.name in ("matmul", "gray_scott") else possible[:1]:
            folder = tmp_path_factory.mktemp("mir")
            texts = dump(ir(case, cpu), folder)
            found |= {f"{case.name} {cpu} {name}": text for name, text in texts.items()}
    assert len(found) >= len(named("gfx942")) * len(CASES)
    return found


def instructions(module: mir.Module) -> list[Instruction]:
    return [
        inner
        for function in module.functions
        for block in function.blocks
        for one in block.instructions
        for inner in (one, *one.bundled)
    ]


def test_nothing_is_lost(corpus):
    for name, text in corpus.items():
        assert str(mir.parse(text)) == text, name


def test_an_instruction_s_parts_print_as_it_was(corpus):
    count = 0
    for name, text in corpus.items():
        for one in instructions(mir.parse(text)):
            before = one.text
            one.edited()
            assert one.text == before, name
            count += 1
    assert count > 5000


def test_every_kind_is_known(corpus):
    """Each opcode that is no barrier to moving is one that computes, or goes to memory; and what is
    neither is one that has to stay."""
    stays = {"S_ENDPGM", "S_BARRIER", "S_BRANCH", "S_CBRANCH_EXECZ", "KILL", "S_WAITCNT"}
    moves = {"V_ADD_F32_e32", "GLOBAL_LOAD_DWORD", "DS_WRITE_B32_gfx9", "S_LOAD_DWORDX2_IMM"}
    seen: set[str] = set()
    for text in corpus.values():
        for one in instructions(mir.parse(text)):
            seen.add(one.opcode)
            assert one.opcode not in stays or not kinds.is_movable(one)
            assert one.opcode not in moves or kinds.is_movable(one)
    assert stays | moves <= seen


TEXT = """--- |
  define amdgpu_kernel void @k() { ret void }
...
---
name:            k
isSSA:           false
noVRegs:         true
registers:
  - { id: 3, class: vreg_64_align2, preferred-register: '', flags: [  ] }
body:             |
  bb.0.entry:
    successors: %bb.1(0x40000000), %bb.2(0x40000000)
    liveins: $vgpr0, $sgpr0_sgpr1, $vgpr4_vgpr5:0x000000000000000F

    ; a remark
    $vgpr1 = V_MOV_B32_e32 7, implicit $exec, debug-location !7
    renamable $vgpr2_vgpr3 = nofpexcept V_ADD_F64_e64 0, killed $vgpr4_vgpr5, 0, $vgpr0_vgpr1, 0, 0, implicit $mode, implicit $exec ; behind
    BUNDLE implicit-def $vgpr6, implicit $vgpr2_vgpr3 {
      $vgpr6 = GLOBAL_LOAD_DWORD killed $vgpr2_vgpr3, 0, 0, implicit $exec :: (load (s32) from %ir.p, addrspace 1)
    }
    S_CBRANCH_VCCZ %bb.2, implicit $vcc

  bb.1:
    S_ENDPGM 0

  bb.2 (%ir-block.7):
    S_ENDPGM 0
...
"""  # noqa: E501


def test_what_it_reads():
    (function,) = mir.parse(TEXT).functions
    assert (function.name, function.is_ssa, function.has_virtual_registers) == ("k", False, False)
    assert function.classes == {"%3": "vreg_64_align2"}
    entry, one, two = function.blocks
    assert (entry.number, entry.name, entry.successors) == (0, "bb.0", [1, 2])
    assert entry.live_ins == ["$vgpr0", "$sgpr0_sgpr1", "$vgpr4_vgpr5"]
    assert (one.number, two.number, two.successors) == (1, 2, [])
    assert function.predecessors == {0: [], 1: [0], 2: [0]}
    move, add, bundle, branch = entry.instructions
    assert (move.opcode, move.attributes) == ("V_MOV_B32_e32", ["debug-location !7"])
    assert move.operands[0].integer == 7
    assert (add.opcode, add.flags) == ("V_ADD_F64_e64", ["nofpexcept"])
    assert registers.defined(add) == {"v2", "v3"}
    assert registers.used(add) == {"v4", "v5", "v0", "v1", "mode", "exec_lo", "exec_hi"}
    assert add.operands[1].flags == ("killed",)
    assert [inner.opcode for inner in bundle.bundled] == ["GLOBAL_LOAD_DWORD"]
    assert bundle.bundled[0].memory == "(load (s32) from %ir.p, addrspace 1)"
    assert (branch.opcode, str(branch.operands[0])) == ("S_CBRANCH_VCCZ", "%bb.2")


def test_what_it_edits():
    module = mir.parse(TEXT)
    entry = module.functions[0].blocks[0]
    move, add, _, branch = entry.instructions
    move.replace(operands=[8, *move.operands[1:]])
    entry.insert_before(branch, "S_NOP 0")
    entry.insert_after(add, Instruction("S_NOP 1"))
    entry.append("S_NOP 2")
    text = str(module)
    assert "    $vgpr1 = V_MOV_B32_e32 8, implicit $exec, debug-location !7\n" in text
    assert "    ; a remark\n    $vgpr1 = " in text
    assert "implicit $exec ; behind\n    S_NOP 1\n    BUNDLE" in text
    assert "    }\n    S_NOP 0\n    S_CBRANCH_VCCZ %bb.2, implicit $vcc\n    S_NOP 2\n\n" in text
    entry.remove(move)
    assert "V_MOV_B32" not in str(module)
    with pytest.raises(ValueError, match="has no"):
        entry.remove(move)
    with pytest.raises(ValueError, match="the new order does not contain the same instructions"):
        entry.reorder(entry.instructions[1:])
    assert mir.parse(str(module)).functions[0].blocks[0].instructions[1].text == "S_NOP 1"


def test_refusals():
    with pytest.raises(InputError, match="not MIR"):
        mir.parse("define void @k()")
    with pytest.raises(InputError, match=r"the bundle in bb\.0 has no end"):
        mir.parse(TEXT.replace("    }\n", ""))


@pytest.mark.parametrize(
    ("register", "wanted"),
    [
        ("$vgpr0_vgpr1", {"v0", "v1"}),
        ("$vgpr7_lo16", {"v7"}),
        ("$vgpr7_hi16", {"v7"}),
        ("$agpr15", {"a15"}),
        ("$sgpr4_sgpr5_sgpr6_sgpr7", {"s4", "s5", "s6", "s7"}),
        ("$vcc", {"vcc_lo", "vcc_hi"}),
        ("$vcc_lo", {"vcc_lo"}),
        ("$exec", {"exec_lo", "exec_hi"}),
        ("$scc", {"scc"}),
        ("%12", {"%12"}),
    ],
)
def test_units(register, wanted):
    assert registers.units(register) == wanted


def test_widths():
    assert registers.width("vreg_64_align2") == ("v", 2)
    assert registers.width("vgpr_32") == ("v", 1)
    assert registers.width("areg_512") == ("a", 16)
    assert registers.width("av_128_align2") == ("v", 4)
    assert registers.width("sreg_64_xexec") == ("s", 2)


def test_dependences_by_brute_force():
    """Against what they mean: two instructions may change places only if neither touches what the
    other writes, and no store is among two accesses."""
    source = random.Random(1)
    for _ in range(200):
        block = [_random_instruction(source) for _ in range(8)]
        before = dependences(block)
        reach = [set(needed) for needed in before]
        for number in range(len(block)):
            for earlier in sorted(before[number], reverse=True):
                reach[number] |= reach[earlier]
        for j, later in enumerate(block):
            for i, earlier in enumerate(block[:j]):
                clash = (
                    registers.defined(earlier) & (registers.used(later) | registers.defined(later))
                    or registers.used(earlier) & registers.defined(later)
                    or (kinds.is_memory(earlier) and kinds.is_memory(later)
                        and (kinds.writes_memory(earlier) or kinds.writes_memory(later)))
                )  # fmt: skip
                if clash:
                    assert i in reach[j], (earlier, later)
                elif i in before[j]:
                    # Nothing is kept apart without a reason.
                    raise AssertionError((earlier, later))


def _random_instruction(source: random.Random) -> Instruction:
    a, b, c = (f"$vgpr{source.randrange(5)}" for _ in range(3))
    memory = ":: (load (s32) from %ir.p, addrspace 1)"
    texts = (
        f"{a} = V_ADD_U32_e32 {b}, {c}, implicit $exec",
        f"{a} = V_MOV_B32_e32 3, implicit $exec",
        f"{a} = GLOBAL_LOAD_DWORD {b}, 0, 0, implicit $exec {memory}",
        f"GLOBAL_STORE_DWORD {a}, {b}, 0, 0, implicit $exec {memory.replace('load', 'store')}",
        f"$sgpr{source.randrange(3)} = S_ADD_U32 $sgpr{source.randrange(3)}, 1, implicit-def $scc",
    )
    return Instruction(source.choice(texts))


def test_regions_end_where_nothing_moves():
    block = [Instruction(text) for text in (
        "$vgpr0 = V_MOV_B32_e32 1, implicit $exec", "$vgpr1 = V_MOV_B32_e32 2, implicit $exec",
        "S_BARRIER", "$vgpr2 = V_MOV_B32_e32 3, implicit $exec", "S_WAITCNT 0",
        "$vgpr3 = V_MOV_B32_e32 3, implicit $exec", "$vgpr4 = V_MOV_B32_e32 3, implicit $exec",
        "$exec = S_MOV_B64_term $sgpr0_sgpr1",
    )]  # fmt: skip
    assert regions(block) == [(0, 2), (5, 7)]


def test_liveness_against_llvm(corpus):
    """LLVM prints what is live where a block begins: the vector registers are those found here, and
    those that no one has written on some way (undefined values), which LLVM leaves out. LLVM's
    own are sometimes stale: a few more than are live."""
    compared = told = stale = 0
    for name, text in corpus.items():
        if "prologepilog" not in name:
            continue
        for function in mir.parse(text).functions:
            outs = live_outs(function)
            entry = function.blocks[0]
            arguments = frozenset().union(*map(registers.units, entry.live_ins))
            undefined = live_sets(entry, outs[entry.number])[0] - arguments
            for block in function.blocks:
                if not block.instructions:
                    continue
                mine = live_sets(block, outs[block.number])[0]
                said = frozenset().union(*map(registers.units, block.live_ins))
                assert _vectors(mine) <= _vectors(said | undefined), (name, block.name)
                compared += 1
                told += len(_vectors(said))
                stale += len(_vectors(said) - _vectors(mine))
    assert compared > 50
    assert stale < told / 8


def _vectors(units: frozenset[str]) -> frozenset[str]:
    return frozenset(unit for unit in units if unit[0] == "v" and unit[1:].isdigit())


def test_wait_fields_against_llvm():
    """llvm-mc's own encoding of the counters."""
    import subprocess

    from fly_common.programs import toolchain

    for waits, cpu, cases in (
        (GFX9, "gfx942", [(5, 3), (0, 15), (63, 0), (17, 7)]),
        (GFX11, "gfx1100", [(5, 3), (0, 63), (63, 0), (17, 40)]),
    ):
        for vm, lgkm in cases:
            text = f"s_waitcnt vmcnt({vm}) lgkmcnt({lgkm})"
            done = subprocess.run(
                [toolchain.find_program("llvm-mc"), "-triple=amdgcn-amd-amdhsa", f"-mcpu={cpu}",
                 "-show-encoding"],
                input=text.encode(), capture_output=True, check=True,
            )  # fmt: skip
            code = done.stdout.decode().partition("encoding: [")[2].partition("]")[0].split(",")
            word = int(code[0], 16) | int(code[1], 16) << 8
            assert (waits.vm.read(word), waits.lgkm.read(word)) == (vm, lgkm)
            again = waits.lgkm.write(waits.vm.write(0, vm), lgkm)
            assert (waits.vm.read(again), waits.lgkm.read(again)) == (vm, lgkm)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ("bb.0:\n    successors: %bb.7", "bb.1:"),
            "k: bb.0 branches to bb.7, which is not a block",
        ),
        (("bb.0:", "bb.1:", "bb.1:"), "k has two blocks bb.1"),
    ],
)
def test_control_flow_without_sense_is_refused(labels, message):
    """The fixpoint of liveness would not end, or look for a block that is not there."""
    body = "".join(f"  {label}\n    S_NOP 0\n" for label in labels)
    with pytest.raises(InputError, match=message):
        mir.parse(f"---\nname: k\nbody: |\n{body}...\n")


def test_mir_without_functions_and_names_that_are_no_text_are_read():
    assert resume.user_registers(b"--- |\n...\n") == {}
    odd = b"name: k\xeb\n    workGroupIDX: { reg: '$sgpr6' }\n"
    assert resume.user_registers(odd) == {"k\\xeb": 6}


def test_numbers_that_nobody_can_read_are_no_numbers():
    long = "9" * 5000
    text = f"---\nname: k\nbody: |\n  bb.0:\n    $sgpr{long} = S_MOV_B32 {long}\n...\n"
    (one,) = mir.parse(text).functions[0].blocks[0].instructions
    assert one.operands[0].integer is None
    assert mir.parse(text.replace("bb.0", f"bb.{long}")).functions[0].blocks == []
    assert (
        resume.user_registers(f"name: k\n    workGroupIDX: {{ reg: '$sgpr{long}' }}".encode()) == {}
    )


@pytest.mark.parametrize("line", ["$sgpr4 = S_MOV_B32", "7 = S_MOV_B32 7", "$sgpr4 = S_MOV_B32 7"])
def test_the_peephole_takes_moves_of_nothing(line):
    head = "---\nname: k\nnoVRegs: true\nbody: |\n"
    text = f"{head}  bb.0:\n    {line}\n    S_NOP 0\n...\n"
    assert peephole.main(text, []) == text


def test_filters_take_functions_without_blocks():
    text = "---\nname: k\nnoVRegs: true\nbody: |\n...\n"
    for name in ("nop-sled", "schedule", "peephole", "pressure"):
        assert filters.shipped(name)(text, []) == text


def test_the_machines_modules_are_imported_when_they_are_asked_for():
    program = (
        "import sys\n"
        "from fly_llc import mir\n"
        "assert not any(name.startswith('fly_llc.mir.amd') for name in sys.modules)\n"
        "print(mir.kinds.__name__, hasattr(mir, 'kind'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "fly_llc.mir.amd.kinds False\n", done.stderr
