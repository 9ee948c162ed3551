"""8-, 6- and 4-bit floats: conversions against all numbers of a format, found by its definition.

The numbers of a format come from the OCP specifications (and for gfx942 from the FNUZ variants):
sign, exponent, mantissa. Rounding is looked for among them, not computed.
"""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.rows import LANES, run

# exponent bits, mantissa bits, bias, how many of the greatest codes are no finite number, and what
# is too large ("nan", "inf" or "max")
FORMATS = {
    ("gfx942", "fp8"): (4, 3, 8, 0, "nan"),
    ("gfx942", "bf8"): (5, 2, 16, 0, "nan"),
    ("gfx950", "fp8"): (4, 3, 7, 1, "nan"),
    ("gfx950", "bf8"): (5, 2, 15, 4, "inf"),
    ("gfx950", "fp6"): (2, 3, 1, 0, "max"),
    ("gfx950", "bf6"): (3, 2, 3, 0, "max"),
    ("gfx950", "fp4"): (2, 1, 1, 0, "max"),
}
BYTES = [key for key in FORMATS if key[1] in ("fp8", "bf8")]


def numbers(key: tuple[str, str]) -> list[float]:
    """The finite numbers that are not negative, by code."""
    exponent, mantissa, bias, special, _ = FORMATS[key]
    found = []
    for code in range((1 << exponent + mantissa) - special):
        field, fraction = code >> mantissa, code & (1 << mantissa) - 1
        if field:
            found.append((1 + fraction / 2**mantissa) * 2.0 ** (field - bias))
        else:
            found.append(fraction / 2**mantissa * 2.0 ** (1 - bias))
    return found


def nearest(key: tuple[str, str], value: float) -> int | str:
    """The code of a finite value, or "over"; ties go to the even code."""
    table = numbers(key)
    step = table[-1] - table[-2]
    size = abs(value)
    # Halfway to what would be the next number is too large, unless the tie goes down.
    even_last = (len(table) - 1) % 2 == 0
    over = table[-1] + step / 2
    if size > over or (size == over and not even_last):
        code: int | str = len(table) - 1 if FORMATS[key][4] == "max" else "over"
    else:
        code = min(range(len(table)), key=lambda c: (abs(table[c] - size), c % 2))
    width = 1 + FORMATS[key][0] + FORMATS[key][1]
    if isinstance(code, int) and np.signbit(value) and not (key[0] == "gfx942" and code == 0):
        code |= 1 << width - 1
    return code


def samples(key: tuple[str, str]) -> np.ndarray:
    """64 values: numbers of the format, ties, and their neighbours in f32."""
    table = np.array(numbers(key), np.float32)
    generator = np.random.default_rng(1)
    places = generator.integers(0, len(table) - 1, 20)
    ties = (table[places] + table[places + 1]) / 2
    beyond = np.float32(table[-1] + (table[-1] - table[-2]) / 2)
    edges = [0.0, -0.0, beyond, np.nextafter(beyond, np.float32(0)), table[1] / 2, -table[1] / 2]
    edges += [table[-1], -table[-1], 1e30, 1e-40]
    near = [np.nextafter(ties[:10], np.float32(0)), np.nextafter(ties[:10], np.float32(np.inf))]
    values = np.concatenate([table[places[:10]], ties, *near, np.array(edges, np.float32)])
    signs = np.where(generator.integers(0, 2, len(values)), 1, -1).astype(np.float32)
    return np.resize((values * signs).astype(np.float32), LANES)


def expected(key: tuple[str, str], value: float) -> int:
    code = nearest(key, value)
    if isinstance(code, int):
        return code
    if key[0] == "gfx942":
        return 0x80
    return {"fp8": 0x7F, "bf8": 0x7C}[key[1]] | (0x80 if value < 0 else 0)


@pytest.mark.parametrize("key", BYTES, ids=lambda key: "-".join(key))
def test_all_codes_are_read(key):
    target, name = key
    table = numbers(key)
    for first in range(0, 256, LANES):
        codes = np.arange(first, first + LANES, dtype=np.uint32)
        found = run(target, f"v_cvt_f32_{name} v40, v1", codes)[0].view(np.float32)
        for code, value in zip(codes, found, strict=True):
            place = int(code) & 0x7F
            if (target == "gfx942" and code == 0x80) or place >= len(table):
                infinite = name == "bf8" and place == 0x7C and target == "gfx950"
                assert np.isinf(value) if infinite else np.isnan(value)
            else:
                wanted = -table[place] if code & 0x80 else table[place]
                assert value == wanted, hex(code)
                assert np.signbit(value) == bool(code & 0x80)


