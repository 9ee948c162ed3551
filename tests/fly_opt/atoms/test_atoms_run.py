"""Atoms, compiled and executed on the emulator, against NumPy."""

import re
from typing import Any

import numpy as np
import pytest
from atom_kernels import (
    Held,
    encoded,
    fragment,
    held,
    matrix_kernel,
    module,
    moved,
    packed,
    places,
    threads_of,
)
from fly_dialect.atoms.amd.mfma import MFMA_FORMS, SCALED_FORMS, Mfma, MfmaScale
from fly_dialect.atoms.amd.wmma import (
    GFX120X_FORMS,
    GFX1250_FORMS,
    GFX1250_SCALED_FORMS,
    Gfx11Wmma,
    Gfx120xWmma,
    Gfx1250Wmma,
    Gfx1250WmmaScale,
)
from fly_target.registry import find

import fly


def compiled(target: str, *kernels: str) -> fly.Compiled:
    chain = fly.chain(target)
    return fly.load(fly.run(chain, module(*kernels)))


def mfma_of(target: str) -> list[Mfma]:
    return [
        Mfma(form.m, form.n, form.k, form.a, form.b, form.acc)
        for form in MFMA_FORMS
        if find(target).matrix in form.families
    ]


def scaled() -> list[MfmaScale]:
    """Each format with itself and with the next, in both shapes."""
    forms = [form for form in SCALED_FORMS if form.a == form.b]
    mixed = [form for form in SCALED_FORMS if (form.a, form.b) == ("f4E2M1FN", "f8E5M2")]
    return [MfmaScale(f.m, f.n, f.k, f.a, f.b, f.acc, runs=2) for f in (*forms, *mixed)]


def wmma11() -> list[Gfx11Wmma]:
    signs = ((False, False), (True, False), (True, True))
    integers = [
        Gfx11Wmma(16, 16, 16, element, element, "i32", *sign)
        for element in ("i8", "i4")
        for sign in signs
    ]
    return [
        Gfx11Wmma(16, 16, 16, "f16", "f16", "f32"),
        Gfx11Wmma(16, 16, 16, "bf16", "bf16", "f32"),
        *integers,
    ]


def wmma1250() -> list[Any]:
    """The forms with 32-bit results; those with scales of each format with itself, and a pair."""
    # LLVM 22 selects nothing for integers of four bits.
    plain = [f for f in GFX1250_FORMS if f.acc in ("f32", "i32") and f.a != "i4"]
    scaled_ = [
        f for f in GFX1250_SCALED_FORMS if f.a == f.b or (f.a[:2] == "f4" and f.b[:2] == "f8")
    ]
    return [
        *(Gfx1250Wmma(f.m, f.n, f.k, f.a, f.b, f.acc) for f in plain),
        *(Gfx1250WmmaScale(f.m, f.n, f.k, f.a, f.b, f.acc) for f in scaled_),
    ]


CASES = {
    "gfx90a": mfma_of("gfx90a"),
    "gfx942": mfma_of("gfx942"),
    "gfx950": [*mfma_of("gfx950"), *scaled()],
    "gfx1100": wmma11(),
    "gfx1201": [Gfx120xWmma(f.m, f.n, f.k, f.a, f.b, f.acc) for f in GFX120X_FORMS],
    "gfx1250": wmma1250(),
}


def signed(op) -> tuple[bool, bool]:
    """Whether A and B may be negative."""
    return getattr(op, "sign_a", True) or op.a[0] != "i", getattr(op, "sign_b", True) or (
        op.b[0] != "i"
    )


