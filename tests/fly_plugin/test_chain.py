"""Plugins of @fly.jit and of chains: what runs, what is run again, and what the pipe makes."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import fly_plugin
import numpy as np
import pytest
from fly_common.errors import FlyError, UsageError
from fly_plugin.manifest import Plugin
from fly_trace.session.load import load_file
from plugins import EXAMPLES, HELLO, Site

import fly

KERNEL = HELLO / "kernel.py"
CALL = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from kernel import scaled
a, b = np.ones(10, np.float32), np.zeros(10, np.float32)
scaled(a, b)
print(b[0])
"""
PLAIN = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import vector_add
a = np.ones(100, np.float32)
assert (vector_add.vector_add(a, a) == 2).all()
"""
STAGES = ("trace", "opt-py", "opt", "llc", "link")


@pytest.fixture
def scaled(hello):
    return load_file(str(KERNEL)).scaled


def result(function) -> float:
    a, b = np.ones(10, np.float32), np.zeros(10, np.float32)
    function(a, b)
    return float(b[0])


def ran(site: Site, program: str, folder: Path, cache: Path, **env: str) -> list[str]:
    """The stages that a process had to run."""
    done = site.run(
        "python", "-c", program, folder, FLY_CACHE="explain", FLY_CACHE_DIR=str(cache), **env
    )
    said = done.stderr.decode()
    assert done.returncode == 0, said
    found = re.findall(r"^fly: cache: (\S+): (\w+)", said, re.MULTILINE)
    assert found, said
    return [name for name, what in found if name in STAGES and what != "hit"]


def test_a_function_with_a_plugin(scaled):
    assert result(scaled) == 2
    made = scaled.compile(np.ones(10, np.float32), np.ones(10, np.float32))
    assert 'fly.plugins = ["hello@0.1.0"]' in made.ir("mlir")
    assert fly_plugin.active() == ()


def test_a_change_of_an_option_is_seen_at_the_next_call(scaled, monkeypatch):
    for factor in (3, 4, 3):
        monkeypatch.setenv("FLY_HELLO_FACTOR", str(factor))
        assert [result(scaled) for _ in range(4)] == [factor] * 4
    monkeypatch.delenv("FLY_HELLO_FACTOR")
    assert result(scaled) == 2


def test_options_as_a_value(hello, monkeypatch):
    from fly_hello.options import Options

    function = load_file(str(KERNEL)).scaled.function
    assert result(fly.jit(plugins=[("hello", Options(factor=7))])(function)) == 7
    monkeypatch.setenv("FLY_HELLO_FACTOR", "9")
    assert result(fly.jit(plugins=[("hello", Options(factor=7))])(function)) == 7


def test_the_environment_of_a_function_without_plugins(hello, monkeypatch):
    """FLY_PLUGINS comes and goes while a program runs."""
    function = fly.jit(load_file(str(KERNEL)).scaled.function)
    with pytest.raises(FlyError, match="fx has no 'hello'"):
        result(function)
    monkeypatch.setenv("FLY_PLUGINS", "hello")
    assert [result(function) for _ in range(3)] == [2, 2, 2]
    monkeypatch.delenv("FLY_PLUGINS")
    with pytest.raises(FlyError, match="fx has no 'hello'"):
        result(function)


def test_functions_of_one_process_have_plugins_of_their_own(hello):
    from fly_hello.options import Options

    function = load_file(str(KERNEL)).scaled.function
    made = [fly.jit(plugins=[("hello", Options(factor=n))])(function) for n in range(3, 9)]
    found: dict[int, float] = {}
    threads = [
        threading.Thread(target=lambda n=n, one=one: found.update({n: result(one)}))
        for n, one in enumerate(made, 3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n for n in range(3, 9)}


def test_a_chain_with_plugins(hello):
    chain = fly.chain("gfx942", plugins=["hello"])
    assert [one.stamp for one in chain.plugins] == ["hello@0.1.0"]
    assert "--plugin=hello" in chain.stages[0].words
    function = load_file(str(KERNEL)).scaled.function
    assert result(fly.jit(chain=chain)(function)) == 2
    with pytest.raises(UsageError, match="chain= and plugins= contradict each other"):
        fly.jit(chain=chain, plugins=["hello"])


@pytest.mark.parametrize("given", ["hello", [3], [("hello", 1, 2)], [""]])
def test_plugins_that_are_none(given):
    with pytest.raises(UsageError, match="plugins"):
        fly.jit(plugins=given)


def test_an_unknown_plugin_of_a_function(here):
    function = fly.jit(plugins=["nix"])(
        load_file(str(EXAMPLES / "vector_add.py")).vector_add.function
    )
    with pytest.raises(UsageError, match="there is no plugin 'nix'"):
        function(np.ones(4, np.float32), np.ones(4, np.float32))


def test_the_pipe_makes_the_same_image(scaled, hello):
    a = np.ones(10, np.float32)
    image = scaled.compile(a, a, target="gfx942").data
    env = {"PYTHONPATH": f"{hello.folder}:{HELLO}", "FLY_PLUGINS": "hello"}
    module = hello.ok("fly-trace", KERNEL, **env)
    ll = hello.ok("fly-opt-py", "--target", "gfx942", input=module, **env)
    obj = hello.ok("fly-llc", input=hello.ok("opt", "-S", "-O3", input=ll), **env)
    assert hello.ok("fly-link", input=obj, **env) == image


@pytest.mark.heavy
def test_a_change_of_a_plugin_reruns_the_stages_that_it_touches(site, tmp_path):
    """A dialect is in the trace and in fly-opt-py; a filter of objects in fly-llc."""
    cache = tmp_path / "cache"
    pass_ = (HELLO / "fly_hello" / "lower.py").read_text()
    site.advertise("hello", "fly_hello:PLUGIN", "fly_hello")
    package = site.folder / "fly_hello"
    package.mkdir()
    for file in (HELLO / "fly_hello").glob("*.py"):
        (package / file.name).write_text(file.read_text())
    home = tmp_path / "home"
    home.mkdir()
    (home / "kernel.py").write_text(KERNEL.read_text())
    assert ran(site, CALL, home, cache) == list(STAGES)
    assert ran(site, CALL, home, cache) == []
    # What it makes is the same, so that the other stages find their results.
    (package / "lower.py").write_text(f"{pass_}\n# changed\n")
    assert ran(site, CALL, home, cache) == ["trace", "opt-py"]
    (package / "lower.py").write_text(pass_.replace("arith.mulf", "arith.addf"))
    assert ran(site, CALL, home, cache) == list(STAGES)
    assert ran(site, CALL, home, cache, FLY_HELLO_FACTOR="5") == list(STAGES)
    assert ran(site, CALL, home, cache) == []

    site.install("late", "slots={'llc.end': 'pkg_late.f:make'}", f="def make(): return bytes")
    on = {"FLY_PLUGINS": "late"}
    # The stamp is in the modules and in the LLVM IR.
    assert ran(site, PLAIN, EXAMPLES, cache) == list(STAGES)
    ran(site, PLAIN, EXAMPLES, cache, **on)
    assert ran(site, PLAIN, EXAMPLES, cache, **on) == []
    (site.folder / "pkg_late" / "f.py").write_text("def make(): return lambda data: data + b''\n")
    assert ran(site, PLAIN, EXAMPLES, cache, **on) == ["llc"]
    site.install("late", "slots={'link.end': 'pkg_late.f:make'}", f="def make(): return bytes")
    ran(site, PLAIN, EXAMPLES, cache, **on)
    (site.folder / "pkg_late" / "f.py").write_text("def make(): return lambda data: data + b''\n")
    assert ran(site, PLAIN, EXAMPLES, cache, **on) == ["link"]
    # A plugin that is installed and not active is in no fingerprint.
    assert ran(site, PLAIN, EXAMPLES, cache) == []


def test_a_changed_program_of_a_command_is_seen_in_a_process(here, tmp_path, monkeypatch):
    filter_ = tmp_path / "filter"
    filter_.write_text("#!/bin/sh\nexec cat\n")
    filter_.chmod(0o755)
    content = f"from fly_plugin.manifest import Command\nFILTER = Command(({str(filter_)!r},))"
    here.install("cmd", "slots={'llc.end': 'pkg_cmd.f:FILTER'}", f=content)
    function = load_file(str(EXAMPLES / "vector_add.py")).vector_add.function
    made = fly.jit(plugins=["cmd"])(function)
    a = np.ones(10, np.float32)
    assert (made(a, a) == 2).all()
    filter_.write_text("#!/bin/sh\necho changed >&2; exit 1\n")
    with pytest.raises(FlyError, match=r"llc\.end: .*filter failed \(exit status 1\): changed"):
        made(a, a)


def test_a_record_without_an_installation(hello):
    from fly_hello import PLUGIN

    function = load_file(str(KERNEL)).scaled.function
    assert result(fly.jit(plugins=[PLUGIN])(function)) == 2
    assert isinstance(PLUGIN, Plugin)


@pytest.mark.parametrize("how", ["decorator", "environment"])
def test_a_backend_with_a_device_of_a_plugin(here, monkeypatch, how):
    """The backend of examples/backend-template, by a plugin instead of an entry point of its own,
    only for the functions that have the plugin."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "backend-template"))
    here.install("guest", "backends={'template': 'fly_backend_template.backend:BACKEND'}")
    function = load_file(str(EXAMPLES / "vector_add.py")).vector_add.function
    given = {"plugins": ["guest"]} if how == "decorator" else {}
    made = fly.jit(backend="template", **given)(function)
    if how == "environment":
        monkeypatch.setenv("FLY_PLUGINS", "guest")
    a = np.ones(1000, np.float32)
    for _ in range(3):
        assert (made(a, a) == 2).all()
    assert '"1,4"' in made.compile(a, a).ir("ll")
    monkeypatch.delenv("FLY_PLUGINS", raising=False)
    with pytest.raises(UsageError, match="unknown backend 'template'"):
        fly.jit(backend="template")(function)(a, a)


def test_a_stage_that_is_a_command_has_the_plugins_in_its_fingerprint(hello, monkeypatch):
    words = ["fly-opt-py", "--target", "gfx942"]
    plain = fly.Stage.command(words, suffix=".ll").identity()
    flagged = fly.Stage.command([*words, "--plugin=hello"], suffix=".ll").identity()
    assert "hello@0.1.0" in flagged
    assert "hello" not in plain
    monkeypatch.setenv("FLY_PLUGINS", "hello")
    assert "hello@0.1.0" in fly.Stage.command(words, suffix=".ll").identity()
