"""Every `console` block of the README and docs is typed, and prints what the page says.

A block is a session: `$ ` starts a command (`> ` continues it), what follows is its output. `…` in
an expected line stands for any text, a line of `…` alone for any lines. The blocks of one page
share a folder, in order. A block that can't run here (another GPU, an install) is marked `sh` or
`text`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sessions(text: str) -> list[tuple[str, str]]:
    """(command, expected output) of each command of a page, in order."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith("> ") and found and not found[-1][1]:
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
            else:
                command, output = found[-1]
                found[-1] = (command, f"{output}{line}\n")
    return found


def pattern(expected: str) -> re.Pattern[str]:
    lines = []
    for line in expected.splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            parts = (re.escape(part) for part in line.rstrip().split("…"))
            lines.append(".*".join(parts) + r"[ ]*\n")
    return re.compile("".join(lines))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_blocks(page: Path, tmp_path: Path, handlers: Path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / handlers.name).symlink_to(handlers)
    environment = dict(
        os.environ,
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        FLY_CACHE_DIR=str(tmp_path / ".cache"),
        COLUMNS="100",
        TERM="dumb",
    )
    for command, expected in sessions(page.read_text()):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail\n{command}"],
            cwd=tmp_path,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )
        printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
        assert pattern(expected).fullmatch(printed), (
            f"{page.name}: $ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
        )


@pytest.mark.parametrize("tool", ["fly-trace", "fly-opt-py", "fly-llc", "fly-link", "fly-run"])
def test_every_tool_has_a_page_with_its_help(tool: str):
    """Shown in a session, so the test above holds it against the tool."""
    page = (ROOT / f"docs/{tool}.md").read_text()
    assert f"{tool} --help" in [command for command, _ in sessions(page)]


def test_the_pattern_can_fail():
    assert pattern("a … c\n").fullmatch("a b c\n")
    assert pattern("…\nlast\n").fullmatch("one\ntwo\nlast\n")
    assert not pattern("a … c\n").fullmatch("a b d\n")
    assert not pattern("one\n").fullmatch("one\ntwo\n")
