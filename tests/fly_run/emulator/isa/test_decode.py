"""Disassembly and what control can reach."""

import subprocess
import sys

import pytest
from chosen_targets import one_of_each
from fly_common.errors import InputError
from fly_image.amd.code_object import CodeObject
from fly_run.emulator.isa.decode import Code
from fly_run.emulator.isa.disassemble import Disassembler
from fly_target.registry import EMULATED, with_trait


@pytest.fixture(scope="module", params=with_trait("CDNA2", "CDNA3", "CDNA4"))
def calls(request, assemble) -> CodeObject:
    return CodeObject.parse(assemble("calls", request.param))


def test_text_and_size():
    code = bytes.fromhex("0002007eff02007e78563412000081bf")
    disassembler = Disassembler("gfx942", code, 0x1000)
    assert disassembler.at(0x1000) == ("v_mov_b32_e32 v0, s0", 4)
    assert disassembler.at(0x1004) == ("v_mov_b32_e32 v0, 0x12345678", 8)
    assert disassembler.at(0x100C) == ("s_endpgm", 4)


@pytest.mark.parametrize("pc", [0xFFC, 0x1001, 0x1002, 0x1010, 1 << 40, -4])
def test_outside_the_code_is_nothing(pc):
    assert Disassembler("gfx942", bytes.fromhex("000081bf") * 4, 0x1000).at(pc) is None


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("no opcode", "ffffffbf"),
        ("cut off in the middle", "ff02007e"),
        ("SDWA destination selector 7", "f902007e00070600"),
        ("SDWA source selector 7", "f902007e00060700"),
        ("a literal in VOP3", "000000d1ff000000"),
        ("a literal as a buffer's offset", "000050e0000000ff"),
        ("a scalar pair at an odd number", "010181be"),
        ("a pair of vector registers at an odd number", "174f3b092bcd8d13"),
    ],
)
def test_forbidden_encodings_are_nothing(what, code):
    assert Disassembler("gfx942", bytes.fromhex(code), 0).at(0) is None


@pytest.mark.parametrize("target", with_trait("RDNA3", "RDNA4"))
def test_a_literal_for_a_barrier_is_nothing(target):
    """gfx11 has other instructions, or none, with these opcodes."""
    for opcode in range(0x4E, 0x53):
        code = bytes((0xFF, opcode, 0xB4, 0xBE, 1, 2, 3, 4))
        assert Disassembler(target, code, 0).at(0) is None


RANDOM_BYTES = """
import random, sys
from fly_run.emulator.isa.disassemble import Disassembler
generator = random.Random(int(sys.argv[2]))
words = bytearray(generator.randbytes(8 * 60_000))
for at in range(0, len(words), 8):
    kind = generator.randrange(6)
    if kind == 0: words[at] = 0xF9
    if kind == 1: words[at + generator.randrange(4, 8)] = 0xFF
    if kind == 2: words[at + 3] = generator.choice((0xD1, 0xD2, 0xD3, 0xE0, 0xE8)); words[at] = 255
found = Disassembler(sys.argv[1], bytes(words), 0)
print(sum(found.at(at) is not None for at in range(0, len(words), 4)))
"""


@pytest.mark.parametrize("target", one_of_each(EMULATED))
def test_random_bytes_never_crash_llvm(target):
    """In a process of its own: a crash there is a failure here."""
    done = subprocess.run(
        [sys.executable, "-c", RANDOM_BYTES, target, "3"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10_000


def reached(code_object: CodeObject) -> list[str]:
    entry = code_object.kernels["calls"].entry
    return [i.text for i in Code(code_object).reachable(entry).values()]


def test_calls_are_followed(calls):
    texts = reached(calls)
    for number in (1, 3, 4):
        assert f"v_mov_b32_e32 v{number}, {number}" in texts
    assert "v_mov_b32_e32 v9, 9" not in texts
    assert texts.count("s_setpc_b64 s[30:31]") == 3


def test_where_pointers_lead_is_known(calls):
    code = Code(calls)
    assert code.pointers == (calls.symbols["far"].value,)
    texts = [i.text for i in code.reachable(code.pointers[0]).values()]
    assert texts == ["v_mov_b32_e32 v2, 2", "s_setpc_b64 s[30:31]"]


def test_a_trap_ends_a_wave(calls):
    assert reached(calls)[-1] == "s_trap 2"


def test_branches_have_targets(calls):
    code = Code(calls).reachable(calls.kernels["calls"].entry)
    (branch,) = [i for i in code.values() if i.mnemonic == "s_cbranch_scc1"]
    assert code[branch.target].text == "s_trap 2"
    (call,) = [i for i in code.values() if i.mnemonic == "s_call_b64"]
    assert call.target == calls.symbols["direct"].value


def test_addresses_are_those_of_the_file(calls):
    code = Code(calls).reachable(calls.kernels["calls"].entry)
    assert list(code) == sorted(code)
    assert code[calls.symbols["near"].value].text == "v_mov_b32_e32 v1, 1"


def test_a_sweep_finds_what_nothing_reaches(calls):
    texts = [i.text for i in Code(calls).everything().values()]
    assert "v_mov_b32_e32 v9, 9" in texts
    assert "s_trap 2" in texts


def test_what_is_no_code_is_an_error_where_it_is_reached(calls):
    code = Code(calls)
    trap = max(code.reachable(calls.kernels["calls"].entry))
    with pytest.raises(InputError) as caught:
        code.reachable(trap + 4)
    assert caught.value.message == (
        f"pc 0x{trap + 4:x}: 0xbfffffff is not an instruction of this processor"
    )
    with pytest.raises(InputError, match="there is no code"):
        code.reachable(0x10)


def test_an_error_says_where_control_came_from(assemble):
    data = assemble("add")
    damaged = CodeObject.parse(data.replace(bytes.fromhex("000081bf"), bytes.fromhex("ffffffbf")))
    with pytest.raises(InputError) as caught:
        Code(damaged).reachable(damaged.kernels["add"].entry)
    assert "0xbfffffff is not an instruction of this processor, reached from 0x" in (
        caught.value.message
    )