@pytest.mark.parametrize("target", CASES)
def test_a_matrix_instruction_multiplies(target):
    """Every form the target has: D = A·B + C, of small integers that every format holds."""
    ops = CASES[target]
    code = compiled(target, *(matrix_kernel(f"k{i}", op) for i, op in enumerate(ops)))
    random = np.random.default_rng(5)
    for number, op in enumerate(ops):
        lanes = threads_of(op)
        low_a, low_b = (-2 if may else 0 for may in signed(op))
        a = random.integers(low_a, 3, (op.m, op.k))
        b = random.integers(low_b, 3, (op.k, op.n))
        c = random.integers(-100, 100, (op.m, op.n))
        # Places count along M first, as the layouts do: A as M×K, B as N×K, C as M×N.
        whole = [
            (a.T.ravel(), op.a, op.thr_val_layout_a),
            (b.ravel(), op.b, op.thr_val_layout_b),
        ]
        given = [
            packed(encoded(matrix, element)[places(layout, lanes)], element)
            for matrix, element, layout in whole
        ]
        kind = {"i32": np.int32, "f32": np.float32, "f64": np.float64}[op.acc]
        at = places(op.thr_val_layout_c, lanes)
        start = c.T.ravel().astype(kind)[at]
        result = np.zeros_like(start)
        code.launch(f"k{number}", 1, lanes, [*given, start, result])
        expected = (a @ b + c).T.ravel()[at]
        # gfx1100's sums of floats are up to four units of 2^(6 - 26) off in each of eight steps.
        off = 32 * 2.0**-20 if target == "gfx1100" and op.acc == "f32" else 0
        np.testing.assert_allclose(result, expected, rtol=0, atol=off, err_msg=f"{target} {op}")
        assert held(op)[2].count == at.shape[1]


# -- copies ---------------------------------------------------------------------------------------
F32x2 = Held("f32", 2)
BUFFER = "#fly_rocdl.buffer_desc"


def buffered(name: str, part: Held, size: int) -> list[str]:
    """`%v…`, this thread's part of memory `%…` behind a descriptor of `size` bytes, whose flags
    are the target's."""
    element, count = part.element, part.count
    pointer = f"!fly.ptr<{element}, {BUFFER}>"
    layout = f"!fly.layout<{count}:1>"
    return [
        f"%stride{name} = arith.constant 0 : i16",
        f"%size{name} = arith.constant {size} : i64",
        f"%d{name} = fly.make_ptr(%b{name}, %stride{name}, %size{name}) : "
        f"(!fly.ptr<{element}, global>, i16, i64) -> {pointer}",
        f"%e{name} = fly.add_offset(%d{name}, %i{name}) : ({pointer}, !fly.int_tuple<?>) "
        f"-> {pointer}",
        f"%v{name} = fly.make_view(%e{name}, %l{name}) : ({pointer}, {layout}) -> "
        f"!fly.memref<{element}, {BUFFER}, {count}:1>",
    ]


def call(atom: str, bits: int, operands: str, *types: str, state: str = "") -> list[str]:
    """A copy by an atom, whose state may have one field set to `%two`."""
    atom_type = f"!fly.copy_atom<{atom}, {bits}>"
    made = "%atom_" + re.sub(r"\W+", "_", operands)
    lines = [f"{made} = fly.make_copy_atom {{valBits = {bits} : i32}} : {atom_type}"]
    if state:
        lines.append(
            f'{made}s = fly.atom.set_value({made}, "{state}", %two) : ({atom_type}, i32) '
            f"-> {atom_type}"
        )
        made += "s"
    all_types = ", ".join([atom_type, *types])
    lines.append(f"fly.copy_atom_call({made}, {operands}) : ({all_types}) -> ()")
    return lines


