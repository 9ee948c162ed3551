"""Instruction by instruction: the emulator against the oracle, on edge values and EXEC patterns.

All instructions of a family are in one kernel (oracle/probe.py). Left open are a NaN result's sign
and payload, and one ULP of a transcendental result; everything else is compared bit for bit.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import pytest
from oracle import build, instructions, probe
from oracle.compare import differing
from oracle.device import on_emulator

OF_GFX950 = {
    *("v_permlane16_swap_b32", "v_permlane32_swap_b32", "v_bitop3_b32", "v_bitop3_b16"),
    *("v_cvt_pk_bf16_f32", "v_minimum3_f32", "v_maximum3_f32"),
    *("v_pk_minimum3_f16", "v_pk_maximum3_f16"),
}
# Mnemonics of the oracle's tables that a target does not have: what llvm-mc refuses, exactly.
ABSENT = {
    "gfx90a": OF_GFX950
    | {
        *("v_fmaak_f32", "v_fmamk_f32", "v_lshl_add_u64", "v_mov_b64"),
        *("ds_pk_add_f16", "ds_pk_add_rtn_f16", "flat_atomic_add_f32", "flat_atomic_pk_add_f16"),
    },
    "gfx942": OF_GFX950
    | {"v_mac_f32", "v_mad_f32", "v_mad_legacy_f32", "v_madak_f32", "v_madmk_f32"},
    "gfx950": {"v_mac_f32", "v_mad_f32", "v_mad_legacy_f32", "v_madak_f32", "v_madmk_f32"},
}
# DS_WRXCHG has no form without a result; of V_MINIMUM3_F16 there is the packed form only.
NOWHERE = {"ds_wrxchg_b32", "ds_wrxchg_b64", "v_minimum3_f16", "v_maximum3_f16"}

# What the emulator refuses by name before anything runs.
UNSUPPORTED = {
    *("v_cvt_off_f32_i4", "v_cvt_pknorm_i16_f16", "v_cvt_pknorm_u16_f16"),
    *("v_exp_legacy_f32", "v_log_legacy_f32", "v_madak_f16", "v_madmk_f16", "v_mad_legacy_f32"),
    *("s_andn1_wrexec_b64", "s_andn2_wrexec_b64", "ds_mskor_b32", "ds_mskor_b64"),
    *("ds_mskor_rtn_b32", "ds_mskor_rtn_b64"),
}

RUNS = [(target, family) for target in build.TARGETS for family in instructions.FAMILIES]


@functools.cache
def probes(target: str, family: str):
    return instructions.probes_for(target, family)


def supported(target: str, family: str) -> list[probe.Probe]:
    """What the emulator is to be tried on. The targets share most instructions: all forms of those
    are tried on gfx942, every third on the others."""
    chosen = [p for p in probes(target, family)[0] if instructions.subject(p) not in UNSUPPORTED]
    if target == "gfx942" or len(chosen) < 200:
        return chosen
    own = ABSENT["gfx942"]
    return [p for k, p in enumerate(chosen) if k % 3 == 0 or instructions.subject(p) in own]


@pytest.mark.parametrize(("target", "family"), RUNS)
def test_family(target, family):
    batch = probe.batch(supported(target, family))
    lines = differing(batch, build.assemble(batch.text, target))
    assert not lines, f"{len(lines)} of {len(batch.probes)}:\n" + "\n".join(lines[:20])


def test_flushed_denormals():
    """With f32 denormals off (FLOAT_DENORM_MODE_32 = 0) f32 operations flush them, f64 don't."""
    simple = re.compile(
        r"v_(add|sub|subrev|mul|fma|fmac|fmamk|min|max|cmpx?_\w+|pk_(add|mul|fma))_f(32|64)"
    )
    chosen = [
        replace(p, tininess=True)
        for family in ("vector", "compares", "packed")
        for p in supported("gfx942", family)
        if simple.match(instructions.subject(p)) and "class" not in p.text
    ]
    assert len(chosen) > 200
    batch = probe.batch(chosen, denormals=0)
    lines = differing(batch, build.assemble(batch.text, "gfx942"))
    assert not lines, "\n".join(lines[:20])


@pytest.mark.parametrize("target", build.TARGETS)
def test_absent(target):
    """Nothing falls out of the comparison unseen."""
    missing = {name for family in instructions.FAMILIES for name in probes(target, family)[1]}
    assert missing - NOWHERE == ABSENT[target]


def test_unsupported_is_refused():
    """Each instruction the comparison leaves out is refused by its name, and none runs."""
    from fly_common.errors import InputError

    left_out = [
        p
        for family in instructions.FAMILIES
        for p in probes("gfx90a", family)[0]
        if instructions.subject(p) in UNSUPPORTED
    ]
    assert {instructions.subject(p) for p in left_out} == UNSUPPORTED
    batch = probe.batch(left_out)
    with pytest.raises(InputError) as caught:
        on_emulator(
            build.assemble(batch.text, "gfx90a"),
            "probe",
            (1, 1, 1),
            (64, 1, 1),
            [batch.inputs, batch.outputs(), batch.masks],
        )
    for name in UNSUPPORTED:
        assert name in str(caught.value)
