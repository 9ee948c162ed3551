"""Small kernels in the fly dialect that execute one atom, and matrices in their formats.

A matrix kernel takes A, B and C in the instruction's order, thread by thread, so that the layouts
of `fly_dialect.atoms` determine the place of a matrix element.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from fly_dialect.atoms.interface import MmaOp
from fly_dialect.types import bits

# The encodings of 0, 1 and 2; the sign is the top bit.
FLOATS = {
    "bf16": (0x0000, 0x3F80, 0x4000),
    "f16": (0x0000, 0x3C00, 0x4000),
    "f8E4M3FN": (0x00, 0x38, 0x40),
    "f8E4M3FNUZ": (0x00, 0x40, 0x48),
    "f8E5M2": (0x00, 0x3C, 0x40),
    "f8E5M2FNUZ": (0x00, 0x40, 0x44),
    "f6E2M3FN": (0x00, 0x08, 0x10),
    "f6E3M2FN": (0x00, 0x0C, 0x10),
    "f4E2M1FN": (0x0, 0x2, 0x4),
    "f32": (0x00000000, 0x3F800000, 0x40000000),
    "f64": (0, 0x3FF0000000000000, 0x4000000000000000),
}


def width(element: str) -> int:
    return bits(element.lstrip("su"))


def encoded(matrix: np.ndarray, element: str) -> np.ndarray:
    """Returns the encodings of small integers in a format, as uint64."""
    size = width(element)
    if element.lstrip("su").startswith("i"):
        return matrix.astype(np.int64).astype(np.uint64) & np.uint64((1 << size) - 1)
    table = np.array(FLOATS[element], dtype=np.uint64)
    magnitudes = table[np.abs(matrix)]
    # Formats without negative zero have a NaN there.
    return magnitudes | np.where(matrix < 0, np.uint64(1 << size - 1), np.uint64(0))


def packed(values: np.ndarray, element: str) -> np.ndarray:
    """Packs threads × values encodings into bytes, the first value lowest."""
    size = width(element)
    shifts = np.arange(size, dtype=np.uint64)
    found = (values[..., None] >> shifts & np.uint64(1)).astype(np.uint8)
    return np.packbits(found.reshape(len(values), -1), axis=1, bitorder="little")


def places(layout, threads: int) -> np.ndarray:
    """Returns threads × values: the index in the tile, by the definition of a layout."""

    def offsets(shape, stride) -> list[int]:
        if not isinstance(shape, tuple):
            return [step * stride.value for step in range(shape.value)]
        found = [0]
        for inner_shape, inner_stride in zip(shape, stride, strict=True):
            steps = offsets(inner_shape, inner_stride)
            found = [base + step for step in steps for base in found]
        return found

    rows, columns = (
        offsets(shape, stride) for shape, stride in zip(layout.shape, layout.stride, strict=True)
    )
    assert len(rows) == threads
    return np.array(rows)[:, None] + np.array(columns)[None, :]


@dataclass(frozen=True)
class Held:
    """A fragment as stored in registers: an element type that exists in memory, and the count."""

    element: str
    count: int

    @staticmethod
    def of(element: str, values: int) -> "Held":
        size = width(element)
        return Held("i32", values * size // 32) if size < 8 else Held(element.lstrip("su"), values)

    @property
    def memref(self) -> str:
        return f"!fly.memref<{self.element}, global, 1:1>"

    @property
    def fragment(self) -> str:
        return f"!fly.memref<{self.element}, register, {self.count}:1>"


@cache
def threads_of(op: MmaOp) -> int:
    return op.thr_layout.shape.value


def held(op: MmaOp) -> tuple[Held, Held, Held]:
    a, b, c, _ = op.elements
    counts = [
        places(layout, threads_of(op)).shape[1]
        for layout in (op.thr_val_layout_a, op.thr_val_layout_b, op.thr_val_layout_c)
    ]
    return Held.of(a, counts[0]), Held.of(b, counts[1]), Held.of(c, counts[2])


def matrix_kernel(name: str, op: MmaOp) -> str:
    """D = A·B + C by one instruction on fragments in memory, thread by thread."""
    a, b, c = held(op)
    atom = f"!fly.mma_atom<{op}>"
    lines = [
        f"gpu.func @{name}(%A: {a.memref}, %B: {b.memref}, %C: {c.memref}, %D: {c.memref})",
        "kernel {",
        "%t = gpu.thread_id x",
        "%lane = arith.index_cast %t : index to i32",
    ]
    for memory, part in (("A", a), ("B", b), ("C", c), ("D", c)):
        lines += fragment(memory, part)
        if memory != "D":
            lines += moved(memory, part, f"%g{memory}", f"%r{memory}")
    lines.append(f"%atom = fly.make_mma_atom : {atom}")
    used = "%atom"
    if op.state:
        lines.append("%ones = arith.constant 0x7F7F7F7F : i32")
        for number, field in enumerate(op.state):
            made = f"%atom{number}"
            lines.append(
                f'{made} = fly.atom.set_value({used}, "{field.name}", %ones) : '
                f"({atom}, i32) -> {atom}"
            )
            used = made
    types = ", ".join([atom, *(part.fragment for part in (c, a, b, c))])
    lines.append(f"fly.mma_atom_call({used}, %rD, %rA, %rB, %rC) : ({types}) -> ()")
    lines += moved("D", c, "%rD", "%gD")
    return "\n  ".join([*lines, "gpu.return"]) + "\n}"


def fragment(name: str, part: Held, stride: int | None = None) -> list[str]:
    """Declares `%g…`, this thread's part of memory `%…`, and `%r…`, registers for it."""
    element, count = part.element, part.count
    pointer, registers = f"!fly.ptr<{element}, global>", f"!fly.ptr<{element}, register>"
    layout = f"!fly.layout<{count}:1>"
    return [
        f"%n{name} = arith.constant {count if stride is None else stride} : i32",
        f"%o{name} = arith.muli %lane, %n{name} : i32",
        f"%i{name} = fly.make_int_tuple(%o{name}) : (i32) -> !fly.int_tuple<?>",
        f"%b{name} = fly.get_iter(%{name}) : ({part.memref}) -> {pointer}",
        f"%p{name} = fly.add_offset(%b{name}, %i{name}) : ({pointer}, !fly.int_tuple<?>) "
        f"-> {pointer}",
        f"%l{name} = fly.static : {layout}",
        f"%g{name} = fly.make_view(%p{name}, %l{name}) : ({pointer}, {layout}) -> "
        f"!fly.memref<{element}, global, {count}:1>",
        f"%q{name} = fly.make_ptr() {{dictAttrs = {{allocSize = {count} : i64}}}} : "
        f"() -> {registers}",
        f"%r{name} = fly.make_view(%q{name}, %l{name}) : ({registers}, {layout}) "
        f"-> {part.fragment}",
    ]


def moved(name: str, part: Held, source: str, target: str) -> list[str]:
    """A universal copy between `%g…` and `%r…`."""
    size = bits(part.element)
    atom = f"!fly.copy_atom<!fly.universal_copy<{size * part.count}>, {size}>"
    spaces = [
        f"!fly.memref<{part.element}, {'global' if side[1] == 'g' else 'register'}, {part.count}:1>"
        for side in (source, target)
    ]
    return [
        f"%c{name} = fly.make_copy_atom {{valBits = {size} : i32}} : {atom}",
        f"fly.copy_atom_call(%c{name}, {source}, {target}) : ({atom}, {', '.join(spaces)}) -> ()",
    ]


def module(*kernels: str) -> bytes:
    inside = "\n".join(["gpu.module @k {", *kernels, "}"])
    return f"module attributes {{gpu.container_module}} {{\n{inside}\n}}\n".encode()
