"""Instruction by instruction: the emulator against the oracle, on edge values and EXEC patterns.

All instructions of a family are in one kernel (oracle/probes/probe.py). Left open are a NaN
result's sign and payload, and one ULP of a transcendental result; everything else is compared bit
for bit.
"""

from __future__ import annotations

import re

import pytest
from oracle.comparison import runs
from oracle.comparison.compare import differing
from oracle.launching import build, device
from oracle.probes import instructions, probe

# What is not tried here: pattern → the test that has a result of its own for it, or why there is
# nothing to compare.
ELSEWHERE = {
    "s_sendmsg": "test_engine_rare.py",
    # gfx90a sets FLAT_SCRATCH up in code.
    "scratch_(load|store)_(?!lds).*": "test_oracle_kernels.py, scratch",
    "s_barrier|s_endpgm(_saved)?|s_trap": "test_oracle_kernels.py; test_engine_faults.py",
    "s_memtime|s_memrealtime": "a clock: its value is open",
    "s_nop|v_nop|s_sleep|s_setprio|s_wakeup|s_ttracedata|s_(inc|dec)perflevel": "no effect",
    "s_atc_probe(_buffer)?|v_clrexcp": "no effect",
    "s_icache_inv|s_dcache_.*|buffer_(inv|invl2|wbl2|wbinvl1(_vol)?)": "caches: no effect",
}

TARGETS = ("gfx90a", "gfx942", "gfx950")


@pytest.mark.parametrize("run", [*runs.gfx9(), *runs.OTHERWISE], ids=str)
def test_family(run):
    probes = run.probes()
    assert run.names is None or len(probes) > 5
    batch = run.batch(probes)
    lines = differing(batch, build.assemble(batch.text, run.target), run.frame)
    assert not lines, f"{len(lines)} of {len(batch.probes)}:\n" + "\n".join(lines[:20])


@pytest.mark.parametrize("target", TARGETS)
def test_absent(target):
    """Nothing falls out of the comparison unseen: what llvm-mc refuses is not the target's."""
    families = (instructions.probes_for(target, family) for family in instructions.FAMILIES)
    refused = {name for _, names in families for name in names}
    assert not refused & device.known(target)


def untried(target: str) -> set[str]:
    """The mnemonics that the emulator executes and no probe does."""
    tried = (instructions.named(target, family) for family in instructions.FAMILIES)
    return set(device.found(target)).difference(*tried)


@pytest.mark.parametrize("target", TARGETS)
def test_every_instruction_is_compared(target):
    """Each mnemonic that the emulator executes is tried here, or stands in ELSEWHERE."""
    left = [n for n in untried(target) if not any(re.fullmatch(p, n) for p in ELSEWHERE)]
    assert not left, " ".join(sorted(left))


def test_elsewhere_is_not_here():
    """A pattern speaks of something that is executed and not tried here."""
    missing = set().union(*(untried(target) for target in TARGETS))
    assert not [p for p in ELSEWHERE if not any(re.fullmatch(p, name) for name in missing)]


@pytest.mark.parametrize("target", TARGETS)
def test_unsupported_is_refused(target):
    """Each instruction the comparison leaves out is refused by its name, and none runs."""
    from fly_common.errors import InputError

    left_out = [
        p
        for family in instructions.FAMILIES
        for p in instructions.probes_for(target, family)[0]
        if instructions.subject(p) in device.known(target) - device.implemented(target)
    ]
    if not left_out:
        return
    batch = probe.batch(left_out)
    code = build.assemble(batch.text, target)
    arguments = [batch.inputs, batch.outputs(), batch.masks]
    with pytest.raises(InputError) as caught:
        device.on_emulator(code, "probe", (1, 1, 1), (64, 1, 1), arguments)
    for name in {instructions.subject(p) for p in left_out}:
        assert name in str(caught.value)
