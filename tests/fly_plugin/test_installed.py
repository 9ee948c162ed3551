"""Plugins as users have them: packages in an environment of their own, outside the checkout.

The READMEs of the plugins in examples/plugins and docs/plugins.md are typed there, literally.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from console import pattern, sessions
from fly_common.programs import toolchain
from plugins import ROOT, SHIPPED

TOOLS = ("fly-trace", "fly-opt-py", "fly-llc", "fly-link", "fly-run")


@pytest.fixture
def environment(tmp_path: Path, handlers: Path) -> dict[str, str]:
    """The variables of a shell in a new environment that has this project and its dependencies as
    installed packages, and no network."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (packages / "project.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    python = home / "bin" / "python"
    programs = {tool: f"{tool.replace('-py', '').replace('-', '_')}.cli" for tool in TOOLS}
    for name, module in {**programs, "pip": "pip._internal.cli.main"}.items():
        script = home / "bin" / name
        script.write_text(f"#!{python}\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        script.chmod(0o755)
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / handlers.name).symlink_to(handlers)
    llvm = os.path.dirname(toolchain.find_program("opt"))
    variables = {
        **os.environ,
        "PATH": f"{home / 'bin'}:{llvm}:{os.environ['PATH']}",
        "FLY_CACHE_DIR": str(cache),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say that there is none
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "100",
        "TERM": "dumb",
    }
    for name in ("PYTHONPATH", "FLY_BACKEND", "FLY_TARGET", "FLY_PLUGINS", "VIRTUAL_ENV"):
        variables.pop(name, None)
    return variables


def typed(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Types the sessions of a page in a folder. What `cd` and `export` do lasts."""
    found = sessions(page.read_text())
    assert len(found) > 5
    for number, (command, expected) in enumerate(found):
        state = folder / ".state"
        before = f". {state}" if number else ":"
        after = f"export -p > {state}; echo cd $(pwd) >> {state}"
        done = subprocess.run(
            [
                "bash",
                "-c",
                f"{before}\nset -o pipefail\n{command}\nstatus=$?\n{after}\nexit $status",
            ],
            cwd=folder,
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


PLUGINS = sorted(path.parent.name for path in SHIPPED.glob("*/pyproject.toml"))
EACH = [
    name if name == "hello" else pytest.param(name, marks=pytest.mark.heavy) for name in PLUGINS
]


def test_every_folder_is_a_plugin():
    folders = [path.name for path in SHIPPED.iterdir() if path.is_dir()]
    assert sorted(folders) == PLUGINS
    assert {"dpp", "hello"} <= set(PLUGINS)


@pytest.mark.parametrize("name", EACH)
def test_the_readme_of_each_plugin(name, environment, tmp_path):
    """In an environment of its own, the page installs the plugin, uses it in a pipe by flags or by
    FLY_PLUGINS, and from @fly.jit."""
    source = shutil.copytree(SHIPPED / name, tmp_path / "source")
    page = (source / "README.md").read_text()
    assert f"FLY_PLUGINS={name}" in page
    assert f'plugins=["{name}"' in page
    typed(source / "README.md", source, environment)


@pytest.mark.parametrize("name", EACH)
def test_each_plugin_is_built_as_a_wheel(name, environment, tmp_path):
    """Its record, as an entry point, and all modules to which it refers are in the wheel."""
    source = shutil.copytree(SHIPPED / name, tmp_path / "source")
    built = tmp_path / "wheels"
    words = ("pip", "wheel", "-q", ".", "-w", built)
    subprocess.run([*map(str, words)], cwd=source, env=environment, check=True)
    (wheel,) = built.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        (entries,) = (one for one in inside if one.endswith("entry_points.txt"))
        assert f"{name} = fly_{name}:PLUGIN" in archive.read(entries).decode()
    shutil.rmtree(source)
    words = ("pip", "install", "-q", wheel)
    subprocess.run([*map(str, words)], cwd=tmp_path, env=environment, check=True)
    check = """
import sys
from fly_common.resolve import resolve
from fly_plugin.discovery import of_name
plugin = of_name(sys.argv[1]).plugin
assert plugin.references
for one in plugin.references:
    if one.partition(".")[0].partition(":")[0] in plugin.packages:
        resolve(one) if ":" in one else __import__(one)
"""
    python = tmp_path / "venv" / "bin" / "python"
    done = subprocess.run(
        [str(python), "-c", check, name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    listed = {one for one in inside if one.endswith(".py")}
    assert listed == {
        path.relative_to(SHIPPED / name).as_posix()
        for path in (SHIPPED / name / f"fly_{name}").rglob("*.py")
    }


@pytest.mark.heavy
def test_the_readme_of_a_plugin_that_is_made_from_the_template(environment, tmp_path):
    subprocess.run([sys.executable, "-m", "fly.plugins", "new", "shout"], cwd=tmp_path, check=True)
    made = tmp_path / "shout"
    assert "hello" not in "".join(path.read_text() for path in made.rglob("*") if path.is_file())
    typed(made / "README.md", made, environment)


def test_the_page_of_plugins(environment, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    typed(ROOT / "docs" / "plugins.md", folder, environment)
