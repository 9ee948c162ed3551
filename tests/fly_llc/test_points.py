"""Stopping at a point and going on: the very bytes of an undisturbed run, at every point."""

import pytest
from fly_common.errors import InputError, UsageError
from fly_llc import Options, compile
from fly_llc.points import POINTS


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.after)
def test_going_on_is_exact(large, cpu, point):
    source = large(cpu).encode()
    for level in (1, 2, 3):
        mir = compile(source, Options("mir", level=level, stop_after=point.after))
        assert mir.startswith(f"# fly-llc: stopped after {point.after} at -O{level}\n".encode())
        assert compile(mir, Options()) == compile(source, Options(level=level))


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
        "fly-llc: error: k.ll: going on after finalize-isel would give other code than an "
        "undisturbed run\n"
        "  it is exact at no point for this module; llc -stop-after=finalize-isel shows the MIR "
        "there"
    )


def test_from_point_to_point(large):
    source = large("gfx942").encode()
    data = source
    for point in POINTS:
        data = compile(data, Options("mir", level=2, stop_after=point.after))
        assert data.startswith(f"# fly-llc: stopped after {point.after} at -O2".encode())
    assert compile(data, Options()) == compile(source, Options())


def test_the_last_point_is_the_default(small):
    assert compile(small().encode(), Options("mir")).startswith(
        b"# fly-llc: stopped after branch-relaxation at -O2\n"
    )


def test_mir_from_llc_needs_to_be_told(small, llvm):
    source = small().encode()
    mir = llvm("llc", "-mcpu=gfx942", "-stop-after=branch-folder", data=source)
    with pytest.raises(InputError, match="the MIR does not say where it was stopped"):
        compile(mir, Options())
    assert compile(mir, Options(start_after="branch-folder")) == compile(source, Options())


def test_no_way_back(small):
    mir = compile(small().encode(), Options("mir", stop_after="postmisched"))
    with pytest.raises(UsageError, match="can't stop after finalize-isel: the MIR was stopped"):
        compile(mir, Options("mir", stop_after="finalize-isel"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options("mir", stop_after="greedy"), "can't stop after greedy and go on exactly"),
        (Options("mir", stop_after="no-such"), "can't stop after no-such and go on exactly"),
        (Options(start_after="finalize-isel"), "--start-after goes on from MIR, and the input is"),
    ],
)
def test_refusals(small, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        compile(small().encode(), options)
    assert caught.value.hint
