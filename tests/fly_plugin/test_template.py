"""`python -m fly.plugins new`: a plugin from the template."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fly_common.errors import MissingError, UsageError
from plugins import HELLO, ROOT

from fly.plugins import __main__ as program
from fly.plugins import template


def test_the_template_is_the_example(tmp_path):
    made = template.new("hello", tmp_path / "one")
    assert "fly_hello/lower.py" in made
    for path in made:
        assert (tmp_path / "one" / path).read_text() == (HELLO / path).read_text()
    other = template.new("shout2", tmp_path / "two")
    assert "fly_shout2/lower.py" in other
    assert "SHOUT2 = Extension(" in (tmp_path / "two" / "fly_shout2" / "dialect.py").read_text()


def test_the_template_is_in_the_wheel():
    """The package has the template where `new` looks for it."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    placed = wheel["targets"]["wheel"]["force-include"]
    assert placed == {"examples/plugins/hello": "fly/plugins/hello"}
    assert template._PLACES[0] == ROOT / placed["examples/plugins/hello"]


def test_what_a_build_leaves_is_not_in_the_template(monkeypatch, tmp_path):
    monkeypatch.setattr(template, "_PLACES", (tmp_path / "none", tmp_path / "there"))
    with pytest.raises(MissingError, match=r"the template .*there was not found"):
        template.files()
    for path in ("pyproject.toml", "a/b.py", "a/__pycache__/b.pyc", "build/c.py", "d.egg-info/e"):
        (tmp_path / "there" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "there" / path).write_text(path)
    assert template.files() == {"a/b.py": "a/b.py", "pyproject.toml": "pyproject.toml"}
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "pyproject.toml").write_text("an installed package's")
    assert template.files() == {"pyproject.toml": "an installed package's"}


@pytest.mark.parametrize("name", ["Hello", "a-b", "1a", "arith", "fly", ""])
def test_names_that_can_be_none(name, tmp_path):
    with pytest.raises(UsageError):
        template.new(name, tmp_path / "one")
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "expected new NAME [FOLDER]"),
        (("new",), "expected new NAME [FOLDER]"),
        (("new", "a", "b", "c"), "expected new NAME [FOLDER]"),
        (("new", "a", "here"), "here exists"),
    ],
)
def test_wrong_calls_of_new(words, said, tmp_path):
    (tmp_path / "here").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "fly.plugins", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"fly.plugins: error: {said}"


def test_new_prints_the_files(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert program.command("fly.plugins", ["new", "shout"]) == 0
    printed = capsys.readouterr()
    made = sorted(path.as_posix() for path in Path("shout").rglob("*") if path.is_file())
    assert sorted(printed.out.split()) == made
    assert "shout/fly_shout/__init__.py" in made
    assert printed.err == "now: cd shout && pip install -e . && cat README.md\n"
    assert "hello" not in "".join(Path(path).read_text() for path in made).lower()
    assert program.command("fly.plugins", ["new", "shout", "elsewhere/here"]) == 0
    assert (tmp_path / "elsewhere" / "here" / "README.md").is_file()


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_of_new(flag, capsys):
    assert program.command("fly.plugins", [flag]) == 0
    assert capsys.readouterr().out == (
        "Usage: python -m fly.plugins new NAME [FOLDER]\n\n"
        "Makes a plugin from a template: a package with one operation,\n"
        "one pass, one option and one slot. FOLDER is ./NAME by default.\n"
    )


@pytest.mark.parametrize("words", [[], ["new"], ["old", "a"], ["new", "a", "b", "c"]])
def test_wrong_words_make_nothing(words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="expected new NAME"):
        program.command("fly.plugins", words)
    assert not list(tmp_path.iterdir())
