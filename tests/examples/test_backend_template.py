"""The backend of examples/backend-template as a user has it: a wheel in an environment of its own.

The wheel is built without a network and installed, outside the checkout, into a new virtual
environment, which sees this project and its dependencies as installed packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pytest
from backends import TEMPLATE
from fly_common.programs import toolchain

ROOT = TEMPLATE.parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
TOOLS = ("fly-trace", "fly-opt-py", "fly-llc", "fly-link", "fly-run")
PIPE = (
    "set -o pipefail; fly-trace vector_add.py | fly-opt-py --backend Template --target gfx942"
    " > k.ll"
    " && opt -S -O3 k.ll | fly-llc | fly-link > k.hsaco"
    " && fly-run k.hsaco --backend template A=a.npy B=a.npy C=c.npy"
)
CALLS = """
import os
import fly, numpy as np
from fly_run.launch import runtime
import vector_add
assert "fly_backend_template" not in __import__("sys").modules
own = fly.jit(backend="template")(vector_add.vector_add.function)
a = np.ones(1000, np.float32)
for _ in range(3):
    assert (own(a, a) == 2).all()
(opened,) = runtime._opened.values()
ir = own.compile(a, a).ir("ll")
print(fly.get_backend("TEMPLATE").name, opened.device.remarks, ir.count('"1,4"'))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """The variables of a shell in an environment with the backend installed."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(TEMPLATE, folder / "source")  # a build writes beside the sources
    run(PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", folder, source, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    home = folder / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    run(PIP, "install", "--no-deps", "--no-index", "--target", packages, wheel, cwd=folder)
    # What `pip install fly-filters` would install.
    ours = sysconfig.get_path("purelib")
    (packages / "project.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    python = home / "bin" / "python"
    for tool in TOOLS:
        script = home / "bin" / tool
        module = f"{tool.replace('-py', '').replace('-', '_')}.cli"
        script.write_text(f"#!{python}\nfrom {module} import main\nmain()\n")
        script.chmod(0o755)
    llvm = os.path.dirname(toolchain.find_program("opt"))
    variables = {**os.environ, "PATH": f"{home / 'bin'}:{llvm}:{os.environ['PATH']}"}
    for name in ("PYTHONPATH", "FLY_BACKEND", "FLY_TARGET", "VIRTUAL_ENV"):
        variables.pop(name, None)
    return variables


def run(words: list[str], *more: object, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [*words, *map(str, more)], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "examples" / "vector_add.py", tmp_path)
    np.save(tmp_path / "a.npy", np.ones(1000, np.float32))
    return tmp_path


def test_in_the_shell(environment, folder: Path):
    printed = run(["bash", "-c", PIPE], cwd=folder, env=environment)
    assert (np.load(folder / "c.npy") == 2).all()
    assert '"amdgpu-waves-per-eu"="1,4"' in (folder / "k.ll").read_text()
    assert "template: 1 launches" in printed


def test_in_python(environment, folder: Path):
    printed = run(["python", "-c", CALLS], cwd=folder, env=environment)
    assert printed == "template ('template: 3 launches',) 1\n"


def test_it_is_among_the_known_names(environment, folder: Path):
    words = ["fly-opt-py", "--target", "gfx942", "/dev/null"]
    for backend in ("rocm", "TEMPLATE"):
        done = subprocess.run(
            words, env={**environment, "FLY_BACKEND": backend}, capture_output=True, text=True
        )
        assert "the input is empty" in done.stderr
    done = subprocess.run(
        words, env={**environment, "FLY_BACKEND": "nix"}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "fly-opt-py: error: unknown backend 'nix'"
    assert done.stderr.rstrip().endswith(", template")
