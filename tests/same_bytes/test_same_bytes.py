"""A difference between two revisions is found, and only that."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from same_bytes import comparison, digests, jobs
from same_bytes.comparison import Outcome
from same_bytes.recorded import Recorded

ROOT = Path(__file__).parents[2]

# In place of a command: the command, with one instruction of what it makes exchanged.
DAMAGED = """
import os, sys, tempfile
from {module} import {function} as original

def main():
    with tempfile.TemporaryFile() as file:
        real = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            original()
        finally:
            sys.stdout.flush()
            os.dup2(real, 1)
            file.seek(0)
            sys.stdout.buffer.write(file.read().replace(b" fadd ", b" fsub "))
            sys.stdout.flush()
"""


@pytest.mark.heavy
def test_a_damaged_stage_is_found(tmp_path: Path):
    """A copy of this checkout whose fly-opt-py subtracts in place of adding."""
    names = ["common", "examples", "fly", "tools", "pyproject.toml"]
    now = tmp_path / "now"
    now.mkdir()
    for name in names:
        (now / name).symlink_to(ROOT / name)
    project = (ROOT / "pyproject.toml").read_text()
    match = re.search(r'fly-opt-py = "(.*):(.*)"', project)
    assert match
    (now / "pyproject.toml").unlink()
    (now / "pyproject.toml").write_text(project.replace(match[0], 'fly-opt-py = "damaged:main"'))
    (now / "damaged.py").write_text(DAMAGED.format(module=match[1], function=match[2]))
    words = ["HEAD", "--now", now, "--without-tests", "--targets", "gfx942"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "same_bytes",
            *words,
            "--only",
            "/transpose.py",
            "--only",
            "/vector_add.py",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1, done.stderr
    *named, last = done.stdout.splitlines()
    found = [line.split(":")[0].strip() for line in named if " before, " in line]
    levels = ("-O3", "-O0")
    extents = ("", " static")
    assert sorted(found) == sorted(
        f"examples/vector_add.py vector_add{static} gfx942 {level}"
        for static in extents
        for level in levels
    )
    assert last == "4 HSACOs differ; 4 are the same, 0 inputs are refused alike (gfx942)"


def test_outcomes():
    """Refused alike is alike; refused by one side only differs, unless the input is new."""
    made, other = Outcome("a"), Outcome("b")
    refused, elsewhere = Outcome(None, "fly-llc: 1"), Outcome(None, "fly-opt-py: 1")
    cases = {
        "same": (made, made, "both"),
        "alike": (refused, refused, "before"),
        "bytes": (made, other, "both"),
        "worse": (made, refused, "before"),
        "better": (refused, made, "before"),
        "otherwise": (refused, elsewhere, "both"),
        "lost": (made, None, "both"),
        "new": (refused, made, "now"),
        "new but other": (made, other, "now"),
    }
    listed = [jobs.Job(name, (), origin) for name, (_, _, origin) in cases.items()]
    before = {name: old for name, (old, _, _) in cases.items()}
    now = {name: new for name, (_, new, _) in cases.items() if new}
    report = comparison.of_jobs(listed, before, now)
    assert (report.same, report.refused) == (1, 1)
    assert [one.split(":")[0] for one in report.differing] == [
        *("bytes", "worse", "better", "otherwise", "lost", "new but other")
    ]
    assert [one.split(":")[0] for one in report.one_sided] == ["new"]


def test_tests_are_compared_by_name():
    before = Recorded({"t": Counter("ab"), "gone": Counter("xy"), "renamed": Counter("z")})
    now = Recorded({"t": Counter("ac"), "new": Counter("z")})
    report = comparison.of_tests(before, now)
    assert report.differing == ["t: b before, c now"]
    assert report.one_sided == ["gone: 2 HSACOs, before only"]
    assert report.same == 3


def test_with_code_the_host_program_does_not_count():
    """Digests by hand: the first letter is the code's, the second the host program's."""
    listed = [jobs.Job(name, (), "both") for name in ("same", "host", "code")]
    before = dict(zip(("same", "host", "code"), map(Outcome, ("ax", "bx", "cx")), strict=True))
    now = dict(zip(("same", "host", "code"), map(Outcome, ("ax", "by", "dx")), strict=True))
    report = comparison.of_jobs(listed, before, now, lambda digest: digest[0])
    assert (report.same, report.same_code) == (1, 1)
    assert report.differing == ["code: cx before, dx now"]
    both = (
        Recorded({"t": Counter(["ax", "bx", "cx"])}),
        Recorded({"t": Counter(["ax", "by", "dx"])}),
    )
    report = comparison.of_tests(*both, lambda digest: digest[0])
    assert (report.same, report.same_code) == (1, 1)
    assert report.differing == ["t: cx before, dx now"]


def test_the_code_of_an_image(tmp_path: Path):
    """The linker's options and the section of the host program, by objcopy."""
    from fly_common.programs import toolchain

    source = b"""target triple = "amdgcn-amd-amdhsa"
    define amdgpu_kernel void @k(ptr addrspace(1) %p) { store i32 NUMBER, ptr addrspace(1) %p
    ret void }"""

    def image(number: bytes, manifest: str) -> bytes:
        words = ["-mcpu=gfx942", "-filetype=obj", "-o", "-", "-"]
        made = toolchain.run_program("llc", words, source.replace(b"NUMBER", number)).stdout
        (tmp_path / "o").write_bytes(made)
        (tmp_path / "m").write_text(manifest)
        add = f"--add-section=.fly.manifest={tmp_path / 'm'}"
        objcopy = [add, str(tmp_path / "o"), str(tmp_path / "o2")]
        assert toolchain.run_program("llvm-objcopy", objcopy, b"").returncode == 0
        link = ["-shared", "-o", "-", str(tmp_path / "o2")]
        return toolchain.run_program("ld.lld", link, b"").stdout

    first, other_host, other_code = image(b"7", "{}"), image(b"7", "{ 1 }"), image(b"8", "{}")
    assert len({first, other_host, other_code}) == 3
    assert digests.code(first) == digests.code(other_host) != digests.code(other_code)


def test_what_run_lines_give(tmp_path: Path):
    def steps(line: str) -> tuple[jobs.Step, ...]:
        return jobs._producers(line, tmp_path / "a.mlir", tmp_path)

    file = str(tmp_path / "a.mlir")
    assert steps("fly-opt-py --target gfx942 %s | FileCheck %s") == (
        ("fly-opt-py", "--target", "gfx942", file),
    )
    assert steps("fly-opt-py --emit llvm %s -o %t.ll") == (("fly-opt-py", "--emit", "llvm", file),)
    assert steps("fly-trace %examples/f.py | fly-opt-py --target gfx942 | opt -S -O3 > %t") == (
        ("fly-trace", f"{tmp_path}/examples/f.py"),
        ("fly-opt-py", "--target", "gfx942"),
        ("opt", "-S", "-O3"),
    )
    for line in (
        "not fly-llc %s 2>&1 | FileCheck %s",
        "fly-opt-py --canonicalize %s | FileCheck %s",
        "fly-opt-py --target gfx942 --emit mlir %s | FileCheck %s",
        "fly-llc %t.mir | cmp - %t.o",
        "rm -rf %t && mkdir %t",
    ):
        assert steps(line) == (), line
