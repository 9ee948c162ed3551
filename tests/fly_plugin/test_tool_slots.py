"""What plugins do at slots of the tools: passes, filters, their order, errors and checks."""

from __future__ import annotations

import re
import shutil

import pytest
from plugins import HELLO, Site

from .plugins_at_slots import VECTOR_ADD, code, pipe

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


def test_a_failure_says_how_to_repeat_it(site):
    site.advertise("hello", "fly_hello:PLUGIN", "fly_hello")
    shutil.copytree(HELLO / "fly_hello", site.folder / "fly_hello")
    words = ("fly-opt-py", "--plugin=hello", "--hello-factor=5", "--target=gfx942")
    _, _, rest = site.error(*words, input=b"module { nix }")
    assert "reproduce: fly-opt-py --plugin=hello --hello-factor=5 --target=gfx942 " in rest


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
