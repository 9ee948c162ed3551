"""Plugins on the tools' command lines and in the environment, through pipes of processes."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from fly_image.elf import Elf
from plugins import EXAMPLES, HELLO, Site

TOOLS = ("fly-trace", "fly-opt-py", "fly-llc", "fly-link", "fly-run")
VECTOR_ADD = EXAMPLES / "vector_add.py"
# A pass, a filter of each kind of bytes, and a filter of MIR, that change nothing but a counter.
BUSY = {
    "slots": """
import os

def note(name):
    def content(*_):
        def run(data):
            with open(os.environ["NOTES"], "a") as file:
                file.write(f"{name}\\n")
            return data
        return run
    return content

llvm_begin, llvm_end, llc_begin, llc_end = map(
    note, ("llvm.begin", "llvm.end", "llc.begin", "llc.end"))
point, link_begin, link_end = map(note, ("llc.pre-emit", "link.begin", "link.end"))

def passes(name):
    return lambda: f"busy-note{{slot={name}}}"
trace_end, begin, host_begin, host_end = map(
    passes, ("trace.end", "opt.begin", "host.begin", "host.end"))
before, after, atoms, gpu, end = map(passes, (
    "opt.before-layout-lowering", "opt.after-layout-lowering", "opt.before-atoms",
    "opt.before-gpu-lowering", "opt.end"))
""",
    "note": """
import os
from dataclasses import dataclass
from typing import ClassVar
from fly_opt.passes.base import Pass

@dataclass(frozen=True)
class Note(Pass):
    '''Notes that it ran.'''
    name: ClassVar[str] = "busy-note"
    slot: str = ""

    def run(self, op):
        with open(os.environ["NOTES"], "a") as file:
            file.write(f"{self.slot}\\n")
""",
}
SLOTS = {
    "trace.end": "trace_end",
    "opt.begin": "begin",
    "host.begin": "host_begin",
    "host.end": "host_end",
    "opt.before-layout-lowering": "before",
    "opt.after-layout-lowering": "after",
    "opt.before-atoms": "atoms",
    "opt.before-gpu-lowering": "gpu",
    "opt.end": "end",
    "llvm.begin": "llvm_begin",
    "llvm.end": "llvm_end",
    "llc.begin": "llc_begin",
    "llc.pre-emit": "point",
    "llc.end": "llc_end",
    "link.begin": "link_begin",
    "link.end": "link_end",
}


def install_busy(site: Site) -> None:
    slots = {slot: f"pkg_busy.slots:{name}" for slot, name in SLOTS.items()}
    passes = {"busy-note": "pkg_busy.note:Note"}
    site.install("busy", f"slots={slots}, passes={passes}", **BUSY)


def pipe(site: Site, target: str, *flags: str, **env: str) -> dict[str, bytes]:
    """The output of each stage of a whole pipe."""
    made = {"mlir": site.ok("fly-trace", *flags, VECTOR_ADD, **env)}
    made["ll"] = site.ok("fly-opt-py", *flags, "--target", target, input=made["mlir"], **env)
    made["opt.ll"] = site.ok("opt", "-S", "-O3", input=made["ll"], **env)
    made["o"] = site.ok("fly-llc", *flags, input=made["opt.ll"], **env)
    made["image"] = site.ok("fly-link", *flags, input=made["o"], **env)
    return made


def code(data: bytes) -> object:
    """An object or image without the stamps of plugins, and what counts sections; PTX without the
    sections in its comments."""
    if not data.startswith(b"\x7fELF"):
        return re.sub(rb"^[ \t]*//\.fly.*\n", b"", data, flags=re.MULTILINE)
    names = (".fly.plugins", ".shstrtab", ".strtab", ".symtab", "")
    sections = Elf.parse(data).sections
    return {one.name: one.data for one in sections if one.name not in names}


@pytest.mark.parametrize("target", ["gfx942", "sm_90a"])
def test_the_environment_reaches_each_slot_of_a_pipe(site, tmp_path, target):
    """Each slot runs, in the order in which it is listed, and nothing else changes."""
    install_busy(site)
    notes = tmp_path / "notes"
    found = pipe(site, target, FLY_PLUGINS="busy", NOTES=str(notes))
    plain = pipe(site, target)
    assert notes.read_text().split() == list(SLOTS)
    # Objects name the plugins with something at the link; PTX carries the LLVM IR too.
    assert code(found["o"]) == code(plain["o"])
    assert target == "sm_90a" or code(found["image"]) == code(plain["image"])
    listed = site.ok("fly-llc", "--plugin=busy", "--list-slots").decode().splitlines()
    assert [line.split()[0] for line in listed if line.endswith("[busy]")] == list(SLOTS)


def test_what_holds_at_each_slot_holds(site, tmp_path):
    """--verify-slots finds nothing at the slots of pipes that only look."""
    install_busy(site)
    notes = str(tmp_path / "notes")
    for target in ("gfx942", "sm_90a"):
        pipe(site, target, FLY_PLUGINS="busy", FLY_VERIFY_SLOTS="1", NOTES=notes)


def test_verify_slots_finds_what_a_plugin_breaks(site):
    slots = {"opt.end": "pkg_bad.f:PIPELINE"}
    passes = {"bad-op": "pkg_bad.make:Make"}
    make = """
