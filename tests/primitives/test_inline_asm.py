"""`fx.inline_asm`: the emulator runs AMD's instructions, and ptxas takes NVIDIA's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError

import fly.expr as fx
from primitives import one, run, two

on_waves = pytest.mark.parametrize("target", ["gfx942", "gfx1100"])


def line_of(words: str) -> int:
    """The only line of this file that contains these words."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if words in line)
    return found


@on_waves
def test_one_result_and_a_constant(target):
    x = np.arange(64, dtype="u4") * 77
    y = np.zeros_like(x)

    def body(A, B):
        i = fx.thread_idx.x
        text = "v_bfe_u32 $0, $1, 4, $2"
        B[i] = fx.inline_asm(text, "=v,v,i", A[i], fx.Int32(9), results=fx.Uint32)

    run(body, x, y, block=64, target=target)
    np.testing.assert_array_equal(y, x >> 4 & 0x1FF)


@on_waves
def test_several_results_two_lines_and_clobbers(target):
    x = np.arange(64, dtype="i4") - 30
    y = np.zeros((3, 64), "i4")

    def body(A, B):
        i = fx.thread_idx.x
        low, high, wide = fx.inline_asm(
            "v_mov_b32 $0, $3\nv_mul_lo_u32 $1, $3, $4\nv_cvt_f32_i32 $2, $3",
            "=&v,=&v,=v,v,v,~{vcc}",
            A[i],
            fx.Int32(-3),
            results=(fx.Int32, fx.Int32, fx.Float32),
        )
        B[0, i], B[1, i], B[2, i] = low, high, (wide * 2.0).to(fx.Int32)

    run(body, x, y, block=64, target=target)
    np.testing.assert_array_equal(y, [x, x * -3, x * 2])


def test_vectors_scalar_registers_and_the_register_of_a_result():
    x = np.arange(128, dtype="f4")
    y = np.zeros((3, 64), "f4")

    def body(A, B):
        i = fx.thread_idx.x
        pair = fx.Vector.from_elements([A[2 * i], A[2 * i + 1]])
        (both,) = fx.inline_asm(
            "v_pk_fma_f32 $0, $1, $1, $0", "=v,v,0", pair, pair, results=[fx.Float32x2]
        )
        first = fx.inline_asm("v_readfirstlane_b32 $0, $1", "=s,v", A[i + 5], results=fx.Float32)
        B[0, i], B[1, i], B[2, i] = both[0], both[1], first

    run(body, x, y, block=64, target="gfx942")
    squares = x * x + x
    np.testing.assert_array_equal(y, [squares[::2], squares[1::2], np.full(64, 5)])


def test_what_has_no_result_is_kept_in_order():
    x = np.zeros(64, "u8")
    y = np.zeros(64, "i4")

    def body(A, B):
        i = fx.thread_idx.x
        place = fx.ptrtoint(fx.get_iter(B)) + i.to(fx.Int64) * 4
        for number in fx.range_constexpr(1, 4):
            fx.inline_asm(
                "global_store_dword $0, $1, off\ns_waitcnt vmcnt(0)",
                "v,v,~{memory}",
                place,
                i * number,
            )
        A[i] = B[i].to(fx.Uint64)

    run(body, x, y, block=64, target="gfx942")
    np.testing.assert_array_equal(x, np.arange(64) * 3)


def test_an_unused_result_is_removed_unless_it_has_side_effects():
    def assembly(side_effects):
        def body(A):
            fx.inline_asm("s_sleep 3", "=s", results=fx.Int32, side_effects=side_effects)
            A[0] = 1

        return one.compile(np.zeros(1, "i4"), body, 1, target="gfx942").ir("asm")

    assert "s_sleep 3" in assembly(True)
    assert "s_sleep" not in assembly(False)


@pytest.mark.parametrize(
    ("text", "constraints", "message"),
    [
        ("v_nonsense $0, $1", "=v,v", "invalid instruction: v_nonsense v"),
        ("v_mov_b32 $0, $1", "=q,v", "couldn't allocate output register for constraint 'q'"),
        ("v_mov_b32 $0, $1", "=v,{v999}", "couldn't allocate input reg for constraint '{v999}'"),
    ],
)
def test_errors_of_code_generation_name_the_line(text, constraints, message):
    x = np.zeros(64, "i4")

    def body(A):
        i = fx.thread_idx.x
        fx.inline_asm("s_nop 0", "")
        A[i] = fx.inline_asm(text, constraints, A[i], results=fx.Int32)  # refused

    place = f"test_inline_asm.py:{line_of('# ' + 'refused')}:[0-9]+: in inline assembly: "
    with pytest.raises(InputError, match=place + re.escape(message)):
        run(body, x, block=64, target="gfx942")


def bits(A, B):
    i = fx.thread_idx.x
    text = "{ .reg .u32 t; add.u32 t, $1, 5; popc.b32 $0, t; }"
    B[i] = fx.inline_asm(text, "=r,r", A[i], results=fx.Uint32)


def test_ptx():
    x = np.zeros(64, "u4")
    compiled = two.compile(x, x, bits, 64, target="sm_90a")
    assert "POPC" in compiled.ir("asm")


def test_the_device_cpu_refuses_it():
    x = np.zeros(64, "u4")
    with pytest.raises(InputError) as caught:
        run(bits, x, x.copy(), block=64, target="sm_90a")
    assert "two_kernel has inline assembly, which can't run on the host: '{ .reg" in str(
        caught.value
    )
