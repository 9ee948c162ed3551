"""Whether launches fit their kernels: arguments when the code is made, sizes when it runs."""

from __future__ import annotations

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host import refusals
from fly_host.native.emission.frame import Frame
from fly_host.native.emission.marks import integer, mark
from fly_host.native.specialisation import MOST_WORK_ITEMS, KernelLimits
from fly_host.native.unavailable import Unavailable
from fly_host.program import Launch, Word
from fly_host.refusals import show
from fly_host.tiles import GROUP, MOST_EXTENT, MOST_STRIDE

MOST_THREADS = 1 << 20  # of a workgroup: their count times a grid's must fit 64 bits


def word_size(frame: Frame, word: Word) -> int:
    if word.kind == "pointer":
        return 8
    if word.kind == "scalar":
        return frame.widths[str(word.name)]
    return word.size


def check_interface(frame: Frame, launch: Launch, limits: KernelLimits) -> None:
    """Unavailable where program and kernel disagree about arguments: Python says how."""
    described = [w.descriptor for words in launch.arguments for w in words if w.descriptor]
    if described and frame.way.describing is None:
        raise Unavailable(f"{launch.kernel} takes descriptors of tensors, which Python makes")
    sizes = [sum(word_size(frame, word) for word in words) for words in launch.arguments]
    if sizes != [size for _, size in limits.arguments]:
        raise Unavailable(f"{launch.kernel} takes other arguments than the program gives")
    if any(at < 0 or at + size > limits.argument_bytes for at, size in limits.arguments):
        raise Unavailable(f"{launch.kernel} has arguments outside of its packed ones")
    if not 0 < limits.max_threads <= MOST_THREADS:
        raise Unavailable(f"{launch.kernel} allows {limits.max_threads} work items in a workgroup")


def fits(frame: Frame, launch: Launch, limits: KernelLimits) -> list[tuple[str, str]]:
    """The conditions of a launch, and what is wrong where they do not hold: those of
    `fly_run.launch.limits`, and that each integer fits its word."""
    code, kernel = frame.code, launch.kernel
    grid = [frame.need(index) for index in launch.grid]
    block = [frame.need(index) for index in launch.block]
    dynamic = frame.need(launch.shared)
    shown = mark("triple", *block)
    conditions: list[tuple[str, str]] = []

    def holds(comparison: str, a: str, b: object, words: str) -> None:
        conditions.append((code.value(f"icmp {comparison} i64 {a}, {b}"), words))

    size = "1"
    for items in block:
        holds("sgt", items, 0, refusals.no_items(kernel, shown))
    for items in block:
        # One dimension at a time, so that the product fits 64 bits.
        many = refusals.many_items(kernel, shown, integer(items), limits.max_threads)
        holds("sle", items, limits.max_threads, many)
        size = items if size == "1" else code.value(f"mul i64 {size}, {items}")
    many = refusals.many_items(kernel, shown, integer(size), limits.max_threads)
    holds("sle", size, limits.max_threads, many)
    if limits.required_block is not None:
        required = show(limits.required_block)
        for a, b in zip(block, limits.required_block, strict=True):
            holds("eq", a, b, refusals.other_block(kernel, shown, required))
    for count in grid if frame.way.for_c else ():  # what follows refuses it too, by other words
        holds("sge", count, 0, refusals.negative_grid(kernel, mark("triple", *grid)))
    for count, each in zip(grid, limits.cluster or (1, 1, 1), strict=True):
        if each > 1:
            words = refusals.part_clusters(
                kernel, mark("triple", *grid), show(limits.cluster or (1, 1, 1))
            )
            holds("eq", code.value(f"urem i64 {count}, {each}"), 0, words)
    most = MOST_WORK_ITEMS
    for axis, count, items in zip("xyz", grid, block, strict=True):
        if limits.grid is not None:
            limit = limits.grid["xyz".index(axis)]
            words = refusals.wide_grid(kernel, integer(count), axis, limits.target, limit)
            holds("ule", count, limit, words)
            if frame.way.for_c:  # Python decides about calls that others refuse
                continue
        words = refusals.many_workgroups(kernel, integer(count), integer(items), axis, most)
        holds("ule", count, most, words)
        holds("ule", code.value(f"mul i64 {count}, {items}"), most, words)
    static, room = limits.static, limits.shared + limits.static
    words = refusals.shared(kernel, static, integer(dynamic), limits.target, room)
    if limits.shared >= 0:
        holds("ule", dynamic, limits.shared, words)
    else:
        conditions.append(("false", words))
    for word in (word for words in launch.arguments for word in words):
        if word.kind == "integer" and word.size < 8:
            assert word.expression is not None
            value, bits = frame.need(word.expression), 8 * word.size
            narrow = code.value(f"trunc i64 {value} to i{bits}")
            back = code.value(f"sext i{bits} {narrow} to i64")
            holds("eq", value, back, refusals.narrow(integer(value), bits, kernel))
        elif word.descriptor is not None:
            conditions += [(holds, "") for holds in _describable(frame, word)]
    return conditions


def _describable(frame: Frame, word: Word) -> list[str]:
    """Whether a tensor can have its descriptor: as `fly_host.tiles.Tile.problem`."""
    code, found = frame.code, word.descriptor
    assert found is not None
    size = ELEMENT_TYPES[found.dtype].bytes
    conditions = []
    if (tensor := frame.tensors.get(str(word.name))) is not None:
        address = code.value(f"ptrtoint ptr {tensor.data} to i64")
        rest = code.value(f"and i64 {address}, {GROUP - 1}")
        conditions.append(code.value(f"icmp eq i64 {rest}, 0"))
    extents = [frame.need(index) for index in found.shape]
    for extent in extents:
        less = code.value(f"sub i64 {extent}, 1")
        conditions.append(code.value(f"icmp ult i64 {less}, {MOST_EXTENT}"))
    for extent, index in zip(extents[1:], found.strides, strict=True):
        stride = code.value(f"mul i64 {frame.need(index)}, {size}")
        rest = code.value(f"and i64 {stride}, {GROUP - 1}")
        whole = code.value(f"icmp eq i64 {rest}, 0")
        less = code.value(f"sub i64 {stride}, 1")
        short = code.value(f"icmp ult i64 {less}, {MOST_STRIDE - 1}")
        single = code.value(f"icmp eq i64 {extent}, 1")
        sound = code.value(f"and i1 {whole}, {short}")
        conditions.append(code.value(f"or i1 {single}, {sound}"))
    return conditions
