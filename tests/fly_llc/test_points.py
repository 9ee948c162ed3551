"""Stopping at a point and going on: the bytes of an undisturbed run, wherever it is granted."""

import re

import pytest
from chosen_targets import some
from fly_common.errors import InputError, UsageError
from fly_llc import Options, compile, listing
from fly_llc.codegen.points import machine_passes, named

NAMED = named("gfx942")

CPUS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
EXACT = [name for name in NAMED if name != "pre-ra"]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("point", EXACT)
def test_going_on_is_exact(large, cpu, point):
    source = large(cpu).encode()
    for level in (1, 2, 3) if cpu == "gfx942" else (2,):
        mir = compile(source, Options("mir", level=level, stop_before=point))
        assert re.match(rb"# fly-llc: stopped \w+ [\w,-]+ at -O%d\n" % level, mir)
        assert compile(mir, Options()) == compile(source, Options(level=level))


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("name", ["machine-scheduler", "postmisched", "si-insert-waitcnts"])
def test_at_any_machine_pass(large, side, name):
    source = large("gfx942").encode()
    mir = compile(source, Options("mir", **{f"stop_{side}": name}))  # type: ignore[arg-type]
    assert mir.startswith(f"# fly-llc: stopped {side} {name} at -O2\n".encode())
    assert compile(mir, Options()) == compile(source, Options())


CALL = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %x) #0 {
  %y = call i32 @helper(i32 %x)
  store i32 %y, ptr addrspace(1) %p
  ret void
}
define i32 @helper(i32 %x) #0 {
  %y = mul i32 %x, 7
  ret i32 %y
}
attributes #0 = { noinline "target-cpu"="gfx942" }
"""


def test_where_it_would_not_be_exact_it_is_refused(llvm):
    # llc compiles the callee first, and MIR lists functions as the module does.
    source = CALL.encode()
    mir = llvm("llc", "-mcpu=gfx942", "-stop-after=finalize-isel", data=source)
    assert compile(mir, Options(start_after="finalize-isel")) != compile(source, Options())
    with pytest.raises(InputError) as caught:
        compile(source, Options("mir", stop_after="finalize-isel"), "k.ll")
    assert caught.value.render("fly-llc") == (
        "fly-llc: error: k.ll: resuming after finalize-isel would give different code than an "
        "uninterrupted run\n"
        "  for this module, resuming is exact nowhere; llc -stop-after=finalize-isel shows the MIR "
        "there"
    )


def test_from_point_to_point(large):
    source = large("gfx942").encode()
    data = source
    for point in EXACT:
        data = compile(data, Options("mir", level=2, stop_after=point))
        assert b"at -O2" in data.partition(b"\n")[0]
    assert compile(data, Options()) == compile(source, Options())


def test_pre_emit_is_the_default(small):
    assert compile(small().encode(), Options("mir")).startswith(
        b"# fly-llc: stopped before branch-relaxation at -O2\n"
    )


def test_mir_from_llc_needs_to_be_told(small, llvm):
    source = small().encode()
    mir = llvm("llc", "-mcpu=gfx942", "-stop-after=branch-folder", data=source)
    with pytest.raises(InputError, match="the MIR does not say where it was stopped"):
        compile(mir, Options())
    assert compile(mir, Options(start_after="branch-folder")) == compile(source, Options())
    mir = llvm("llc", "-mcpu=gfx942", "-stop-before=greedy", data=source)
    assert compile(mir, Options(start_before="greedy")) == compile(source, Options())


def test_no_way_back(small):
    mir = compile(small().encode(), Options("mir", stop_after="postmisched"))
    with pytest.raises(
        UsageError,
        match="can't stop after finalize-isel: the MIR was already stopped after postmisched",
    ):
        compile(mir, Options("mir", stop_after="finalize-isel"))


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (Options("mir", stop_after="grady"), "has no machine pass grady", "did you mean greedy"),
        (Options("mir", stop_after="greedy,7"), "no machine pass greedy,7", "it runs 3 times"),
        (Options("mir", stop_after="zzz"), "no machine pass zzz", "--list-points lists them"),
        (Options("mir", level=0, stop_before="pre-sched2"), "no pre-sched2 at -O0", "before postm"),
        (Options(start_after="finalize-isel"), "--start-after resumes from MIR", "prints MIR"),
        (Options(start_before="pre-ra"), "--start-before resumes from MIR", "prints MIR"),
    ],
)
def test_refusals(small, options, message, hint):
    with pytest.raises(UsageError, match=message) as caught:
        compile(small().encode(), options)
    assert hint in (caught.value.hint or "")


def test_where_llvm_can_not_go_on(small):
    with pytest.raises(InputError, match="resuming after greedy would give different code"):
        compile(small().encode(), Options("mir", stop_after="greedy"))


def test_the_pipeline_is_the_same_on_every_processor():
    """What `points.named` relies on; and each named point's pass is there, at each level."""
    for level in (0, 1, 2, 3):
        (passes,) = {machine_passes(cpu, level) for cpu in CPUS}
        assert len(set(passes)) == len(passes)
        for one in NAMED.values():
            point = one.point if level else one.unoptimised
            assert point is None or point.machine_pass in passes
            if point and "," in point.machine_pass:  # the last run of it
                name, _, number = point.machine_pass.partition(",")
                assert f"{name},{int(number) + 1}" not in passes


@pytest.mark.heavy
@pytest.mark.parametrize("cpu", some(("gfx942",), "gfx1100"))
def test_the_list_is_found_by_trying(small, cpu):
    source = small(cpu).encode()
    text = listing.text(source, Options(), "k.ll")
    rows = {line.split()[0]: line.split() for line in text.splitlines()[3:] if line[:1].isalnum()}
    assert rows["finalize-isel"][1:3] == ["exact", "exact"]
    assert " ".join(rows["finalize-isel"][3:]) == "SSA, virtual registers (post-isel: after)"
    assert rows["greedy,2"][1:3] == ["exact", "-"]
    assert rows["prologepilog"][1:5] == ["exact", "exact", "physical", "registers"]
    assert "machinedomtree" not in rows  # an analysis
    # What the list says holds: the points that it calls exact give the same bytes.
    whole = compile(source, Options())
    for name in ("machine-scheduler", "postrapseudos", "virtregrewriter,2"):
        for side, said in zip(("before", "after"), rows[name][1:3], strict=True):
            if said == "exact":
                inserted = compile(source, Options(insert=(f"{side}:{name}=cat",)))
                assert inserted == whole