from dataclasses import dataclass
from typing import ClassVar
from fly_opt.passes.base import Pass

@dataclass(frozen=True)
class Make(Pass):
    '''Makes an operation that is too late.'''
    name: ClassVar[str] = "bad-op"

    def run(self, op):
        from fly_dialect.bindings import ir
        made = []
        op.walk(lambda one: (made.append(one.operation), ir.WalkResult.ADVANCE)[1])
        ret = next(one for one in made if one.name == "llvm.return")
        i32 = ir.IntegerType.get_signless(32)
        one = {"value": ir.IntegerAttr.get(i32, 1)}
        at = {"loc": ret.location, "ip": ir.InsertionPoint(ret)}
        ir.Operation.create("arith.constant", [i32], attributes=one, **at)
"""
    site.install("bad", f"slots={slots}, passes={passes}", make=make, f="PIPELINE = 'bad-op'")
    module = site.ok("fly-trace", "--plugin=bad", VECTOR_ADD)
    words = ("fly-opt-py", "--plugin=bad", "--verify-slots", "--target", "gfx942")
    code, said, _ = site.error(*words, input=module)
    assert code == 1
    assert (
        "plugin 'bad' (dist-bad 1.0): pass fly-verify-slot: arith.constant is not allowed" in said
    )


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


def test_a_pipeline_without_the_slot(site):
    site.install("a", "slots={'opt.begin': 'pkg_a.f:TEXT'}", f="TEXT = 'cse'")
    site.install(
        "b",
        "backends={'bare': 'pkg_b.backend:BARE'}",
        backend="""
from fly_backend.amd import ROCM
from fly_common.record import replace
BARE = replace(ROCM, name="bare", compiles=("rocm",), lowering="pkg_b.lowering:LOWERING")
""",
        lowering="""
from fly_opt.backends.amd.lowering import RocmLowering
class Bare(RocmLowering):
    pipelines = {"bare": lambda target, debug_info: ("cse",)}
LOWERING = Bare()
""",
    )
    module = site.ok("fly-trace", VECTOR_ADD)
    words = ("fly-opt-py", "--plugin=b", "--backend", "bare", "--target", "gfx942")
    assert site.ok(*words, "--emit", "mlir", input=module)
    code, said, rest = site.error(*words, "--plugin=a", input=module)
    assert (code, said) == (
        2,
        "plugin 'a' (dist-a 1.0) is at the slot opt.begin, which the pipeline bare lacks",
    )
    assert "its slots are none" in rest
    # Without its plugin, there is no such backend.
    assert (
        "unknown backend 'bare'" in site.error("fly-opt-py", "--backend", "bare", input=module)[1]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no-such-pass", "unknown pass 'no-such-pass'"),
        ("cse(", "<pipeline>:1:4: this '(' is never closed"),
        ("hurt", "pass hurt: KeyError: 'x'"),
        ("hurt{how=refuse}", "pass hurt: not this one"),
        ("hurt{why=1}", "pass hurt: unknown option 'why'"),
        ("gpu.module(hurt)", "pass hurt runs on builtin.module, not on gpu.module"),
    ],
)
def test_errors_of_passes_name_the_plugin(site, text, said):
    hurt = """