def kernel(name: str, arguments: str, *lines: str) -> str:
    start = (
        "%t = gpu.thread_id x",
        "%lane = arith.index_cast %t : index to i32",
        "%two = arith.constant 2 : i32",
        "%zero = arith.constant 0 : i32",
    )
    body = "\n  ".join([*start, *lines, "gpu.return"])
    return f"gpu.func @{name}({arguments}) kernel {{\n  {body}\n}}"


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201", "gfx1250"])
def test_a_buffer_access_out_of_bounds_reads_zero_and_writes_nothing(target):
    """Also with an offset of the state, which counts in elements, and under a predicate."""
    limit = 90
    memory, registers = (f"!fly.memref<f32, {space}, 2:1>" for space in (BUFFER, "register"))
    copy = "!fly_rocdl.cdna3.buffer_copy<64>"
    arguments = f"%A: {F32x2.memref}, %B: {F32x2.memref}"
    ends = [*fragment("A", F32x2), *fragment("B", F32x2)]
    ends += [*buffered("A", F32x2, 4 * limit), *buffered("B", F32x2, 4 * limit)]
    load, store = ("%vA, %rA", memory, registers), ("%rA, %vB", registers, memory)
    predicate = [
        "%half = arith.constant 16 : i32",
        "%few = arith.cmpi slt, %lane, %half : i32",
        "%qP = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<i1, register>",
        "fly.ptr.store(%few, %qP) : (i1, !fly.ptr<i1, register>) -> ()",
        "%lP = fly.static : !fly.layout<1:1>",
        "%P = fly.make_view(%qP, %lP) : (!fly.ptr<i1, register>, !fly.layout<1:1>) "
        "-> !fly.memref<i1, register, 1:1>",
    ]
    plain = kernel("plain", arguments, *ends, *call(copy, 32, *load), *call(copy, 32, *store))
    shifted = kernel(
        "shifted",
        arguments,
        *ends,
        *call(copy, 32, *load, state="soffset"),
        *call(copy, 32, *store),
    )
    chosen = kernel(
        "chosen",
        arguments,
        *ends,
        *predicate,
        *moved("B", F32x2, "%gB", "%rA"),
        *call(copy, 32, "%vA, %rA, %P", memory, registers, "!fly.memref<i1, register, 1:1>"),
        *call(copy, 32, *store),
    )
    code = compiled(target, plain, shifted, chosen)
    source = np.arange(1, 65, dtype=np.float32).repeat(2)
    threads = 64
    kept = np.where(np.arange(2 * threads) < limit, source, 0)

    def run(name: str) -> np.ndarray:
        target_array = np.full(2 * threads, -1, np.float32)
        code.launch(name, 1, threads, [source.copy(), target_array])
        return target_array

    inside = np.arange(2 * threads) < limit
    np.testing.assert_array_equal(run("plain"), np.where(inside, kept, -1))
    # The check is of the thread's own offset; the state's comes on top of it unchecked.
    ahead = np.append(source, [0, 0])[2:]
    np.testing.assert_array_equal(run("shifted"), np.where(inside, ahead, -1))
    few = np.arange(2 * threads) < 32
    np.testing.assert_array_equal(run("chosen"), np.where(few & inside, kept, -1))


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "gfx1250"])
def test_atomics_update_what_several_threads_share(target):
    """By a universal atom and through a descriptor, of floats and of integers."""
    whole, real = Held("i32", 1), Held("f32", 1)
    lines = ["%four = arith.constant 4 : i32", "%own = arith.remui %lane, %four : i32"]
    for name, part in (("A", real), ("B", real), ("C", whole), ("D", real)):
        made = fragment(name, part)
        if name != "A":  # four elements that all threads share
            made = [line.replace("arith.muli %lane,", "arith.muli %own,") for line in made]
        lines += made
    lines += moved("A", real, "%gA", "%rA")
    lines += buffered("B", real, 16)
    lines += buffered("C", whole, 16)
    register = "!fly.memref<f32, register, 1:1>"
    buffer = f"!fly.memref<f32, {BUFFER}, 1:1>"
    lines += call("!fly_rocdl.cdna3.buffer_atomic<add, f32>", 32, "%rA, %vB", register, buffer)
    lines += ["fly.ptr.store(%lane, %qC) : (i32, !fly.ptr<i32, register>) -> ()"]
    lines += call(
        "!fly_rocdl.cdna3.buffer_atomic<max, i32>",
        32,
        "%rC, %vC",
        "!fly.memref<i32, register, 1:1>",
        f"!fly.memref<i32, {BUFFER}, 1:1>",
    )
    lines += call(
        '!fly.universal_atomic<add, f32, "agent">',
        32,
        "%rA, %gD",
        register,
        "!fly.memref<f32, global, 1:1>",
    )
    arguments = f"%A: {real.memref}, %B: {real.memref}, %C: {whole.memref}, %D: {real.memref}"
    code = compiled(target, kernel("update", arguments, *lines))
    a = np.arange(64, dtype=np.float32)
    sums, others = np.zeros(4, np.float32), np.ones(4, np.float32)
    greatest = np.full(4, -5, np.int32)
    code.launch("update", 1, 64, [a, sums, greatest, others])
    np.testing.assert_array_equal(sums, a.reshape(16, 4).sum(0))
    np.testing.assert_array_equal(others, 1 + a.reshape(16, 4).sum(0))
    np.testing.assert_array_equal(greatest, [60, 61, 62, 63])


