"""LLVM's worker gives the bytes of `opt` and `llc` for every example: on three chips, and with
FLY_TEST_TARGETS=every (`make targets`) on all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chosen_targets import NVIDIA, chosen, chosen_nvidia
from fly_common.programs import prefetch, process, toolchain
from fly_common.programs.llvm_worker import client
from fly_trace.session.load import find_entry, load_file

import fly
from fly.chains.chain import results

sys.path.insert(0, str(Path(__file__).parent))
from example_cases import WIDELY, Case

EXAMPLES = Path(__file__).parents[2] / "examples"
USUAL = ("gfx942", "gfx1201", "sm_90a")
EVERY = os.environ.get("FLY_TEST_TARGETS") == "every"
TARGETS = (*chosen(), *chosen_nvidia()) if EVERY else USUAL
PAIRS = [
    (case, target)
    for case in WIDELY
    for target in TARGETS
    if target in case.targets or (target in NVIDIA and not case.traits)
]


@pytest.fixture(scope="module", autouse=True)
def worker() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLY_CACHE", "off")
        patch.delenv(client.VARIABLE, raising=False)
        yield


def by_worker(name: str, words: list[str], data: bytes) -> bytes:
    path = toolchain.find_program(name)
    with prefetch.Programs() as programs:
        programs.start([(path, words)])
        running = prefetch.start(path, words, data)
        assert isinstance(running, client.Request)
        made = running._worker.receive(running._deadline) if running._worker else None
        running._worker = None
        client._lock.release()
    assert made is not None, "the worker left it to the program"
    return made


def by_program(name: str, words: list[str], data: bytes) -> bytes:
    done = process.run(toolchain.find_program(name), words, data)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("case", "target"), PAIRS, ids=[f"{case.name}-{target}" for case, target in PAIRS]
)
def test_the_bytes_are_the_programs(case: Case, target: str) -> None:
    path = str(EXAMPLES / case.file)
    module = find_entry(load_file(path), path, case.entry).compile(target=target).ir("mlir")
    words = [f"-mcpu={target}", "-O2", "-filetype=obj"]
    if target in NVIDIA:
        words[1:] = ["-O2", "-mattr=+ptx88", "-filetype=asm"]
    words += ["-disable-symbolication", "-o", "-", "-"]
    for debug_info, level in (False, "3"), (True, "1"):
        options = [("debug_info", debug_info)]
        chain = fly.chain(target, opt_py=options).without("opt").without("llc").without("link")
        ((_, lowered),) = results(chain, str(module).encode())
        optimised = by_program("opt", ["-S", f"-O{level}"], lowered)
        assert by_worker("opt", ["-S", f"-O{level}"], lowered) == optimised
        assert by_worker("llc", words, optimised) == by_program("llc", words, optimised)
