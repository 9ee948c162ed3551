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
    EDGE,
    HALF,
    LARGE,
    PRIVATE,
    SPACES,
    TARGETS,
    Bench,
    Form,
    Where,
    all_forms,
    batched,
    compiled,
    lanes_of,
)

FAR = 1 << 31  # an offset that is no signed number

PARTS = [
    *(pytest.param(one, (space,), id=f"{one}-{space}") for one in LARGE for space in SPACES),
    *(pytest.param(target, SPACES, id=target) for target in TARGETS if target not in LARGE),
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
    if form.space == "scratch":
        yield from private_mistakes(bench, number, form)
        return
    if form.space in ("global", "flat") or "buffer" in form.name:
        yield from high_mistakes(bench, number, form, lanes)
    if form.space == "smem":
        yield from scalar_mistakes(bench, number, form)
        return
    size, last = form.size, lanes - 1
    # Lanes that follow each other, that are apart, and that have one address.
    for stride, start in ((size, 0), (2 * size, 0), (0, 4 * size)):
        room = last * stride + start + size
        here, beyond = Where(stride, start), Where(stride, start + 1)
        if not bench.works(number, room, here):
            yield f"stride {stride}: the last bytes are refused"
        if bench.works(number, room - 1, here):
            yield f"stride {stride}: a byte past the end is not noticed"
        if not form.atomic and bench.works(number, room, here, beyond):
            yield f"stride {stride}: a byte past the end of what was found is not noticed"
        # A read-only buffer takes no store, however it comes.
        if form.writes and form.space != "lds" and bench.works(number, room, here, writable=False):
            yield f"stride {stride}: a write to read-only memory"
        if not form.writes and not bench.works(number, room, here, writable=False):
            yield f"stride {stride}: read-only memory is not read"
        if "v[2:3]" in form.text and bench.works(number, room, here, Where(stride, start, apart=1)):
            yield f"stride {stride}: lanes whose high dwords differ"
    for stride in (size, 2 * size):
        if not bench.works(number, last * stride, Where(stride, 0, (1 << last) - 1)):
            yield f"stride {stride}: an inactive lane's address counts"
        # Before the beginning. A buffer access has no such offsets: they are out of its range.
        if form.space in ("global", "flat") and bench.works(
            number, lanes * stride, Where(stride), Where(stride, -size & 0xFFFFFFFF)
        ):
            yield f"stride {stride}: below the buffer"
    if form.space == "lds":
        if bench.works(number, size - 1, Where()):
            yield "LDS that is smaller than what is accessed"
        if f" at {FAR:#x}," not in bench.fault(number, 0, Where(start=FAR), 64 * size):
            yield "a place far behind LDS"
    elif form.atomic and bench.works(number, (lanes + 1) * size, Where(size, 1)):
        yield "a misaligned atomic operation"


def private_mistakes(bench: Bench, number: int, form: Form) -> Iterator[str]:
    last = PRIVATE - form.size
    if not bench.works(number, 64, Where(start=last)):
        yield "the last bytes are refused"
    if bench.works(number, 64, Where(start=last + 1)):
        yield "a byte past the end is not noticed"
    if f" at {FAR:#x}," not in bench.fault(number, 0, Where(start=FAR), 0):
        yield "a place far behind private memory"


def high_mistakes(bench: Bench, number: int, form: Form, lanes: int) -> Iterator[str]:
    """Offsets that are no signed numbers; then those of the last lanes, which are the first ones'
    less 4 GiB."""
    around, across = HALF - EDGE, HALF - form.size * (lanes // 2)
    if bench.signed(form):
        yield from negative_mistakes(bench, number, form, around, across)
        return
    with bench.high(form.writes) as low:
        if not bench.ends(number, low, Where(form.size, around), 0):
            yield "high offsets are refused"
        if "buffer" in form.name:
            # Those after 4 GiB are other addresses, or out of range; what is in it is looked for.
            if bench.ends(number, low, Where(form.size, around - EDGE), 0):
                yield "high offsets are out of range"
        elif bench.ends(number, low, Where(form.size, across), 0):
            yield "addresses go on behind the last low dword"


def negative_mistakes(
    bench: Bench, number: int, form: Form, around: int, across: int
) -> Iterator[str]:
    """On gfx1250 an offset to a scalar base is a signed number: those around 4 GiB are around 0."""
    with bench.high(form.writes) as low:
        for first in (around, across):
            if not bench.ends(number, low + HALF, Where(form.size, first), 0):
                yield "negative offsets are refused"
            if bench.ends(number, low, Where(form.size, first), 0):
                yield "offsets have no sign"
        # Half of the lanes' offsets are below 2 GiB. Those of scaled forms are counted from there.
        half = Where(form.size, FAR - form.size * (lanes_of(bench.target) // 2))
        if not form.scaled and bench.ends(number, low + FAR, half, 0):
            yield "offsets go on behind the greatest number"


def scalar_mistakes(bench: Bench, number: int, form: Form) -> Iterator[str]:
    """Where an access ends well it is made twice, since an instruction remembers where it found
    memory last."""
    size = form.size
    if "buffer" in form.name and size > 4 and not form.atomic:
        yield from partial_mistakes(bench, number, form)
    elif not form.writes and not bench.works(number, size, Where(), writable=False):
        yield "read-only memory is not read at first"
    for start in (0, 4 * size):
        room = start + size
        here, far = Where(start=start), Where(start=room + size)
        if not bench.works(number, room, here, here):
            yield f"{start}: the last bytes are refused"
        if bench.works(number, room - 1, here):
            yield f"{start}: a byte past the end is not noticed"
        if bench.works(number, room + size - 1, here, Where(start=room)):
            yield f"{start}: a byte past the end of what was found is not noticed"
        if bench.works(number, room, here, far):
            yield f"{start}: far past the end"
        if form.writes == bench.works(number, room, here, writable=False):
            done = "written" if form.writes else "not read"
            yield f"{start}: read-only memory is {done}"
    if "buffer" in form.name:
        # An offset is no signed number: this one is out of range.
        if not bench.works(number, 2 * size, Where(start=-1 & 0xFFFFFFFF)):
            yield "an offset of 4 GiB is in range"
    elif bench.works(number, 2 * size, Where(), Where(start=-max(4, size) & 0xFFFFFFFF)):
        yield "below the buffer"
    if form.atomic and size == 8 and bench.works(number, 4 * size, Where(start=4)):
        yield "a misaligned atomic operation"


def partial_mistakes(bench: Bench, number: int, form: Form) -> Iterator[str]:
    """Of a scalar buffer access only the first dword is in range."""
    here, far = (Where(start=start, records=start + 4) for start in (60, 256))
    if not bench.works(number, 64, here, here, writable=form.writes):
        yield "the last dword is refused"
    if bench.works(number, 63, here, size=4):
        yield "a byte past the end of a dword is not noticed"
    if bench.works(number, 64, here, far, size=4):
        yield "a dword far past the end is not noticed"


def test_spaces_are_all_tried() -> None:
    tried = {form.space for target in TARGETS for form in all_forms(target)}
    assert tried == set(SPACES)
