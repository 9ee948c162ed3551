"""gfx1250's asynchronous copies between memory and LDS, and its transposed loads, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.copies import LDS_BYTES, fill_lds, run, store_lds

BYTES = 1 << 12
LANES = np.arange(32)
MASKED = 0x7FFFFFFF  # the address in LDS of a lane that takes no part


def arrays(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, n, np.uint8) for n in (BYTES, LDS_BYTES)]


def addresses(rng: np.random.Generator, size: int, limit: int) -> np.ndarray:
    return (rng.permutation(limit // 16)[:32] * 16 + rng.integers(0, 2) * size % 16).astype(
        np.uint32
    )


SETUP = """
  global_load_b32 v1, v250, s[10:11]
  global_load_b32 v2, v250, s[10:11] offset:128
  s_wait_loadcnt 0x0
"""


@pytest.mark.parametrize("offset", [0, 16])
@pytest.mark.parametrize("family", ["global", "cluster"])
@pytest.mark.parametrize("bits", [8, 32, 64, 128])
def test_loads_to_lds(bits: int, family: str, offset: int) -> None:
    """The constant offset is added to both addresses. One lane is masked, some are inactive."""
    size, rng = bits // 8, np.random.default_rng(bits)
    memory, lds = arrays(bits)
    places = np.stack([addresses(rng, size, BYTES // 2), addresses(rng, size, LDS_BYTES // 2)])
    places[1, 5] = MASKED
    places[0, 5] = 1 << 30  # is not read
    wanted = lds.copy()
    for lane in LANES:
        if lane != 5 and lane % 3:
            source, target = (int(n) + offset for n in places[:, lane])
            wanted[target : target + size] = memory[source : source + size]
    extra = " th:TH_LOAD_NT" if family == "global" else ""
    scope = "" if family == "global" else " scope:SCOPE_SE"
    mask = sum(1 << int(lane) for lane in LANES if lane % 3)
    after = f" offset:{offset}" if offset else ""
    body = f"""{SETUP}{fill_lds("s[6:7]")}
  s_mov_b32 exec_lo, {mask:#x}
  s_mov_b32 m0, 0
  {family}_load_async_to_lds_b{bits} v2, v1, s[4:5]{after}{extra}{scope}
  s_wait_asynccnt 0x0
  s_mov_b32 exec_lo, -1
{store_lds("s[8:9]")}"""
    got = np.zeros(LDS_BYTES, np.uint8)
    run(body, [memory, lds, got, places])
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("offset", [0, 16])
@pytest.mark.parametrize("bits", [8, 32, 64, 128])
def test_stores_from_lds(bits: int, offset: int) -> None:
    size, rng = bits // 8, np.random.default_rng(bits)
    memory, lds = arrays(bits)
    places = np.stack([addresses(rng, size, BYTES // 2), addresses(rng, size, LDS_BYTES // 2)])
    wanted = memory.copy()
    for lane in LANES[LANES % 3 > 0]:
        target, source = (int(n) + offset for n in places[:, lane])
        wanted[target : target + size] = lds[source : source + size]
    mask = sum(1 << int(lane) for lane in LANES if lane % 3)
    after = f" offset:{offset}" if offset else ""
    body = f"""{SETUP}{fill_lds("s[6:7]")}
  s_mov_b32 exec_lo, {mask:#x}
  global_store_async_from_lds_b{bits} v1, v2, s[4:5]{after}
  s_wait_asynccnt 0x0"""
    run(body, [memory, lds, np.zeros(16, np.uint8), places])
    assert np.array_equal(memory, wanted)


def codes(raw: np.ndarray, bits: int) -> np.ndarray:
    """[row, bytes] → [row, element]."""
    unpacked = np.unpackbits(raw, axis=1, bitorder="little")
    shape = (len(raw), -1, bits)
    return unpacked.reshape(shape) @ (1 << np.arange(bits))


# What a wave wants: with the rows of a matrix in memory, WMMA's columns. The number of rows of a
# tile that lanes load together, and of elements of such a row.
def transposed(elements: np.ndarray, bits: int) -> np.ndarray:
    """Elements [lane, number] as loaded → as the instruction returns them."""
    count = elements.shape[1]
    if bits == 16:  # tiles of 8 × 8
        return elements.reshape(4, 8, 8).swapaxes(1, 2).reshape(32, 8)
    if bits == 8:  # tiles of 8 columns and 16 rows: rows 4m to 4m + 3 go to one half of the lanes
        tiles = elements.reshape(2, 2, 2, 4, 8)  # 16 lanes: element's upper half, lane's, row
        return tiles.transpose(0, 2, 4, 1, 3).reshape(32, 8)
    # All lanes: 16 columns and 32 rows.
    inner = 4 if bits == 6 else 8
    tiles = elements.reshape(32 // inner // 2, 2, inner, 16)
    return tiles.transpose(1, 3, 0, 2).reshape(32, count)


FORMS = [(16, 128), (8, 64), (6, 96), (4, 64)]


@pytest.mark.parametrize("space", ["ds", "global"])
@pytest.mark.parametrize(("bits", "size"), FORMS)
def test_transposed_loads(bits: int, size: int, space: str) -> None:
    rng = np.random.default_rng(bits)
    memory, lds = arrays(bits)
    data = lds if space == "ds" else memory
    places = np.stack([rng.permutation(len(data) // 2 // 16)[:32] * 16] * 2).astype(np.uint32)
    rows = np.stack([data[16 + int(at) : 16 + int(at) + size // 8] for at in places[0]])
    registers = size // 32
    target = f"v[8:{7 + registers}]"
    read = (
        f"ds_load_tr{bits}_b{size} {target}, v1 offset:16"
        if space == "ds"
        else f"global_load_tr{bits}_b{size} {target}, v1, s[4:5] offset:16"
    )
    stores = "\n".join(
        f"  global_store_b32 v250, v{8 + n}, s[8:9] offset:{128 * n}" for n in range(registers)
    )
    body = (
        f"{SETUP}{fill_lds('s[6:7]')}\n  {read}\n  s_wait_dscnt 0x0\n  s_wait_loadcnt 0x0\n{stores}"
    )
    got = np.zeros((registers, 32), np.uint32)
    run(body, [memory, lds, got, places])
    found = codes(np.ascontiguousarray(got.T).view(np.uint8), bits)
    assert np.array_equal(found, transposed(codes(rows, bits), bits))


# Lanes with a bit clear are inactive; all lanes that a lane gets elements of are active or none is,
# where a tile has fewer than 32 lanes.
GROUPS = {16: 0xFF00FF00, 8: 0xFFFF0000}


@pytest.mark.parametrize("space", ["ds", "global"])
@pytest.mark.parametrize(("bits", "size"), FORMS)
def test_transposed_loads_of_some_lanes(bits: int, size: int, space: str) -> None:
    """An inactive lane keeps its registers, and does not access memory. What lanes get whose tile
    has inactive lanes is not specified; the others get what they would."""
    rng = np.random.default_rng(bits)
    memory, lds = arrays(bits)
    data = lds if space == "ds" else memory
    mask = GROUPS.get(bits, 0xFFFFFFF7)
    active = mask >> LANES & 1 != 0
    places = np.stack([rng.permutation(len(data) // 2 // 16)[:32] * 16] * 2).astype(np.uint32)
    places[:, ~active] = 1 << 30
    registers = size // 32
    target, where = f"v[8:{7 + registers}]", "v1" if space == "ds" else "v1, s[4:5]"
    old = "".join(f"  v_add_nc_u32 v{8 + n}, {n + 1}, v250\n" for n in range(registers))
    stores = "\n".join(
        f"  global_store_b32 v250, v{8 + n}, s[8:9] offset:{128 * n}" for n in range(registers)
    )
    body = f"""{SETUP}{fill_lds("s[6:7]")}
{old}  s_mov_b32 exec_lo, {mask:#x}
  {space}_load_tr{bits}_b{size} {target}, {where}
  s_wait_dscnt 0x0
  s_wait_loadcnt 0x0
  s_mov_b32 exec_lo, -1
{stores}"""
    got = np.zeros((registers, 32), np.uint32)
    run(body, [memory, lds, got, places])
    kept = 4 * LANES[None] + np.arange(1, registers + 1)[:, None]  # v250 has 4 times the lane
    assert np.array_equal(got[:, ~active], kept[:, ~active])
    assert not (got[:, active] == kept[:, active]).all(axis=0).any()
    if bits in GROUPS:
        safe = np.where(active, places[0], 0)
        rows = np.stack([data[int(at) : int(at) + size // 8] for at in safe])
        found = codes(np.ascontiguousarray(got.T).view(np.uint8), bits)
        assert np.array_equal(found[active], transposed(codes(rows, bits), bits)[active])


@pytest.mark.parametrize("name", ["cluster_load", "global_load_monitor", "flat_load_monitor"])
@pytest.mark.parametrize("bits", [32, 64, 128])
def test_other_loads(name: str, bits: int) -> None:
    """They load as plain loads do."""
    memory, _ = arrays(3)
    registers = bits // 32
    stores = "\n".join(
        f"  global_store_b32 v250, v{8 + n}, s[8:9] offset:{128 * n}" for n in range(registers)
    )
    target = f"v[8:{7 + registers}]" if registers > 1 else "v8"
    address = "v1, s[4:5] offset:4"
    before = "  v_lshlrev_b32 v1, 2, v250\n"
    if name.startswith("flat"):
        before += "  v_mov_b32 v3, s5\n  v_add_co_u32 v2, vcc_lo, s4, v1\n"
        before += "  v_add_co_ci_u32 v3, vcc_lo, 0, v3, vcc_lo\n"
        address = "v[2:3] offset:4"
    scope = " scope:SCOPE_SE" if name == "cluster_load" else ""
    read = f"  {name}_b{bits} {target}, {address}{scope}"
    got = np.zeros((registers, 32), np.uint32)
    wait = "  s_wait_loadcnt_dscnt 0x0\n"
    run(f"{before}{read}\n{wait}{stores}", [memory, memory.copy(), got, memory.copy()])
    wanted = [memory[4 + 16 * lane : 4 + 16 * lane + bits // 8].view(np.uint32) for lane in LANES]
    assert np.array_equal(got.T, np.array(wanted))