from dataclasses import dataclass
from typing import ClassVar
from fly_opt.passes.base import Pass, refuse

@dataclass(frozen=True)
class Hurt(Pass):
    '''Fails.'''
    name: ClassVar[str] = "hurt"
    how: str = ""

    def run(self, op):
        raise refuse(op, "not this one") if self.how else KeyError("x")
"""
    slots, passes = {"opt.begin": "pkg_a.f:TEXT"}, {"hurt": "pkg_a.hurt:Hurt"}
    site.install("a", f"slots={slots}, passes={passes}", f=f"TEXT = {text!r}", hurt=hurt)
    module = site.ok("fly-trace", "--plugin=a", VECTOR_ADD)
    words = ("fly-opt-py", "--plugin=a", "--target", "gfx942")
    _, found, rest = site.error(*words, input=module)
    assert "plugin 'a' (dist-a 1.0): " in found
    assert said.rpartition("<pipeline>:1:4: ")[2] in found
    assert "Traceback" not in rest


def test_an_external_filter_at_an_mlir_slot(site, tmp_path):
    """The command reads and writes MLIR's generic form; the printed pipeline names it."""
    filter_ = tmp_path / "rename.py"
    filter_.write_text(
        "#!/usr/bin/env python3\nimport sys\n"
        "sys.stdout.write(sys.stdin.read().replace('vector_add_kernel', 'renamed'))\n"
    )
    filter_.chmod(0o755)
    content = f"from fly_plugin.manifest import Command\nFILTER = Command(({str(filter_)!r},))"
    site.install("ext", "slots={'opt.before-layout-lowering': 'pkg_ext.f:FILTER'}", f=content)
    module = site.ok("fly-trace", "--plugin=ext", VECTOR_ADD)
    words = ("fly-opt-py", "--plugin=ext", "--target", "gfx942")
    text = site.ok(*words, "--print-pipeline").decode()
    assert f'fly-external-filter{{command="{filter_}"}}' in text
    made = site.ok(*words, "--emit", "mlir", input=module)
    assert b"renamed" in made
    assert site.ok("fly-opt-py", "--passes", text, "--emit", "mlir", input=module) == made
    filter_.write_text("#!/bin/sh\necho why >&2; exit 3\n")
    code, said, _ = site.error(*words, input=module)
    assert code == 1
    assert "plugin 'ext' (dist-ext 1.0): pass fly-external-filter: " in said
    assert said.endswith("rename.py failed (exit status 3): why")


def test_filters_of_bytes_and_of_mir_may_be_commands(site):
    content = "from fly_plugin.manifest import Command\nFILTER = Command(('cat', '-'))"
    slots = dict.fromkeys(["llvm.begin", "llc.post-ra", "llc.end", "link.end"], "pkg_cat.f:FILTER")
    site.install("cat", f"slots={slots}", f=content)
    found, plain = (pipe(site, "gfx942", *flags)["image"] for flags in (("--plugin=cat",), ()))
    assert code(found) == code(plain)


@pytest.mark.parametrize(
    ("slot", "content", "said"),
    [
        ("llc.end", "X = 'cse'", "gives a str; the slot holds object, and takes a function"),
        ("opt.end", "def X(): return bytes", "the slot holds MLIR, and takes the text of a pipe"),
        ("llc.end", "def X(): return lambda data: 3", "the filter returned int, not bytes"),
        ("llc.end", "def X(): return lambda data: data.nix", "llc.end: AttributeError: 'bytes'"),
        ("llc.pre-emit", "def X(): return lambda data: b'x'", "printed something that is not MIR"),
        ("llc.end", "def X(): 1/0", "pkg_a.f:X: ZeroDivisionError: division by zero"),
        ("llc.pre-sched", "def X(): return bytes", "gfx942 has no point pre-sched"),
    ],
)
def test_a_content_that_does_not_fit_its_slot(site, slot, content, said):
    site.install("a", f"slots={{{slot!r}: 'pkg_a.f:X'}}", f=content)
    module = site.ok("fly-trace", VECTOR_ADD)
    tool = "fly-opt-py"
    if slot.startswith("llc"):
        ll = site.ok("fly-opt-py", "--target", "gfx942", input=module)
        tool, module = "fly-llc", ll
    words = (tool, "--plugin=a", *(("--target", "gfx942") if tool == "fly-opt-py" else ()))
    _, found, rest = site.error(*words, input=module)
    assert "plugin 'a' (dist-a 1.0): " in found
    assert said in found
    assert "Traceback" not in rest


