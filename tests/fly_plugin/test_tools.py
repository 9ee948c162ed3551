"""Plugins on the tools' command lines and in the environment, through pipes of processes."""

from __future__ import annotations

import json
import shutil

import pytest
from plugins import HELLO

from .plugins_at_slots import VECTOR_ADD, pipe

TOOLS = ("fly-trace", "fly-opt-py", "fly-llc", "fly-link", "fly-run")


@pytest.mark.parametrize("tool", TOOLS)
def test_errors_of_requests_are_one_line(site, tool):
    site.install("broken", source="import nothing_like_this")
    file = "k.py"
    for flag in ("nix", "+nix", "-nix"):
        code, said, rest = site.error(tool, f"--plugin={flag}", file)
        assert code == 2
        assert said == f"there is no plugin '{flag.removeprefix('+')}'"
        assert rest.startswith("  the installed plugins: broken;")
    code, said, rest = site.error(tool, "--plugin", "broken", file)
    assert code == 3
    assert said.startswith("plugin 'broken' (dist-broken 1.0): pkg_broken:PLUGIN: ModuleNotFound")
    assert len(rest.splitlines()) == 1
    assert site.error(tool, "--plugin")[:2] == (2, "--plugin needs the id of a plugin")
    # The same from the environment; a broken plugin that nobody asks for hurts nobody.
    assert site.error(tool, file, FLY_PLUGINS="nix")[:2] == (2, "there is no plugin 'nix'")
    assert site.ok(tool, "--version")
    assert site.ok(tool, "--plugin=-broken", "--version")


@pytest.mark.parametrize("tool", TOOLS)
def test_the_help_has_the_options_of_active_plugins(site, tool):
    options = """
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Options:
    how_much: int = field(default=2, metadata={"help": "How much of it."})
"""
    site.install("my-own".replace("-", ""), "options='pkg_myown.options:Options'", options=options)
    plain = site.ok(tool, "--help").decode()
    assert "--plugin ID" in plain
    assert "--myown-how-much" not in plain
    shown = site.ok(tool, "--plugin=myown", "--help").decode()
    assert "Options of the plugin 'myown' (dist-myown 1.0):" in shown
    assert "--myown-how-much N  How much of it. [2]" in shown


def test_list_plugins(site):
    site.install("a", "version='3', passes={'a-b': 'm:X'}, slots={'opt.end': 'm:y'}, requires=()")
    site.install("broken", source="1/0")
    shown = site.ok("fly-link", "--plugin=a", "--list-plugins").decode()
    shown = shown.partition("\nrocm (")[0]
    assert shown == (
        "a (dist-a 3): active, by --plugin\n  slots      opt.end\n  passes     a-b\n\n"
        "broken (dist-broken 1.0): broken\n"
        "  error      plugin 'broken' (dist-broken 1.0): pkg_broken:PLUGIN: ZeroDivisionError:"
        " division by zero\n"
    )
    rows = json.loads(site.ok("fly-llc", "--list-plugins", "--json", FLY_PLUGINS="a"))
    assert [(row["id"], row["state"], row["by"]) for row in rows[:2]] == [
        ("a", "active", "FLY_PLUGINS"),
        ("broken", "broken", ""),
    ]
    assert rows[0]["distribution"] == "dist-a"
    assert rows[0]["slots"] == ["opt.end"]
    assert site.ok("fly-link", "--list-plugins").startswith(b"a (dist-a 3): available\n")


def test_list_plugins_without_any(site):
    shown = site.ok("fly-trace", "--list-plugins")
    assert shown.startswith(b"no plugins are installed\n\nrocm (fly-filters ")
    assert shown.count(b"): built in\n") == shown.count(b"): ")


def test_a_printed_pipeline_runs_by_itself(site):
    """With the owner of each segment as a comment, and the same bytes without any plugin active."""
    site.advertise("hello", "fly_hello:PLUGIN", "fly_hello")
    shutil.copytree(HELLO / "fly_hello", site.folder / "fly_hello")
    late = {"llc.end": "pkg_late.f:make", "opt.end": "pkg_late.f:TEXT"}
    site.install("late", f"slots={late}", f="TEXT = 'cse'\ndef make(): return bytes")
    module = site.ok("fly-trace", VECTOR_ADD)
    flags = ("--plugin=hello", "--hello-factor=3", "--plugin=late", "--target", "gfx942")
    text = site.ok("fly-opt-py", *flags, "--print-pipeline").decode()
    assert (
        "  // opt.before-layout-lowering: plugin 'hello' (fly-hello 0.1.0)\n"
        "  fly_hello.lower:Lower{factor=3},\n"
        "  // fly-opt-py\n"
        "  fly-layout-lowering,\n"
    ) in text
    assert "  // opt.end: plugin 'late' (dist-late 1.0)\n  cse,\n  // fly-opt-py\n" in text
    whole = site.ok("fly-opt-py", *flags, input=module)
    assert b'!"late@1.0"' in whole
    assert site.ok("fly-opt-py", "--passes", text, input=module) == whole


def test_without_plugins_a_pipeline_prints_as_before(site):
    site.advertise("hello", "fly_hello:PLUGIN", "fly_hello")
    shown = site.ok("fly-opt-py", "--target", "gfx942", "--print-pipeline").decode()
    assert "//" not in shown
    assert "plugins" not in shown
    assert "slot" not in shown