@pytest.mark.parametrize("key", BYTES, ids=lambda key: "-".join(key))
def test_two_values_become_bytes_of_one_half(key):
    target, name = key
    a = samples(key)
    b = a[::-1].copy()
    low, high = run(
        target,
        f"v_cvt_pk_{name}_f32 v40, v1, v2\nv_cvt_pk_{name}_f32 v41, v1, -v2 op_sel:[0,0,1]",
        a,
        b,
        outputs=2,
    )
    for lane in range(LANES):
        x, y = expected(key, float(a[lane])), expected(key, float(b[lane]))
        assert int(low[lane]) == 0x1111_0000 | y << 8 | x, (a[lane], b[lane])
        y = expected(key, -float(b[lane]))
        assert int(high[lane]) == (y << 8 | x) << 16 | 0x1111


@pytest.mark.parametrize("key", BYTES, ids=lambda key: "-".join(key))
def test_selects_pick_the_byte_or_half(key):
    target, name = key
    table = numbers(key)
    word = np.full(LANES, 0x0A_21_13_38, np.uint32)
    body = f"v_cvt_f32_{name}_sdwa v40, v1 src0_sel:BYTE_2\n"
    body += f"v_cvt_pk_f32_{name}_sdwa v[42:43], v1 src0_sel:WORD_1\n"
    body += f"v_cvt_pk_f32_{name} v[44:45], v1"
    found = run(target, body, word, outputs=6).view(np.float32)[:, 0]
    wanted = {0: 0x21, 2: 0x21, 3: 0x0A, 4: 0x38, 5: 0x13}
    assert {n: float(found[n]) for n in wanted} == {n: table[c] for n, c in wanted.items()}


@pytest.mark.parametrize("key", BYTES, ids=lambda key: "-".join(key))
def test_stochastic_rounding_goes_to_a_neighbour_as_often_as_the_value_is_near(key):
    target, name = key
    table = numbers(key)
    place = 20
    value = table[place] + (table[place + 1] - table[place]) * 0.25
    noise = (np.arange(LANES, dtype=np.uint64) << 26).astype(np.uint32)
    body = f"v_cvt_sr_{name}_f32 v40, v1, v2 op_sel:[0,0,1,1]"
    found = run(target, body, np.full(LANES, value, np.float32), noise)[0]
    assert {int(word) & 0xFFFFFF for word in found} == {0x111111}
    up = [int(word) >> 24 for word in found].count(place + 1)
    down = [int(word) >> 24 for word in found].count(place)
    assert (up, down) == (LANES // 4, 3 * LANES // 4)


@pytest.mark.parametrize(
    "key", [key for key in FORMATS if key[0] == "gfx950"], ids=lambda key: key[1]
)
@pytest.mark.parametrize("power", [0, 3, -2])
def test_scaled_conversions_divide_and_multiply_by_the_exponent_of_the_scale(key, power):
    _, name = key
    a = samples(key)
    # Only the exponent of a scale counts.
    scale = np.full(LANES, 1.5 * 2.0**power, np.float32)
    values = (a * np.float32(2.0**power)).astype(np.float32)
    if name in ("fp6", "bf6"):
        body = "\n".join(f"v_mov_b32 v{n}, v1" for n in range(64, 96))
        body += f"\nv_cvt_scalef32_2xpk16_{name}_f32 v[40:45], v[64:79], v[80:95], v2"
        body += f"\nv_cvt_scalef32_pk32_f32_{name} v[96:127], v[40:45], v2"
        body += "\nv_mov_b32 v46, v127"
        words = run("gfx950", body, values, scale, outputs=7, vgprs=128)
        codes = [int(word) & 63 for word in words[0]]
        last = [int(word) >> 26 for word in words[5]]
        assert codes == last
        back = words[6].view(np.float32)
    elif name == "fp4":
        body = "v_cvt_scalef32_pk_fp4_f32 v40, v1, v1, v2 op_sel:[0,0,1,1]\n"
        body += "v_cvt_scalef32_pk_f32_fp4 v[42:43], v40, v2 op_sel:[1,1,0]"
        words = run("gfx950", body, values, scale, outputs=4)
        codes = [int(word) >> 28 for word in words[0]]
        assert codes == [int(word) >> 24 & 15 for word in words[0]]
        assert {int(word) & 0xFFFFFF for word in words[0]} == {0x111111}
        back = words[3].view(np.float32)
    else:
        body = f"v_cvt_scalef32_pk_{name}_f32 v40, v1, v1, v2 op_sel:[0,0,0,1]\n"
        body += f"v_cvt_scalef32_f32_{name} v41, v40, v2 op_sel:[1,1,0]"
        words = run("gfx950", body, values, scale, outputs=2)
        codes = [int(word) >> 24 for word in words[0]]
        assert {int(word) & 0xFFFF for word in words[0]} == {0x1111}
        back = words[1].view(np.float32)
    table, width = numbers(key), 1 + FORMATS[key][0] + FORMATS[key][1]
    for lane in range(LANES):
        assert codes[lane] == expected(key, float(a[lane])), a[lane]
        place = codes[lane] & (1 << width - 1) - 1
        if place < len(table):
            sign = -1 if codes[lane] >> width - 1 else 1
            assert back[lane] == np.float32(sign * table[place] * 2.0**power)
