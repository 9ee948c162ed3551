"""The edges of memory, for every instruction that accesses it and each way it can go about it: an
access that ends where a buffer ends is right, one byte more is a fault; so are a write to what is
read-only and an atomic operation that is not aligned. What inactive lanes' addresses are is of no
matter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fly_run.emulator.machine import Emulator

from .access_support import (
    AT_ONCE,
    PRIVATE,
    SPACES,
    TARGETS,
    Bench,
    Form,
    all_forms,
    batched,
    compiled,
    lanes_of,
)

# gfx942 has most of them, and a test for each space.
PARTS = [
    *(pytest.param(TARGETS[0], (space,), id=f"{TARGETS[0]}-{space}") for space in SPACES),
    *(pytest.param(target, SPACES, id=target) for target in TARGETS[1:]),
]


@pytest.mark.parametrize(("target", "spaces"), PARTS)
def test_edges(target: str, spaces: tuple[str, ...]) -> None:
    chosen = [form for form in all_forms(target) if form.space in spaces]
    assert chosen
    wrong = []
    for listed in batched(chosen, AT_ONCE):
        bench = Bench(target, listed, compiled(target, listed), Emulator(target))
        for number, form in enumerate(listed):
            found = mistakes(bench, number, form, lanes_of(target))
            wrong += [f"{form.text}: {what}" for what in found]
        bench.device.close()
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:20])


def mistakes(bench: Bench, number: int, form: Form, lanes: int) -> Iterator[str]:
    size = form.size
    if form.space == "scratch":
        if not bench.works(number, 64, 0, PRIVATE - size):
            yield "the last bytes are refused"
        if bench.works(number, 64, 0, PRIVATE - size + 1):
            yield "a byte past the end is not noticed"
        return
    if form.space == "smem":
        yield from scalar_mistakes(bench, number, form)
        return
    last = lanes - 1
    # Lanes that follow each other, that are apart, and that have one address.
    for stride, start in ((size, 0), (2 * size, 0), (0, 4 * size)):
        room = last * stride + start + size
        if not bench.works(number, room, stride, start):
            yield f"stride {stride}: the last bytes are refused"
        if bench.works(number, room - 1, stride, start):
            yield f"stride {stride}: a byte past the end is not noticed"
        # A read-only buffer takes no store, however it comes.
        if (
            form.writes
            and form.space != "lds"
            and bench.works(number, room, stride, start, -1, False)
        ):
            yield f"stride {stride}: a write to read-only memory"
        if not form.writes and not bench.works(number, room, stride, start, -1, False):
            yield f"stride {stride}: read-only memory is not read"
        if "v[2:3]" in form.text and bench.works(number, room, stride, start, apart=1):
            yield f"stride {stride}: lanes whose high dwords differ"
    for stride in (size, 2 * size):
        if not bench.works(number, last * stride, stride, 0, (1 << last) - 1):
            yield f"stride {stride}: an inactive lane's address counts"
        # Before the beginning. A buffer access has no such offsets: they are out of its range.
        if form.space in ("global", "flat") and bench.works(
            number, lanes * stride, stride, -size & 0xFFFFFFFF
        ):
            yield f"stride {stride}: below the buffer"
    if form.space in ("global", "flat") and bench.works_across(number, size):
        yield "addresses go on behind the last low dword"
    if form.space == "lds" and bench.works(number, size - 1, 0, 0):
        yield "LDS that is smaller than what is accessed"
    if form.atomic and form.space != "lds" and bench.works(number, (lanes + 1) * size, size, 1):
        yield "a misaligned atomic operation"


def scalar_mistakes(bench: Bench, number: int, form: Form) -> Iterator[str]:
    """Twice each, since an instruction remembers where it found memory last."""
    size = form.size
    for start in (0, 4 * size):
        room = start + size
        if not bench.works(number, room, 0, start) or not bench.works(number, room, 0, start):
            yield f"{start}: the last bytes are refused"
        if bench.works(number, room - 1, 0, start):
            yield f"{start}: a byte past the end is not noticed"
        if bench.works(number, room, 0, room + size):
            yield f"{start}: far past the end"
        if form.writes and bench.works(number, room, 0, start, -1, False):
            yield f"{start}: a write to read-only memory"
    # Of a buffer that is out of its range.
    if "buffer" not in form.name and bench.works(number, 2 * size, 0, -max(4, size) & 0xFFFFFFFF):
        yield "below the buffer"
    if form.atomic and size == 8 and bench.works(number, 4 * size, 0, 4):
        yield "a misaligned atomic operation"


def test_spaces_are_all_tried() -> None:
    tried = {form.space for target in TARGETS for form in all_forms(target)}
    assert tried == set(SPACES)
