"""Plugins for tests: distributions in a folder of the search path, as pip would install them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKS = ("bounds", "sanitize")
EXAMPLES = ROOT / "examples"
SHIPPED = EXAMPLES / "plugins"  # plugins that are distributions of their own
HELLO = SHIPPED / "hello"
PLUGIN = "from fly_plugin.manifest import Plugin\nPLUGIN = Plugin({})\n"


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def install(self, name: str, fields: str | None = None, *, source: str = "", **files: str):
        """Installs the plugin `name` as the distribution dist-NAME 1.0 with the package pkg_NAME.
        `fields` are those of its record besides the id; `source` is the package's text instead.
        `files` are further modules of the package."""
        text = source or PLUGIN.format(f"id={name!r}, {fields or ''}")
        self.package(name, f"pkg_{name}:PLUGIN", text, **files)

    def package(self, name: str, target: str, text: str, **files: str) -> None:
        home = self.folder / f"pkg_{name}"
        home.mkdir(exist_ok=True)
        # Python takes bytecode for that of any source of its size and its second.
        shutil.rmtree(home / "__pycache__", ignore_errors=True)
        (home / "__init__.py").write_text(text)
        for module, content in files.items():
            (home / f"{module}.py").write_text(content)
        self.advertise(name, target)

    def advertise(self, name: str, target: str, distribution: str = "") -> None:
        """Writes the metadata of a distribution with one plugin."""
        distribution = distribution or f"dist_{name}"
        meta = self.folder / f"{distribution}-1.0.dist-info"
        meta.mkdir(exist_ok=True)
        shown = distribution.replace("_", "-")
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {shown}\nVersion: 1.0\n")
        (meta / "entry_points.txt").write_text(f"[fly.plugins]\n{name} = {target}\n")

    def run(
        self, *words: object, input: bytes | None = None, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs a tool where these packages are installed."""
        variables = {**os.environ, "PYTHONPATH": str(self.folder), **env}
        for name in ("FLY_PLUGINS", "FLY_TARGET", "FLY_BACKEND"):
            if name not in env:
                variables.pop(name, None)
        beside = Path(sys.executable).parent
        variables["PATH"] = f"{beside}{os.pathsep}{variables['PATH']}"
        return subprocess.run(
            [*map(str, words)],
            input=input,
            cwd=cwd or self.folder,
            env=variables,
            capture_output=True,
        )

    def ok(self, *words: object, input: bytes | None = None, **more) -> bytes:
        """Runs a tool that must succeed, and returns what it prints."""
        done = self.run(*words, input=input, **more)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def error(self, *words: object, input: bytes | None = None, **more) -> tuple[int, str, str]:
        """Runs a tool that must fail. Returns the exit status, the first line of the error without
        the tool's name, and the rest."""
        done = self.run(*words, input=input, **more)
        first, _, rest = done.stderr.decode().partition("\n")
        tool, _, said = first.partition(": error: ")
        assert done.returncode != 0, done.stdout.decode()
        assert tool == str(words[0]), done.stderr.decode()
        assert done.stdout == b""
        return done.returncode, said, rest


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty folder of installed packages, for other processes."""
    return Site(tmp_path / "site")


@pytest.fixture
def here(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The same in this process's search path."""
    import importlib

    from fly_plugin import identity

    monkeypatch.syspath_prepend(str(site.folder))
    monkeypatch.delenv("FLY_PLUGINS", raising=False)
    importlib.invalidate_caches()
    yield site
    identity.digest.cache_clear()
    for name in [one for one in sys.modules if one.partition(".")[0].startswith("pkg_")]:
        del sys.modules[name]


@pytest.fixture
def example(here: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Site]:
    """A function that makes a plugin of examples/plugins available here, as installed."""

    def install(name: str) -> Site:
        here.advertise(name, f"fly_{name}:PLUGIN", f"fly_{name}")
        monkeypatch.syspath_prepend(str(SHIPPED / name))
        return here

    return install


@pytest.fixture
def checks(example: Callable[[str], Site]) -> Site:
    """This process with examples/plugins/bounds and sanitize, as installed."""
    return [example(name) for name in CHECKS][-1]


@pytest.fixture
def hello(example: Callable[[str], Site]) -> Site:
    """This process with examples/plugins/hello, as installed."""
    return example("hello")
