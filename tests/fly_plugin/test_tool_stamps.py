"""The stamps of plugins in what tools pass on, and programs that ask for plugins."""

from __future__ import annotations

import shutil

import pytest
from plugins import HELLO

from .plugins_at_slots import VECTOR_ADD, pipe


def test_no_plugin_from_the_input(site):
    """A module's stamp is compared and never imported."""
    site.install("trap", source="raise SystemExit('imported')")
    module = site.ok("fly-trace", VECTOR_ADD).decode()
    stamped = module.replace("{fly.entry", '{fly.plugins = ["trap@1.0"], fly.entry', 1)
    assert stamped != module
    code, said, rest = site.error("fly-opt-py", "--target", "gfx942", input=stamped.encode())
    assert (code, said) == (
        1,
        "<stdin>: the module was made with the plugin trap@1.0, which is not active",
    )
    assert rest.startswith("  fly-opt-py --plugin=trap, or FLY_PLUGINS=trap for all stages")
    # Without a target nothing is compiled, and the module is only printed.
    assert b"trap@1.0" in site.ok("fly-opt-py", input=stamped.encode())


def test_a_stamp_of_another_version(site):
    site.install("a", "version='2'")
    module = site.ok("fly-trace", "--plugin=a", VECTOR_ADD)
    site.install("a", "version='3'")
    words = ("fly-opt-py", "--plugin=a", "--target", "gfx942")
    _, said, _ = site.error(*words, input=module)
    assert said == "<stdin>: the module was made with the plugin a@2, and a@3 is active"


def test_a_program_asks_for_a_plugin(site, tmp_path):
    text = VECTOR_ADD.read_text().replace("@fly.jit", '@fly.jit(plugins=["wanted"])')
    (tmp_path / "k.py").write_text(text)
    module = site.ok("fly-trace", tmp_path / "k.py")
    assert b'fly.plugins = ["wanted"]' in module
    _, said, rest = site.error("fly-opt-py", "--target", "gfx942", input=module)
    assert said == "<stdin>: the module asks for the plugin wanted, which is not active"
    assert "fly-opt-py --plugin=wanted" in rest


def test_code_generation_checks_the_stamp_of_its_plugins(site):
    """LLVM IR names the plugins with something in a later stage, through opt too."""
    site.install("late", "slots={'llc.end': 'pkg_late.f:make'}", f="def make(): return bytes")
    site.install("early", "slots={'opt.end': 'pkg_early.f:TEXT'}", f="TEXT = 'cse'")
    flags = ("--plugin=late", "--plugin=early")
    module = site.ok("fly-trace", *flags, VECTOR_ADD)
    ll = site.ok("fly-opt-py", *flags, "--target", "gfx942", input=module)
    assert b'!{!"late@1.0"}' in ll
    assert b"early" not in ll
    optimised = site.ok("opt", "-S", "-O3", input=ll)
    code, said, _ = site.error("fly-llc", input=optimised)
    assert (code, said) == (
        1,
        "<stdin>: the module was made with the plugin late@1.0, which is not active",
    )
    assert site.ok("fly-llc", "--plugin=late", input=optimised).startswith(b"\x7fELF")


@pytest.mark.parametrize("target", ["gfx942", "sm_90a"])
def test_the_link_checks_the_stamp_of_its_plugins(site, target):
    """Objects and PTX name the plugins with something at the link."""
    make = "def make(): return lambda data: data"
    site.install("last", "slots={'link.end': 'pkg_last.f:make'}", f=make)
    site.install("late", "slots={'llc.end': 'pkg_late.f:make'}", f=make)
    made = pipe(site, target, "--plugin=late", "--plugin=last")
    assert b"last@1.0;" in made["o"]
    assert b"late@1.0;" not in made["o"]
    code, said, rest = site.error("fly-link", input=made["o"])
    assert (code, said) == (
        1,
        "<stdin>: the object was made with the plugin last@1.0, which is not active",
    )
    assert rest.startswith("  fly-link --plugin=last, or FLY_PLUGINS=last for all stages")
    assert site.ok("fly-link", "--plugin=last", input=made["o"]) == made["image"]
    site.install("last", "version='2', slots={'link.end': 'pkg_last.f:make'}", f=make)
    _, said, rest = site.error("fly-link", "--plugin=last", input=made["o"])
    assert said == "<stdin>: the object was made with the plugin last@1.0, and last@2 is active"
    assert rest.startswith("  make the object again with this version")
    # A plugin with nothing at the link leaves no section.
    other = pipe(site, target, "--plugin=late")["o"]
    assert b".fly.plugins" not in other
    assert site.ok("fly-link", input=other)


def test_the_link_names_the_object_of_several(site, tmp_path):
    site.install("last", "slots={'link.begin': 'pkg_last.f:make'}", f="def make(): return bytes")
    for name, flags in (("plain", ()), ("stamped", ("--plugin=last",))):
        (tmp_path / f"{name}.o").write_bytes(pipe(site, "gfx942", *flags)["o"])
    files = [tmp_path / "plain.o", tmp_path / "stamped.o"]
    _, said, _ = site.error("fly-link", *files)
    assert "stamped.o: the object was made with the plugin last@1.0, which is not" in said


def test_host_programs_name_the_plugins_they_were_made_with(site):
    site.advertise("hello", "fly_hello:PLUGIN", "fly_hello")
    shutil.copytree(HELLO / "fly_hello", site.folder / "fly_hello")
    module = site.ok("fly-trace", "--plugin=hello", HELLO / "kernel.py")
    words = ("fly-opt-py", "--plugin=hello", "--target", "gfx942", "--emit")
    assert site.ok(*words, "host", input=module).decode().endswith("\nplugins\n  hello@0.1.0\n")
    text = site.ok(*words, "host-llvm", input=module)
    assert b"!fly.plugins = " in text
    assert b'!{!"hello@0.1.0"}' in text
    assert site.ok("opt", "-S", "-O1", input=text)
    module = site.ok("fly-trace", VECTOR_ADD)
    for emit in ("host", "host-llvm"):
        words = ("fly-opt-py", "--target", "gfx942", "--emit", emit)
        assert b"plugins" not in site.ok(*words, input=module)


def test_a_program_that_can_not_be_traced_without_its_plugin(site):
    _, said, rest = site.error("fly-trace", HELLO / "kernel.py")
    assert "fx has no 'hello'" in said
    assert "scaled asks for plugins that are not active: fly-trace --plugin=hello" in rest
