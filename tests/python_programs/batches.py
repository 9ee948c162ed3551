"""Programs by their numbers, some compiled together, in several processes."""

from __future__ import annotations

import multiprocessing
import random
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from python_programs.judge import Case, differences
from python_programs.statements import program, scalars

BATCH = 80  # programs of one task
RUNS = 4  # of each program
TOGETHER = 8  # programs of one file


def case(seed: int, number: int) -> Case:
    choices = random.Random(f"{seed}:{number}")
    return Case(program(choices), tuple(scalars(choices) for _ in range(RUNS)))


def judged(seed: int, numbers: Sequence[int], traced: bool) -> list[tuple[int, str, str]]:
    """(number, kind, text) of the programs that differ."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        for at in range(0, len(numbers), TOGETHER):
            cases = {case(seed, number): number for number in numbers[at : at + TOGETHER]}
            for found in differences(list(cases), Path(name), not traced):
                wrong.append((cases[found.case], found.kind, found.text))
    return wrong


def batches(seed: int, count: int, jobs: int, traced: bool) -> Iterator[tuple[int, list]]:
    """(programs, what differs) of each batch, as they end."""
    tasks = [range(at, min(at + BATCH, count)) for at in range(0, count, BATCH)]
    if jobs == 1:
        for task in tasks:
            yield len(task), judged(seed, task, traced)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = [(task, pool.submit(judged, seed, task, traced)) for task in tasks]
        for task, done in waiting:
            yield len(task), done.result()