def test_a_target_of_a_plugin(site):
    content = """
from fly_common.record import replace
from fly_target.amd.chips import CHIPS
MINE = replace(next(one for one in CHIPS if one.name == "gfx942"), name="mine")
"""
    site.install("t", "targets={'mine': 'pkg_t.chip:MINE'}", chip=content)
    module = site.ok("fly-trace", VECTOR_ADD)
    made = site.ok("fly-opt-py", "--plugin=t", "--target", "mine", input=module)
    assert b'"target-cpu"="gfx942"' in made
    assert "unknown target 'mine'" in site.error("fly-opt-py", "--target", "mine", input=module)[1]


def test_flags_may_have_their_values_behind_them(site):
    site.advertise("hello", "fly_hello:PLUGIN", "fly_hello")
    shutil.copytree(HELLO / "fly_hello", site.folder / "fly_hello")
    words = ("fly-opt-py", "--hello-factor", "7", "--plugin", "hello", "--target", "gfx942")
    assert "Lower{factor=7}" in site.ok(*words, "--print-pipeline").decode()
    # Passes of active plugins are flags too.
    module = site.ok("fly-trace", "--plugin=hello", HELLO / "kernel.py")
    made = site.ok("fly-opt-py", "--plugin=hello", "--hello-lower=factor=9", input=module)
    assert b"9.000000e+00" in made
    assert b"hello.scale" not in made


def test_list_passes_has_those_of_active_plugins(site):
    site.advertise("hello", "fly_hello:PLUGIN", "fly_hello")
    shutil.copytree(HELLO / "fly_hello", site.folder / "fly_hello")
    shown = site.ok("fly-opt-py", "--plugin=hello", "--list-passes").decode()
    assert "Replaces hello.scale by arith.mulf with a constant." in shown
    assert b"hello" not in site.ok("fly-opt-py", "--list-passes")


def test_a_device_of_a_plugin(site):
    """fly-run takes plugins too."""
    content = """
from fly_run.emulator.machine import Emulator

def open_loud(target, options):
    print("loud: opened")
    return Emulator(target, options)
"""
    site.install("dev", "devices={'loud': 'pkg_dev.device:open_loud'}", device=content)
    image = pipe(site, "gfx942")["image"]
    words = ("fly-run", "-", "--device", "loud", *(f"{name}=zeros(100,f32)" for name in "AB"))
    done = site.run(words[0], "--plugin=dev", *words[1:], input=image)
    assert b"loud: opened" in done.stdout + done.stderr, done.stderr.decode()
    assert b"no such device" in site.run(*words, input=image).stderr


def test_a_summary_of_a_plugin(site):
    """It gets the launches, with --stats their figures; its errors name it."""
    content = """
def summary(run, options):
    (launch,) = run.launches
    counted = launch.statistics and launch.statistics["flops"]["vector"]
    return f"{run.device} {run.image.target} {launch.kernel} {launch.grid} {counted}\\n"

def broken(run, options):
    return 1 / 0
"""
    site.install("r", "summaries={'r': 'pkg_r.f:summary'}", f=content)
    image = pipe(site, "gfx942")["image"]
    words = ("fly-run", "-", "--plugin=r", "-q", *(f"{name}=zeros(600,f32)" for name in "AB"))
    kernel = b"vector_add_kernel (3, 1, 1)"
    for flags, counted in (((), b"None"), (("--bench",), b"None")):
        done = site.run(*words, *flags, input=image)
        assert (done.returncode, done.stdout) == (0, b"")
        assert done.stderr.endswith(b"emulator gfx942 " + kernel + b" " + counted + b"\n")
    done = site.run(*words, "--stats", "--json", input=image)
    assert done.stderr == b"emulator gfx942 " + kernel + b" 600\n"
    assert json.loads(done.stdout)["launches"][0]["flops"] == {"vector": 600, "matrix": 0}
    site.install("r", "summaries={'r': 'pkg_r.f:broken'}", f=content)
    _, said, _ = site.error(*words, input=image)
    assert said == "plugin 'r' (dist-r 1.0): summary r: ZeroDivisionError: division by zero"


def test_an_option_that_a_tool_has(site):
    content = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Options:
    process: bool = False
"""
    site.install("in", "options='pkg_in.f:Options'", f=content)
    _, said, _ = site.error("fly-llc", "--plugin=in")
    assert said == "--in-process is an option of the plugin 'in' (dist-in 1.0) and of fly-llc"
    assert site.ok("fly-link", "--plugin=in", "--in-process", "--version")


def test_a_pass_builds_operations_of_a_dialect_that_nobody_has_loaded(site):
    content = """
from dataclasses import dataclass
from typing import ClassVar
from fly_dialect.bindings import ir
from fly_opt.passes.base import Pass

@dataclass(frozen=True)
class Complex(Pass):
    '''Builds a complex number.'''
    name: ClassVar[str] = "complex"
    builds: ClassVar[tuple[str, ...]] = ("complex",)

    def run(self, op):
        number = ir.Type.parse("complex<f32>")
        value = ir.Attribute.parse("[1.0 : f32, 0.0 : f32]")
        at = {"loc": op.location, "ip": ir.InsertionPoint.at_block_begin(op.regions[0].blocks[0])}
        made = ir.Operation.create("complex.constant", [number], attributes={"value": value}, **at)
        assert op.context.is_registered_operation(made.name)
"""
    site.install("c", "passes={'complex': 'pkg_c.f:Complex'}", f=content)
    made = site.ok("fly-opt-py", "--plugin=c", "--complex", input=b"module attributes {x.a} {}")
    assert b"complex.constant" in made
