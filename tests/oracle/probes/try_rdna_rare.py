"""Probes of what gfx11 and gfx12 have besides arithmetic: relative register numbers, addresses of
the lane's number, blocks of registers, exchanges of two places in LDS."""

from __future__ import annotations

from oracle.probes.loaded import ALL, FOLD, SOME
from oracle.probes.probe import Probe
from oracle.probes.try_rare import _lds, _probe

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
# Registers without a use of their own in the frame, eight for relative numbers, 32 for blocks.
FIRST, COUNT = 40, 8
BLOCK = 56
IGNORED = 0xFC00FC00  # bits of M0 outside both indices
MOVES = (
    "row_shl:3 row_mask:0xf bank_mask:0xf",
    "row_ror:5 row_mask:0x1 bank_mask:0x7 bound_ctrl:1",
    "row_shr:2 row_mask:0xf bank_mask:0xf fi:1",
    "dpp8:[7,0,6,1,5,2,4,3]",
)


def rare(target: str) -> list[Probe]:
    inherited = [p for p in _lds() if "addtid" in p.about or "wrxchg2" in p.about]
    return [*inherited, *_relative(), *_permutes(), *_by_lane(), *_blocks(target)]


def _filled(first: int, count: int) -> list[str]:
    """Different values, of all lanes, in registers of which an instruction writes some."""
    lines = (f"v_alignbit_b32 v{first + k}, v6, v7, {5 * k % 32}" for k in range(count))
    return [ALL, *lines, SOME]


def _folded(first: int, count: int) -> list[str]:
    lines = [ALL, "v_mov_b32 v8, 0", "v_mov_b32 v9, 0"]
    for k in range(count):
        register = f"v{8 + k % 2}"
        lines += [
            f"v_alignbit_b32 {register}, {register}, {register}, 5",
            f"v_xor_b32 {register}, {register}, v{first + k}",
        ]
    return lines


def _relative() -> list[Probe]:
    """The index of a wave is 0 to 3, by its own scalar operand; that of the result is another one
    for instructions with two."""
    head = [*_filled(FIRST, COUNT), "s_and_b32 s60, s24, 3"]
    one = [*head, "s_mov_b32 m0, s60"]
    two = [
        *head,
        *("s_and_b32 s61, s26, 3", "s_lshl_b32 s61, s61, 16", "s_or_b32 s60, s60, s61"),
        *(f"s_or_b32 s60, s60, {IGNORED:#x}", "s_mov_b32 m0, s60"),
    ]
    low, high = f"v{FIRST}", f"v{FIRST + 4}"
    probes = []

    def add(name: str, operands: str, before: list[str]) -> None:
        text = f"{name} {operands}"
        about = name.removesuffix("_dpp").removesuffix("_e64")
        probes.append(_probe(about, *before, text, *_folded(FIRST, COUNT), kind="32"))

    for name in ("v_movrels_b32", "v_movreld_b32", "v_movrelsd_b32"):
        sources = (high, "s26", "-3") if name == "v_movreld_b32" else (high,)
        for suffix in ("_e32", "_e64"):
            for source in sources:
                add(f"{name}{suffix}", f"{low}, {source}", one)
        for move in MOVES:
            add(f"{name}_dpp", f"{low}, {high} {move}", one)
            add(f"{name}_e64_dpp", f"{low}, {high} {move}", one)
    for suffix in ("_e32", "_e64"):
        add(f"v_movrelsd_2_b32{suffix}", f"{low}, {high}", two)
        add(f"v_movrelsd_2_b32{suffix}", f"{low}, {low}", two)
    for move in MOVES:
        add("v_movrelsd_2_b32_dpp", f"{low}, {high} {move}", two)
    # Operands that overlap for some indices, and the same register twice.
    for second in (high, f"v{FIRST + 1}", low):
        add("v_swaprel_b32", f"{low}, {second}", two)
    # Of scalar registers: s16 is the result, s24 to s27 are operands.
    for result, source, m0 in (
        ("s12", "s22", 4 << 16 | 2),
        ("s16", "s27", 0),
        ("s0", "s25", 1 << 20),
    ):
        lines = (f"s_mov_b32 m0, {m0 | IGNORED:#x}", f"s_movrelsd_2_b32 {result}, {source}")
        probes.append(_probe("s_movrelsd_2_b32", *lines, kind="32", scalar=True))
    return probes


def _permutes() -> list[Probe]:
    return [
        _probe("ds_bpermute_fi_b32", f"ds_bpermute_fi_b32 v8, v2, v4{offset}", WAIT, kind="32")
        for offset in ("", " offset:12")
    ]


