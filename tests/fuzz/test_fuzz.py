"""The fuzzer finds what it is to find; a small sample of its run finds nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fly_common.errors import InputError
from fly_common.record import replace

from fuzz import __main__ as run
from fuzz import case, damage, kinds, processes, workers
from fuzz.case import Case, judge_line

CASES = 1500  # of the sample, within this process's children
PROCESSES = 9


@pytest.fixture(autouse=True)
def folder(tmp_path):
    kinds.use_folder(tmp_path)


@pytest.fixture
def planted(monkeypatch):
    """Puts a reader in the place of that of programs."""

    def plant(read):
        changed = replace(kinds.KINDS["program"], read=read)
        monkeypatch.setitem(kinds.KINDS, "program", changed)

    return plant


def found_by(read, planted, count: int = 4) -> tuple[workers.Tally, list[str]]:
    planted(read)
    found: list[str] = []
    tally = workers.run(1, "program", count, 2, lambda one: found.append(f"{one.case} {one.what}"))
    return tally, sorted(found)


def test_a_case_is_the_same_each_time_and_differs_from_others():
    for name, kind in kinds.KINDS.items():
        seeds = kind.seeds()
        made = [Case(3, name, number).made(seeds)[0] for number in range(20)]
        assert made == [Case(3, name, number).made(seeds)[0] for number in range(20)]
        assert len(set(made)) > 15
        assert made[0] != Case(4, name, 0).made(seeds)[0]
        assert not set(made) & set(seeds)


@pytest.mark.parametrize("one", [*damage.BINARY, *damage.TEXTUAL, damage.exchange])
@pytest.mark.parametrize("data", [b"", b"\n", b"(", b'a = 1 : i32, (b, c) "s"\n{d = 2}'])
def test_any_damage_takes_any_input(one, data):
    generator = random.Random(5)
    for _ in range(30):
        assert isinstance(one(generator, data, [data]), bytes)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("tool: error: x.ll:1:2: expected a type\n  hint", None),
        ("tool: error: in 'internal': no", None),
        ("other: error: no", "the first line is no error line"),
        ("Traceback (most recent call last):", "the first line is no error line"),
        ("tool: error: ", "an error without a text"),
        ("tool: error: x.ll: ", "an error without a text"),
        ("tool: error: internal: KeyError: 1", "internal"),
        ("tool: error: " + "x" * 9000, "an error line of 9013 characters"),
    ],
)
def test_what_is_wrong_with_a_line(text, wrong):
    assert judge_line(text, "tool") == wrong


def test_refusals_are_counted(planted):
    def read(data, generator):
        raise InputError("no")

    tally, found = found_by(read, planted)
    assert (found, tally.taken, tally.refused) == ([], 0, 4)


def test_another_exception_is_a_finding(planted):
    def read(data, generator):
        raise KeyError("value")

    _, found = found_by(read, planted)
    assert found == [f"program:{number} KeyError: 'value'" for number in range(4)]


def test_a_signal_is_a_finding_and_the_other_cases_run(planted, monkeypatch):
    def read(data, generator):
        if data == second:
            os.kill(os.getpid(), signal.SIGSEGV)

    second = Case(1, "program", 1).made(kinds.KINDS["program"].seeds())[0]
    _, found = found_by(read, planted)
    assert found == ["program:1 ended by signal 11"]


def test_a_hang_is_a_finding_and_the_other_cases_run(planted, monkeypatch):
    def read(data, generator):
        if data == first:
            time.sleep(60)
        raise InputError("no")

    first = Case(1, "program", 0).made(kinds.KINDS["program"].seeds())[0]
    monkeypatch.setattr(workers, "SLOW", 0.5)
    tally, found = found_by(read, planted)
    assert found == ["program:0 took more than 0 s"]
    assert tally.refused == 3


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        ("exit 0", None),
        ("echo 'fly-fake: error: no' >&2; exit 1", None),
        ("echo 'fly-fake: error: no' >&2; exit 3", None),
        ("echo 'fly-fake: error: no' >&2; exit 4", "exit code 4"),
        ("exit 1", "exit code 1 without an error line"),
        ("kill -SEGV $$", "ended by signal 11"),
        ("echo 'Traceback (most recent call last):' >&2; exit 1", "a traceback"),
        ("echo 'fly-fake: error: internal: x' >&2; exit 1", "internal"),
        ("echo 'fly-fake: error: no' >&2; touch out.bin; exit 1", "left ['out.bin'] behind"),
        ("echo 'fly-fake: error: no' >&2; echo output; exit 1", "left 7 behind"),
        ("touch .out.bin.4711", "left behind: ['.out.bin.4711']"),
        ("exec sleep 60", "took more than 1 s"),
    ],
)
def test_processes_are_judged_from_outside(tmp_path, monkeypatch, script, wrong):
    tool = tmp_path / "fly-fake"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(processes, "BIN", tmp_path)
    monkeypatch.setattr(processes, "SLOW", 1.0)
    found = processes.judge(processes.Command((("fly-fake",),), ()), tmp_path)[1]
    assert found is None if wrong is None else wrong in str(found)


def test_a_sample_finds_nothing(tmp_path):
    """In a process of its own, which forks for its cases: a fork of one that has run other tests
    takes many times as long."""
    words = ["--cases", str(CASES), "--processes", str(PROCESSES), "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", *words, "--out", str(tmp_path / "found")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout
    assert done.returncode == 0, told + done.stderr
    assert told.splitlines()[-1].endswith(": 0 findings"), told
    counted = [line for line in told.splitlines() if " cases: " in line]
    assert len(counted) == 2 * len(kinds.KINDS)
    # Both must be common, or the run looks at one thing only.
    taken = sum(int(line.split(" cases: ")[1].split()[0]) for line in counted)
    assert CASES / 10 < taken < CASES * 9 / 10


def test_findings_are_saved_with_the_command_that_repeats_them(
    tmp_path, planted, monkeypatch, capsys
):
    def read(data, generator):
        raise KeyError("value")

    planted(read)
    words = ["fuzz", "--cases", "5", "--processes", "0", "--kinds", "program", "--jobs", "1"]
    monkeypatch.setattr("sys.argv", [*words, "--out", str(tmp_path / "found")])
    assert run.main() == 1
    told = capsys.readouterr().out
    assert told.count("KeyError") == run.REPEATED
    assert told.splitlines()[-1].endswith(": 5 findings")
    again = next(line for line in told.splitlines() if line.startswith("  again: "))
    assert again == "  again: python -m fuzz --seed 1 --again program:0"
    saved = tmp_path / "found" / "program-1-0.json"
    assert saved.read_bytes() == Case(1, "program", 0).made(case.KINDS["program"].seeds())[0]
    monkeypatch.setattr("sys.argv", ["fuzz", *again.split()[4:]])
    assert run.main() == 1
    assert capsys.readouterr().out == "KeyError: 'value'\n"
