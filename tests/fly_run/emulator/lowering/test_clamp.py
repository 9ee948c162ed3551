"""`clamp` on every vector instruction that may have it: executed, or refused for a reason."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from chosen_targets import first, one_of_each
from fly_common.programs import toolchain
from fly_run.emulator.coverage import TARGETS, coverage, universe
from fly_run.emulator.isa.disassemble import Disassembler
from fly_run.emulator.isa.instruction import Instruction, split_mnemonic
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.lowering.encode import Encoder
from fly_run.emulator.lowering.registers import Allocation, Constants, Registers, Unsupported
from fly_run.emulator.semantics import table
from fly_target.registry import BUILT_IN as ROWS
from oracle.probes.probe import known_to

# One form of a mnemonic is enough, without other modifiers.
SPECIAL = re.compile(r"quad_perm|row_|wave_|dpp|sdwa|mul:|div:")
REFUSED = {
    "v_alignbit_b32|v_alignbyte_b32": "bits, and no number that could be too large",
    "v_pk_(lshl|lshr|ashr)rev_[bi]16": "nobody says whether a shift saturates",
    "v_pk_mul_lo_u16": "LLVM says that it saturates; tinygrad, that gfx11's v_mul_lo does not",
    "v_cvt_pk_(bf16_f32|f32_(fp8|bf8))|v_pack_b32_f16": "no compiler makes them",
    "v_cvt_sr_(fp8_f32|pk_b?f16_f32)": "no compiler makes them",
    "v_(pk_)?add_(min|max)_[iu](16|32)": "nobody says whether the sum or the result saturates",
    "v_(add|sub)_nc_u64|v_mad_nc_[iu]64_[iu]32": "nobody says that 64 bits saturate",
}


def forms(target: str) -> list[str]:
    """Assembly with the modifier, of those of the emulator's instructions that may have it."""
    plain: dict[str, str] = {}
    for mnemonic, shapes in universe(target).items():
        name, encoding = split_mnemonic(mnemonic)
        if not name.startswith("v_") or name not in coverage(target).plain_implemented:
            continue
        texts = [re.sub(r"\s+clamp\b", "", text) for text, _ in shapes]
        if texts := [text for text in texts if not SPECIAL.search(text)]:
            shortest = min(texts, key=len)
            plain[mnemonic] = f"{shortest} clamp"
            if encoding == "e32":
                plain[f"{name}_e64 too"] = f"{shortest} clamp".replace("_e32", "_e64")
    listed = list(plain.values())
    known = known_to(target, listed)
    return [text for text, good in zip(listed, known, strict=True) if good]


def instructions(target: str, texts: list[str]) -> list[Instruction]:
    """As LLVM's disassembler prints them."""
    options = ["-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "--show-encoding"]
    done = toolchain.run_program("llvm-mc", options, "\n".join(texts).encode())
    assert done.returncode == 0, done.stderr.decode()
    found = re.findall(r"encoding: \[([^\]]*)\]", done.stdout.decode())
    codes = [bytes(int(byte, 16) for byte in one.split(",")) for one in found]
    assert len(codes) == len(texts)
    disassembler = Disassembler(target, b"".join(code.ljust(16, b"\0") for code in codes), 0)
    printed = [disassembler.at(16 * number) for number in range(len(codes))]
    return [parse(one[0], 0, len(code)) for one, code in zip(printed, codes, strict=True) if one]


@pytest.mark.parametrize("target", first(one_of_each({name: ROWS[name] for name in TARGETS})))
def test_clamp_is_executed_or_refused_for_a_reason(target: str) -> None:
    tried = instructions(target, forms(target))
    assert len(tried) > 150
    constants = Constants(0, 1 << 26)
    registers = Registers(
        Allocation(256, 256, 256, 512), constants, ROWS[target], ROWS[target].wave_size
    )
    encoder = Encoder(registers, table.operations_of(target), {}, null_region=0)

    def accepts(instruction: Instruction) -> bool:
        try:
            encoder.lower(instruction)
        except Unsupported:
            return False
        return True

    refused = set()
    for instruction in tried:
        others = dict(instruction.modifiers)
        assert others.pop("clamp"), instruction.text
        if not accepts(instruction) and accepts(replace(instruction, modifiers=others)):
            refused.add(split_mnemonic(instruction.mnemonic)[0])
    unknown = [name for name in refused if not any(re.fullmatch(one, name) for one in REFUSED)]
    assert not unknown
    patterns = [one for one in REFUSED if any(re.fullmatch(one, name) for name in refused)]
    assert len(patterns) >= 3
