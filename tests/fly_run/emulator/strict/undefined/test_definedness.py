"""How undefined bits spread (`--strict`): every operation has a rule, the rules miss nothing, what
is told names the register that was never written."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from emulator_support import frame
from emulator_support.engine import TARGETS, assemble, compile_opencl, launch
from emulator_support.rows import KERNEL
from fly_common.errors import Fault
from fly_run.emulator.semantics import table
from fly_run.emulator.semantics.base.access import Access, Atomic
from fly_run.emulator.strict.dataflow import MATRIX_FORMS
from fly_run.emulator.strict.undefined import definedness_rules
from fly_run.emulator.strict.undefined.definedness import ones
from fly_run.emulator.strict.undefined.undefined_moves import move_of
from oracle.scalar import salu
from oracle.state.waves import DTYPES
from oracle.vector import valu

LANES, COMPLETIONS = 64, 24
# Steps within a matrix instruction, which is one step here; measures; what lanes exchange.
ASIDE = re.compile(r"fly_(matrix|unpack|measure|transpose)_.*|fly_(count|watch)")


def test_every_operation_has_a_rule() -> None:
    operations = [
        operation
        for operation in table.operations().values()
        if operation.form not in (*MATRIX_FORMS, "flow", "smem", "nothing")
        and not isinstance(operation.detail, Access | Atomic)
        and not ASIDE.fullmatch(operation.mnemonic)
    ]
    names = {operation.mnemonic for operation in operations}
    assert len(names) > 700
    assert not [n for n in sorted(names) if not (definedness_rules.known(n) or move_of(n))]


def samples(
    kinds: tuple[str, ...], chosen: tuple[int, ...], random: np.random.Generator
) -> tuple[list, list]:
    """Values of each lane, and which of their bits are undefined: few, many or none,
    and only of the sources that are `chosen`."""
    values, unknown = [], []
    for number, kind in enumerate(kinds):
        width = int(kind[1:])
        value = random.integers(0, 1 << 64, LANES, np.uint64) & ones(width)
        # Amounts, fields and selectors are small numbers as often as not.
        small = random.random(LANES) < 0.5
        value = np.where(small, value & np.uint64(0x0000_001F_001F), value) & ones(width)
        mask = np.zeros(LANES, np.uint64)
        for bit in range(width):
            chance = random.choice((0.02, 0.5), LANES)
            mask |= (random.random(LANES) < chance).astype(np.uint64) << np.uint64(bit)
        mask[random.random(LANES) < 0.3] = 0
        if number not in chosen:
            mask[:] = 0
        values.append(value)
        unknown.append(mask)
    return values, unknown


def subsets(count: int) -> list[tuple[int, ...]]:
    """Each source alone, and all."""
    return [*((number,) for number in range(count)), tuple(range(count))]


def typed(values: np.ndarray, kind: str) -> np.ndarray:
    width = int(kind[1:])
    return values.astype(f"u{width // 8}").view(DTYPES[kind])[None, :]


INTEGERS = {
    name: op
    for name, op in valu.VALU.items()
    if not any(kind[0] == "f" for kind in (op.result, *op.sources))
    and not op.ieee
    and table.operations_of("gfx942").get(name)
}


@pytest.mark.parametrize("name", sorted(INTEGERS))
def test_vector_rules_miss_nothing(name: str) -> None:
    op = INTEGERS[name]
    width = int(op.result[1:])
    random = np.random.default_rng(len(name))
    for chosen in subsets(len(op.sources)):
        values, unknown = samples(op.sources, chosen, random)
        changed = np.zeros(LANES, np.uint64)
        first = None
        for _ in range(COMPLETIONS):
            noise = [random.integers(0, 1 << 64, LANES, np.uint64) & mask for mask in unknown]
            sources = zip(values, unknown, noise, op.sources, strict=True)
            filled = [typed(v & ~m | n, kind) for v, m, n, kind in sources]
            result = np.broadcast_to(op.function(*filled), (1, LANES)).astype(DTYPES[op.result])
            bits = np.ascontiguousarray(result).view(f"u{width // 8}")[0].astype(np.uint64)
            first = bits if first is None else first
            changed |= bits ^ first
        rule = definedness_rules.rule_of(name)
        known = [np.where(m == 0, v, v & ~m) for v, m in zip(values, unknown, strict=True)]
        shadow = np.broadcast_to(rule(unknown, known, width), (LANES,)) & ones(width)
        missed = changed & ~shadow
        lane = int(np.argmax(missed != 0))
        assert not missed.any(), [hex(int(x[lane])) for x in (*values, *unknown, changed, shadow)]


SCALARS = {
    **{name: ((bits,), function) for name, (bits, function) in salu.SOP1.items()},
    **{name: ((a, b), function) for name, (a, b, function) in salu.SOP2.items()},
}


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_scalar_rules_miss_nothing(name: str) -> None:
    """Of SCC where it tells whether the result is zero: undefined only if the result is."""
    widths, function = SCALARS[name]
    operation = table.operations_of("gfx942")[name]
    width = {"i32": 32, "i64": 64}[operation.outputs[0]]
    random = np.random.default_rng(len(name))
    kinds = tuple(f"u{bits}" for bits in widths)
    values, unknown = samples(kinds, (), random)
    for chosen, lane in product(subsets(len(kinds)), range(LANES)):
        if lane == 0:
            values, unknown = samples(kinds, chosen, random)
        # One wave at a time: its completions are lanes here.
        noise = [
            random.integers(0, 1 << 64, COMPLETIONS, np.uint64) & mask[lane] for mask in unknown
        ]
        sources = zip(values, unknown, noise, widths, strict=True)
        filled = [(v[lane] & ~m[lane] | n).astype(f"u{bits // 8}") for v, m, n, bits in sources]
        with np.errstate(over="ignore"):
            result, scc = function(*filled)
        bits = result.astype(np.uint64)
        changed = np.bitwise_or.reduce(bits ^ bits[0])
        known = [v[lane : lane + 1] & ~m[lane] for v, m in zip(values, unknown, strict=True)]
        rule = definedness_rules.rule_of(name)
        shadow = int(np.asarray(rule([m[lane : lane + 1] for m in unknown], known, width))[0])
        told = [hex(int(x[lane])) for x in (*values, *unknown)]
        assert int(changed) & ~shadow == 0, (told, hex(int(changed)), hex(shadow))
        if scc is not None and definedness_rules.NONZERO.fullmatch(name) and shadow == 0:
            assert (scc == scc[0]).all(), told


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_field_of_a_half_written_pair(target: str, level: str) -> None:
    """LLVM extends the sign by s_bfe_i64, of a pair whose upper register nobody wrote."""
    source = "kernel void k(global long *o, short s) { o[TID] = (long)s + o[64]; }"
    o = np.zeros(65, np.int64)
    launch(compile_opencl(source, target, level), [o, np.int16(-3)], 1, 64, strict=True)
    assert (o[:64] == -3).all()


@pytest.mark.parametrize("target", TARGETS)
def test_a_register_spilled_to_private_memory_is_named(target: str) -> None:
    source = """kernel void k(global int *o) {
        int v; __asm__ volatile("" : "={v40}"(v)); o[TID] = v; }"""
    code = compile_opencl(source, target, "-O0")
    with pytest.raises(Fault, match="`v40`, which was never written, determines a stored value"):
        launch(code, [np.zeros(64, "i4")], strict=True)


def run(body: str, **options: object) -> None:
    text = f"s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_lshlrev_b32 v20, 2, v0\n{body}\ns_endpgm"
    text = KERNEL.format(body=text, target="gfx942", vgprs=32, more="")
    launch(assemble(text, "gfx942"), [np.zeros(64, "i4")], strict=True, lds=1024)


STORE = "s_waitcnt lgkmcnt(0)\nglobal_store_dword v20, v1, s[2:3]\n"


@pytest.mark.parametrize(
    ("body", "register", "lane"),
    [
        ("v_mov_b32 v1, v5", "v5", 0),
        ("v_mov_b32 v2, s9\nv_mov_b32 v1, v2", "s9", 0),
        ("v_mov_b32 v1, v5\nv_add_u32 v1, v1, v20", "v5", 0),
        # Each lane has its own.
        (
            "v_mov_b32 v1, 0\ns_mov_b32 exec_lo, 0\nv_mov_b32 v1, v6\ns_mov_b32 exec_lo, -1",
            "v6",
            32,
        ),
        # Of two sources only one is chosen, or has bits that count.
        ("s_mov_b64 vcc, -1\nv_cndmask_b32 v1, v5, v6, vcc", "v6", 0),
        ("v_and_b32 v2, 0, v5\nv_or_b32 v1, v2, v6", "v6", 0),
        ("v_mov_b32 v2, 0xff00\nv_bfi_b32 v2, v2, v20, v5\nv_lshlrev_b32 v1, 24, v2", "v5", 0),
        ("v_readlane_b32 s9, v5, 3\nv_mov_b32 v1, s9", "v5", 0),
        ("v_mov_b32_dpp v1, v5 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0", "v5", 1),
        # Through LDS and back.
        ("ds_write_b32 v20, v5\nds_read_b32 v1, v20", "v5", 0),
        ("ds_write_b16 v20, v5\nds_read_u16 v1, v20", "v5", 0),
        (
            "v_lshlrev_b32 v22, 3, v0\nds_write_b64 v22, v[20:21]\n"
            "ds_read2_b32 v[2:3], v22 offset1:1\ns_waitcnt lgkmcnt(0)\n"
            "s_mov_b64 exec, 2\nv_mov_b32 v1, v3\n",
            "v21",
            1,
        ),
        ("v_mov_b32_sdwa v1, v5 dst_sel:WORD_0 dst_unused:UNUSED_PAD src0_sel:WORD_0", "v5", 0),
    ],
)
def test_the_register_that_was_never_written_is_named(body: str, register: str, lane: int) -> None:
    with pytest.raises(Fault) as caught:
        run(f"{body}\n{STORE}")
    told = f"`{register}`, which was never written, determines a stored value of lane {lane};"
    assert told in caught.value.message


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201", "gfx1250"])
@pytest.mark.parametrize(
    "control",
    ["row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", "dpp8:[7,0,1,2,3,4,5,6]"],
)
def test_dpp_with_fi_reads_undefined_values_of_lanes_that_are_off(
    target: str, control: str
) -> None:
    """Lanes 0, 2, … of v2 are defined; only the others, which read those, are stored to."""
    body = f"""s_load_b64 s[2:3], s[0:1], 0x0
        v_and_b32 v20, 0x3ff, v0
        v_lshlrev_b32 v20, 2, v20
        s_mov_b32 exec_lo, 0x55555555
        v_mov_b32 v2, 7
        s_mov_b32 exec_lo, 0xaaaaaaaa
        v_mov_b32_dpp v1, v{{}} {control}{{}}
        {"s_waitcnt lgkmcnt(0)" if target == "gfx1100" else "s_wait_kmcnt 0"}
        global_store_b32 v20, v1, s[2:3]
        s_endpgm"""

    def stored(register: int, more: str) -> list[int]:
        text = frame.kernel(target, body.format(register, more), vgprs=32)
        output = np.zeros(32, "i4")
        launch(assemble(text, target), [output], 1, 32, strict=True)
        return list(output[:4])

    assert stored(2, " fi:1") == [0, 7, 0, 7]
    assert stored(5, "") == [0] * 4  # zero is read in place of a lane that is off
    told = "`v5`, which was never written, determines a stored value of lane 1;"
    with pytest.raises(Fault, match=re.escape(told)):
        stored(5, " fi:1")