def _wave(register: str, pair: tuple[str, str]) -> tuple[str, ...]:
    """Sets s[36:37] to the address of the wave's first record or operands."""
    low, high = pair
    return (
        *(ALL, f"v_readfirstlane_b32 s36, {register}"),
        *(f"s_add_u32 s36, {low}, s36", f"s_addc_u32 s37, {high}, 0", SOME),
    )


def _by_lane() -> list[Probe]:
    probes = []
    for offset in (0, 8, 64):
        name = "global_load_addtid_b32"
        head = (*_wave("v13", ("s4", "s5")), "s_sub_u32 s36, s36, 8", "s_subb_u32 s37, s37, 0")
        head = _wave("v13", ("s4", "s5")) if offset != 8 else head
        load = f"{name} v8, s[36:37] offset:{offset}"
        probes.append(_probe(name, *head, load, WAIT))
        name = "global_store_addtid_b32"
        fill = (ALL, "global_store_dwordx4 v12, v[2:5], s[6:7]", WAIT)
        back = (WAIT, ALL, "global_load_dwordx4 v[30:33], v12, s[6:7]", WAIT, *FOLD)
        store = f"{name} v4, s[36:37] offset:{offset}"
        probes.append(_probe(name, *fill, *_wave("v12", ("s6", "s7")), store, *back))
    return probes


def _blocks(target: str) -> list[Probe]:
    """Loads of consecutive dwords, from 32 places that overlap between lanes; stores of up to four,
    which do not."""
    block = f"v[{BLOCK}:{BLOCK + 31}]"
    fill, fold = _filled(BLOCK, 32), _folded(BLOCK, 32)
    wave = _wave("v13", ("s4", "s5"))
    lane = (ALL, "v_lshrrev_b32 v16, 2, v14", "v_mov_b32 v17, s37", SOME)
    whole = (ALL, "v_add_co_u32 v16, vcc, s36, v16", "v_addc_co_u32 v17, vcc, 0, v17, vcc", SOME)
    probes = []
    name = "global_load_block"
    masks = (0xFFFFFFFF, 0, 1, 0x80000001, 0xA5C30F18)
    for mask in masks:
        for pair, base, more in (("v16", "s[36:37]", ()), ("v[16:17]", "off", whole)):
            text = f"{name} {block}, {pair}, {base} offset:4"
            lines = (*wave, *lane, *more, *fill, f"s_mov_b32 m0, {mask:#x}", text, WAIT, *fold)
            probes.append(_probe(name, *lines))
    # The address is in the block itself.
    text = f"{name} {block}, v{BLOCK + 6}, s[36:37]"
    own = (ALL, f"v_mov_b32 v{BLOCK + 6}, v16", SOME)
    lines = (*wave, *lane, *fill, *own, "s_mov_b32 m0, 0xfff0ffff", text, WAIT, *fold)
    probes.append(_probe(name, *lines))
    name = "global_store_block"
    before = (ALL, "global_store_dwordx4 v12, v[2:5], s[6:7]", WAIT)
    back = (WAIT, ALL, "global_load_dwordx4 v[30:33], v12, s[6:7]", WAIT, *FOLD)
    for mask, offset in ((0xD, 0), (0xF0000, -64), (0xB0000000, -112), (0, 0)):
        text = f"{name} v12, {block}, s[6:7] offset:{offset}"
        lines = (*fill, *before, SOME, f"s_mov_b32 m0, {mask:#x}", text, *back)
        probes.append(_probe(name, *lines))
    for mask, offset in ((0xA5C3, 0), (0xF0690000, -64)):
        stored = f"scratch_store_block off, {block}, off offset:{offset}"
        loaded = f"scratch_load_block {block}, v16, off offset:{offset}"
        mask_ = f"s_mov_b32 m0, {mask:#x}"
        zero = (
            ALL,
            "v_mov_b32 v16, 0",
            *(f"scratch_store_dword off, v4, off offset:{4 * k}" for k in range(16)),
        )
        other = [line for line in _filled(BLOCK, 32) if line not in (ALL, SOME)]
        read = (
            "scratch_load_dwordx4 v[30:33], off, off offset:16",
            "scratch_load_dwordx4 v[34:37], off, off offset:48",
            *(WAIT, *FOLD, "v_xor_b32 v8, v8, v34", "v_xor_b32 v9, v9, v37"),
        )
        store = (*fill, *zero, WAIT, SOME, mask_, stored, WAIT, ALL)
        probes.append(_probe("scratch_store_block", *store, *read))
        changed = (*other, f"v_not_b32 v{BLOCK + 1}, v{BLOCK + 1}", SOME)
        probes.append(_probe("scratch_load_block", *store, *changed, loaded, WAIT, *fold))
    return probes
