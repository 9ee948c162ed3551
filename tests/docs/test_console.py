"""Every `console` block of the README and docs is typed, and prints what the page says.

The blocks of one page share a folder, in order. A block that can't run here (another GPU, an
install) is marked `sh` or `text`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from console import pattern, sessions

ROOT = Path(__file__).parents[2]
# docs/plugins.md installs packages: tests/fly_plugin/test_installed.py types it.
DOCS = (page for page in (ROOT / "docs").rglob("*.md") if page.name != "plugins.md")
# What a tool says on a slow machine, after a second.
SLOW = re.compile(r"fly: building .* once for each version\)")
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS])


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


@pytest.mark.parametrize("page", PAGES, ids=name)
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
        lines = [line.rstrip() for line in done.stdout.splitlines() if not SLOW.fullmatch(line)]
        printed = "".join(f"{line}\n" for line in lines)
        assert pattern(expected).fullmatch(printed), (
            f"{name(page)}: $ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
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
