"""The images of the documentation are what its commands make today."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from fly_opt import drawing

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = re.findall(
    r"^\$ (fly-opt-py --draw-layout .* -o \S+\.svg)$", (DOCS / "pictures.md").read_text(), re.M
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split()[-1])
def test_an_image_is_its_commands(command: str):
    words = shlex.split(command)
    options = dict(zip(words[1::2], words[2::2], strict=True))
    made = drawing.svg(options["--draw-layout"], options.get("--draw-with"))
    assert (DOCS / "images" / options["-o"]).read_bytes() == made


def test_the_page_draws():
    assert len(COMMANDS) >= 5
