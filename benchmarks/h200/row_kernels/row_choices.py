"""Plans of the kernels of `row_cases` to try, of rows of bf16 on Hopper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from fly.kernels.rowwise import row_plans
from fly.kernels.rowwise.row_plans import Choice
from h200.row_kernels.row_cases import PROCESSORS, Case

SHARED = 220 << 10  # bytes of a multiprocessor's shared memory for rows
MANY = 1 << 30  # blocks: one for each row
REGISTERS = 1 << 16  # of a multiprocessor
# Tiles of a transposition, the threads that access a row of one, those of a block, and whether
# blocks follow each other down the columns.
TRANSPOSITIONS = (
    ((128, 128), 16, 256, True),
    ((128, 128), 16, 256, False),
    ((128, 128), 16, 512, True),
    ((128, 128), 8, 256, True),
)


def variants(
    case: Case, columns: int, clusters: bool = False
) -> Iterator[tuple[str, list[int], Any]]:
    """Ways to compile a case: a name, what to ship of it, and a context that selects it. clusters:
    only those whose blocks share rows."""
    if case.name == "rotary_embedding":
        from fly.kernels.attention import rotary

        for plan in ((1, 128), (1, 256), (2, 128), (2, 256), (4, 128)):
            for kept in (0, MANY):
                order = "in order" if kept else "together"
                context = patch.dict(rotary.LINES, Hopper=(kept, plan, plan))
                name = f"{plan[0]} rows, {plan[1]} threads, {order}"
                yield name, [kept, *plan], context
    elif case.name == "transpose":
        for tile, lanes, threads, down in TRANSPOSITIONS:
            name = f"{tile[0]}x{tile[1]}, {lanes} lanes, {threads} threads{' down' * down}"
            yield name, [*tile, lanes, threads, down], _transposing(tile, lanes, threads, down)
    else:
        for choice in shared(case, columns) if clusters else choices(case, columns):
            name = "x".join(map(str, choice[:2]))
            if choice.ahead:
                blocks = _per_processor(choice.blocks)
                name += f", {choice.ahead} ahead, {blocks} blocks"
            if choice.among < case.matrices:
                name += f", {choice.among} of {case.matrices}"
            if choice.cluster > 1:
                name += f", by {choice.cluster}"
            if choice.resident:
                name += f", {choice.resident} resident"
            yield name, [*choice], choosing(choice)


@contextmanager
def choosing(choice: Choice | None) -> Iterator[None]:
    """Calls of row kernels take this choice; for None the rules, without a choice."""
    with patch.object(row_plans, "measured", lambda *_: choice):
        yield


@contextmanager
def _transposing(edges: tuple[int, int], lanes: int, threads: int, down: bool) -> Iterator[Any]:
    from h200.memory import tiles

    yield tiles.transposing(tiles.fx.BFloat16, edges, lanes, threads, down=down)


def choices(case: Case, columns: int) -> list[Choice]:
    """Plans to try for rows of bf16: a row a block; rows ahead, in registers or in tiles; the
    latter also with a block for each row. Some that other widths and kernels had slow are left
    out."""
    count = columns // 8
    found = []
    for threads in (32, 64, 128, 256, 512, 1024):
        vectors = count // threads
        if not 1 <= vectors <= 8:
            continue
        most = _resident_by_registers(case, threads, vectors)
        if not case.heavy and vectors >= 2:
            found.append(Choice(threads, vectors))
        if case.heavy and vectors <= 4 and threads <= 512:
            for ahead in (1, 2, 3) if columns < 16384 else (2, 3):
                found.append(_resident(case, columns, Choice(threads, vectors, ahead), most))
        elif case.name == "cross_entropy" or (columns >= 4096 and vectors <= 4 and not case.heavy):
            for ahead in (1, 2, 4):
                found.append(_resident(case, columns, Choice(threads, vectors, ahead), most))
    if columns >= 16384:
        first = case.matrices if columns < 65536 else 1
        last = 1 if case.heavy else first
        for threads, vectors in ((256, 2), (512, 1), (512, 2), (1024, 1), (1024, 2)):
            if threads * vectors * 8 >= columns or (threads == 256 and columns > 16384):
                continue
            for among in range(first, last - 1, -1):
                if case.heavy and columns == 16384 and among == 1:
                    continue
                for ahead in (2, 3) if columns == 16384 else (1, 2) if columns == 32768 else (1,):
                    one = Choice(threads, vectors, ahead, 0, among)
                    found.append(_resident(case, columns, one, 2048 // threads))
                if not case.heavy and threads == 512 and columns < 65536 and found[-1]:
                    found.append(found[-1]._replace(ahead=1, blocks=MANY))
        found += [Choice(512, 2), Choice(1024, 1), Choice(1024, 2)]
    return [one for one in dict.fromkeys(found) if one is not None]


def _resident_by_registers(case: Case, threads: int, vectors: int) -> int:
    """How many blocks that have rows in registers a multiprocessor has registers for, about: rows
    of bf16, sums, and what is computed of some elements."""
    of_vector = 26 + 9 * case.heavy if case.heavy else 3 + 4 * case.matrices
    registers = max(32, (36 if case.heavy else 24) + vectors * of_vector)
    return min(32, 2048 // threads, max(1, 65536 // (threads * registers)))


def _resident(case: Case, columns: int, choice: Choice, most: int) -> Choice | None:
    """A choice with as many blocks as a device holds, at most `most` a multiprocessor; None if
    shared memory has no room for one, or if few rows would be asked for."""
    made = row_plans._chosen(columns, 8, choice)
    nbytes = asked = choice.ahead * 2 * made.room * min(case.matrices, choice.among)
    if case.heavy and not made.fits and row_plans.has_room(made, 2, case.heavy):
        near = row_plans.sums_in_registers(made, case.heavy)
        nbytes += (case.heavy - near) * 4 * made.room
        if near:
            registers = 56 + near * made.room // choice.threads
            most = max(1, 65536 // (choice.threads * registers))
    blocks = min(most, SHARED // (nbytes + 1024))
    if not blocks or asked * blocks < 32 << 10:
        return None
    return choice._replace(blocks=blocks * PROCESSORS)


def _per_processor(blocks: int) -> str:
    if blocks == MANY:
        return "all"
    each, rest = divmod(blocks, PROCESSORS)
    return str(each) if not rest else f"{blocks} of {PROCESSORS * (each + 1)}"


# Blocks of clusters of four and of eight that an H200 holds, where a multiprocessor has room for 1
# to 4 of them (h200.clusters): a cluster is on one part of the chip, and some are left over.
HELD = {4: (120, 248, 368, 496), 8: (120, 240, 360, 496)}
# Of kernels with sums over rows, by the elements of a block's share: threads, vectors, rows ahead,
# and blocks of a multiprocessor.
WITH_SUMS = {
    1024: [(64, 1, 3, 8), (32, 1, 3, 16), (64, 1, 3, 12)],
    2048: [(128, 1, 3, 4), (64, 1, 3, 8), (128, 1, 3, 6)],
    4096: [(128, 1, 3, 3), (128, 1, 3, 4), (256, 1, 3, 2)],
    8192: [(256, 1, 3, 2), (256, 1, 2, 2), (256, 2, 3, 2), (256, 2, 2, 2), (512, 1, 3, 1)],
    16384: [(512, 1, 3, 1), (512, 2, 3, 1), (512, 1, 2, 1), (512, 2, 2, 1)],
}
# Of others: rows in shared memory, two of which are taken at a time,
IN_TWO = {
    8192: [(256, 1, 3, 4), (256, 2, 2, 4)],
    16384: [(512, 1, 3, 2), (512, 1, 2, 3), (512, 2, 3, 2), (256, 2, 2, 3), (1024, 1, 3, 2)],
    32768: [(512, 1, 3, 1), (512, 2, 3, 1), (1024, 1, 3, 1), (1024, 2, 3, 1)],
}
# rows in registers, and rows in shared memory that have a cluster each.
IN_REGISTERS = {
    4096: [(128, 4), (256, 2)],
    8192: [(128, 8), (256, 4), (512, 2)],
    16384: [(256, 8), (512, 4)],
    32768: [(512, 8), (1024, 4)],
}
IN_TILES = {16384: [(512, 1)], 32768: [(512, 1), (512, 2)]}
CLUSTERS = (1, 2, 4, 8)
WITH_PARTS = ("softmax", "layer_norm", "rms_norm")  # kernels that take two rows at a time


def shared(case: Case, columns: int) -> Iterator[Choice]:
    """Plans for rows that the blocks of a cluster share, or whose sums are exchanged while another
    row is computed: of kernels with sums, and of others from 16384 elements on."""
    if columns < 16384 and not case.heavy:
        return
    for cluster in CLUSTERS:
        share = columns // cluster
        if cluster > 1 and share < 4096:
            continue
        if case.heavy or case.name in WITH_PARTS:
            every = WITH_SUMS if case.heavy else IN_TWO
            for threads, vectors, ahead, each in every.get(share, ()):
                blocks = HELD[cluster][each - 1] if cluster > 2 else PROCESSORS * each
                resident, among = each if each > 1 else 0, case.matrices
                yield Choice(threads, vectors, ahead, blocks, among, cluster, resident)
        if cluster == 1 or case.heavy:
            continue
        for threads, vectors in IN_REGISTERS.get(share, ()):
            yield Choice(threads, vectors, cluster=cluster)
        for threads, vectors in IN_TILES.get(share, ()):
            yield Choice(threads, vectors, 1, MANY, case.matrices, cluster)