def shared(name: str, part: Held, stride: str, total: int) -> list[str]:
    """`%s…`, LDS of `total` elements at `stride` elements a thread (%zero: all the same)."""
    pointer, layout = f"!fly.ptr<{part.element}, shared>", f"!fly.layout<{part.count}:1>"
    size = total * 4
    return [
        f"%m{name} = fly.make_ptr() {{dictAttrs = {{allocBytes = {size} : i64, "
        f"allocAlign = 16 : i64}}}} : () -> {pointer}",
        f"%x{name} = arith.muli %lane, {stride} : i32",
        f"%y{name} = fly.make_int_tuple(%x{name}) : (i32) -> !fly.int_tuple<?>",
        f"%z{name} = fly.add_offset(%m{name}, %y{name}) : ({pointer}, !fly.int_tuple<?>) "
        f"-> {pointer}",
        f"%s{name} = fly.make_view(%z{name}, %l{name}) : ({pointer}, {layout}) -> "
        f"!fly.memref<{part.element}, shared, {part.count}:1>",
    ]


def test_lds_is_read_transposed():
    """Each 16 threads of gfx950 give rows of a tile of half words and get its columns."""
    part = Held("f16", 4)
    memory, registers = (f"!fly.memref<f16, {space}, 4:1>" for space in ("shared", "register"))
    copy = "!fly.universal_copy<64>"
    lines = [
        *fragment("A", part),
        *fragment("B", part),
        *shared("A", part, "%nA", 256),
        *moved("A", part, "%gA", "%rA"),
        *call(copy, 16, "%rA, %sA", registers, memory),
        "gpu.barrier",
        *call(
            "!fly_rocdl.cdna4.lds_read_trans<trans = 16b, 64>", 16, "%sA, %rB", memory, registers
        ),
        *moved("B", part, "%rB", "%gB"),
    ]
    code = compiled("gfx950", kernel("turn", f"%A: {part.memref}, %B: {part.memref}", *lines))
    a = np.arange(256, dtype=np.float16)
    b = np.zeros((64, 4), np.float16)
    code.launch("turn", 1, 64, [a, b])
    tiles = a.reshape(4, 4, 16)  # of each 16 threads: four runs of one value a thread
    np.testing.assert_array_equal(b.reshape(4, 16, 4), tiles.transpose(0, 2, 1))


@pytest.mark.parametrize(("target", "count"), [("gfx942", 1), ("gfx950", 4)])
def test_a_buffer_is_loaded_straight_to_lds(target, count):
    """The threads' words follow each other from the wave's first address."""
    part = Held("f32", count)
    memory = f"!fly.memref<f32, {BUFFER}, {count}:1>"
    local = f"!fly.memref<f32, shared, {count}:1>"
    lines = [
        *fragment("A", part),
        *fragment("B", part),
        *buffered("A", part, 64 * 4 * count),
        *shared("A", part, "%zero", 64 * count),
        *call(f"!fly_rocdl.cdna3.buffer_copy_lds<{32 * count}>", 32, "%vA, %sA", memory, local),
        "gpu.barrier",
        "%back = fly.add_offset(%mA, %iB) : (!fly.ptr<f32, shared>, !fly.int_tuple<?>) "
        "-> !fly.ptr<f32, shared>",
        f"%own = fly.make_view(%back, %lB) : (!fly.ptr<f32, shared>, !fly.layout<{count}:1>) "
        f"-> {local}",
        *call(
            f"!fly.universal_copy<{32 * count}>",
            32,
            "%own, %gB",
            local,
            f"!fly.memref<f32, global, {count}:1>",
        ),
    ]
    code = compiled(target, kernel("fill", f"%A: {part.memref}, %B: {part.memref}", *lines))
    a = np.arange(64 * count, dtype=np.float32)
    b = np.zeros_like(a)
    code.launch("fill", 1, 64, [a, b])
    np.testing.assert_array_equal(a, b)


def test_what_llvm_22_does_not_have_is_refused():
    part = Held("f32", 1)
    lines = [
        *fragment("A", part),
        *buffered("A", part, 64),
        f"%d = fly_rocdl.get_buffer_rsrc(%dA) : (!fly.ptr<f32, {BUFFER}>) -> !llvm.ptr<8>",
        "%w = rocdl.ptr.s.buffer.load %d, %zero, 0 : f32",
        "fly.ptr.store(%w, %pA) : (f32, !fly.ptr<f32, global>) -> ()",
    ]
    with pytest.raises(fly.InputError, match="an intrinsic that LLVM 22 does not have"):
        compiled("gfx950", kernel("soon", f"%A: {part.memref}", *lines))
