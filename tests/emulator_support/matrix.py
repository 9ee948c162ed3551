"""Runs a wave that loads registers, executes instructions and stores registers, for the tests of
matrix instructions."""

from __future__ import annotations

import functools

import numpy as np
from fly_image.amd.code_object import CodeObject

from emulator_support import frame
from emulator_support.engine import assemble, launch

LANES = 64
CODE = """  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_mul_i32 s8, s2, {input_bytes}
  s_mul_i32 s9, s2, {output_bytes}
  v_lshlrev_b32_e32 v255, 2, v0
  s_waitcnt lgkmcnt(0)
  s_add_u32 s4, s4, s8
  s_addc_u32 s5, s5, 0
  s_add_u32 s6, s6, s9
  s_addc_u32 s7, s7, 0
{loads}
  s_waitcnt vmcnt(0)
{body}
  s_nop 15
{stores}
  s_endpgm"""


@functools.cache
def code(
    body: str, target: str, loaded: tuple[str, ...], stored: tuple[str, ...], mode: str = ""
) -> CodeObject:
    """`loaded` and `stored` name registers ("v7", "a0"), one row of 64 dwords each. `mode` has more
    directives of the descriptor."""

    def access(text: str, register: str, pair: int) -> str:
        step = f"  s_add_u32 s{pair}, s{pair}, 256\n  s_addc_u32 s{pair + 1}, s{pair + 1}, 0"
        return f"{text.format(register, f's[{pair}:{pair + 1}]')}\n{step}"

    loads = [access("  global_load_dword {}, v255, {}", register, 4) for register in loaded]
    stores = [access("  global_store_dword v255, {}, {}", register, 6) for register in stored]
    text = CODE.format(
        loads="\n".join(loads),
        body=body,
        stores="\n".join(stores),
        input_bytes=len(loaded) * LANES * 4,
        output_bytes=len(stored) * LANES * 4,
    )
    whole = frame.kernel(
        target,
        text,
        arrays="input output",
        vgprs=512,
        lanes=LANES,
        items=LANES,
        directives=(".amdhsa_accum_offset 256", mode),
        metadata=(".agpr_count: 256",),
    )
    return assemble(whole, target)


def registers(bank: str, first: int, count: int) -> tuple[str, ...]:
    return tuple(f"{bank}{first + number}" for number in range(count))


def execute(
    body: str,
    target: str,
    loaded: tuple[str, ...],
    values: np.ndarray,
    stored: tuple[str, ...],
    mode: str = "",
    **options,
) -> np.ndarray:
    """Runs `body` with `values` (uint32) in the loaded registers: [register, lane], or [wave,
    register, lane] for several waves. Returns the stored registers, in the same layout."""
    values = np.ascontiguousarray(values, np.uint32)
    assert values.shape[-2:] == (len(loaded), LANES)
    waves = values.shape[:-2]
    result = np.zeros((*waves, len(stored), LANES), np.uint32)
    program = code(body, target, loaded, stored, mode)
    launch(program, [values, result], grid=waves[0] if waves else 1, **options)
    return result


WAVE32 = """  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v250, 2, v0
  s_wait_kmcnt 0x0
{loads}
  s_wait_loadcnt 0x0
{body}
{stores}
  s_endpgm"""


def execute_wave32(
    body: str, target: str, loaded: list[int], values: np.ndarray, stored: list[int], mfma: str
) -> np.ndarray:
    """Executes on gfx12: `values` are uint32[register, 32 lanes] of the vector registers `loaded`;
    returns those of the registers `stored`."""
    loads = [
        f"  global_load_b32 v{place}, v250, s[4:5] offset:{128 * number}"
        for number, place in enumerate(loaded)
    ]
    stores = [
        f"  global_store_b32 v250, v{place}, s[6:7] offset:{128 * number}"
        for number, place in enumerate(stored)
    ]
    parts = {"loads": "\n".join(loads), "body": body, "stores": "\n".join(stores)}
    found = np.zeros((len(stored), 32), np.uint32)
    text = frame.kernel(target, WAVE32.format(**parts), arrays="input output", vgprs=256, items=32)
    assembled = assemble(text, target)
    launch(assembled, [np.ascontiguousarray(values), found], block=32, mfma=mfma)
    return found
