"""Stopping at a point and going on: the very bytes of an undisturbed run, at every point."""

import pytest
from fly_common.errors import InputError, UsageError
from fly_llc import Options, compile
from fly_llc.points import POINTS


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.after)
def test_every_point_is_exact(large, cpu, point):
    source = large(cpu).encode()
    for level in point.levels:
        mir = compile(source, Options("mir", level=level, stop_after=point.after))
        assert mir.startswith(f"# fly-llc: stopped after {point.after} at -O{level}\n".encode())
        assert compile(mir, Options()) == compile(source, Options(level=level))


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
    assert compile(small().encode(), Options("mir", level=0)).startswith(
        b"# fly-llc: stopped after finalize-isel at -O0\n"
    )


def test_mir_from_llc_needs_to_be_told(small, llvm):
    source = small().encode()
    mir = llvm("llc", "-mcpu=gfx942", "-stop-after=prologepilog", data=source)
    with pytest.raises(InputError, match="the MIR does not say where it was stopped"):
        compile(mir, Options())
    assert compile(mir, Options(start_after="prologepilog")) == compile(source, Options())


def test_no_way_back(small):
    mir = compile(small().encode(), Options("mir", stop_after="postmisched"))
    with pytest.raises(UsageError, match="can't stop after finalize-isel: the MIR was stopped"):
        compile(mir, Options("mir", stop_after="finalize-isel"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options("mir", stop_after="greedy"), "can't stop after greedy and go on exactly"),
        (Options("mir", stop_after="no-such"), "can't stop after no-such and go on exactly"),
        (
            Options("mir", level=0, stop_after="prologepilog"),
            "can't stop after prologepilog at -O0 and go on exactly",
        ),
        (Options(start_after="finalize-isel"), "--start-after goes on from MIR, and the input is"),
    ],
)
def test_refusals(small, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        compile(small().encode(), options)
    assert caught.value.hint