def test_a_filter_by_name(site):
    """--insert POINT=NAME takes the filters of active plugins, with arguments."""
    content = "def main(text, words):\n    assert words == ('-x',), words\n    return text\n"
    site.install("f", "filters={'only-look': 'pkg_f.look:main'}", look=content)
    ll = site.ok("fly-opt-py", "--target", "gfx942", input=site.ok("fly-trace", VECTOR_ADD))
    plain = site.ok("fly-llc", input=ll)
    inserted = ("--insert", "post-ra=only-look -x")
    assert site.ok("fly-llc", "--plugin=f", *inserted, input=ll) == plain
    assert site.error("fly-llc", *inserted, input=ll)[1] == "there is no filter only-look"


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


def test_a_failure_says_how_to_repeat_it(site):
    site.advertise("hello", "fly_hello:PLUGIN", "fly_hello")
    shutil.copytree(HELLO / "fly_hello", site.folder / "fly_hello")
    words = ("fly-opt-py", "--plugin=hello", "--hello-factor=5", "--target=gfx942")
    _, _, rest = site.error(*words, input=b"module { nix }")
    assert "reproduce: fly-opt-py --plugin=hello --hello-factor=5 --target=gfx942 " in rest


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


def test_a_program_that_can_not_be_traced_without_its_plugin(site):
    _, said, rest = site.error("fly-trace", HELLO / "kernel.py")
    assert "fx has no 'hello'" in said
    assert "scaled asks for plugins that are not active: fly-trace --plugin=hello" in rest


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


def test_plugins_at_one_slot_run_in_the_order_of_their_activation(site):
    for name, text in (("a", "cse"), ("b", "canonicalize")):
        site.install(name, f"slots={{'opt.end': 'pkg_{name}.f:TEXT'}}", f=f"TEXT = {text!r}")
    for order in (("a", "b"), ("b", "a")):
        flags = [f"--plugin={name}" for name in order]
        words = ("fly-opt-py", *flags, "--target", "gfx942", "--print-pipeline")
        shown = site.ok(*words).decode()
        owners = re.findall(r"// opt\.end: plugin '(\w)'", shown)
        assert owners == list(order)
        listed = site.ok("fly-link", *flags, "--list-slots").decode()
        assert f"[{', '.join(order)}]" in listed


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


@pytest.mark.parametrize(
    ("slot", "tool", "content", "said"),
    [
        ("llvm.begin", "fly-opt-py", "b'define void @f() { ret i32 0 }'", "LLVM's verifier: "),
        ("llvm.begin", "fly-opt-py", "b'nix'", "the slot holds LLVM IR or LLVM bitcode, not"),
        ("llc.end", "fly-llc", "b'nix'", "the slot holds "),
    ],
)
def test_verify_slots_checks_bytes(site, slot, tool, content, said):
    site.install("a", f"slots={{{slot!r}: 'pkg_a.f:X'}}", f=f"def X(): return lambda _: {content}")
    data = site.ok("fly-trace", VECTOR_ADD)
    words = ["--target", "gfx942"] if tool == "fly-opt-py" else []
    if tool == "fly-llc":
        data = site.ok("fly-opt-py", "--target", "gfx942", input=data)
    _, found, _ = site.error(tool, "--plugin=a", "--verify-slots", *words, input=data)
    assert found.startswith(f"plugin 'a' (dist-a 1.0): {slot}: {said}")
    # Without it, the next stage finds out, or nobody.
    assert site.ok(tool, "--plugin=a", *words, input=data) == eval(content)
