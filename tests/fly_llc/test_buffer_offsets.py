"""Offsets into buffers that LLVM divides into a negative number and a constant."""

from __future__ import annotations

import numpy as np
import pytest
from fly_image.amd.code_object import CodeObject
from fly_link import link
from fly_llc import Options, compile
from fly_llc.backends.amd import buffer_offsets
from fly_llc.codegen import points
from fly_run.emulator.machine import Emulator
from oracle.launching.launch import pack

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
TURNS, ROW, COLUMN, STEP, APART = 5, 384, 768, 64, 12288  # bytes
LOADS = 3  # at each row and column: as many as LLVM needs to count from a negative number
X = np.arange(16384, dtype=np.int32)


def sums(cpu: str, bound: str = str(TURNS), operation: str = "raw") -> bytes:
    """A kernel that sums elements of a buffer, some of each lane's row and column in each turn, and
    uses the counter besides."""
    index = "i32 0, " if operation == "struct" else ""
    loads, total = [], "%sum"
    for side in ("row", "column"):
        loads.append(f"  %{side}.0 = add nuw nsw i32 %{side}, %step")
        for number in range(LOADS):
            at, value = f"%{side}.{number}", f"%{side}.value.{number}"
            if number:
                loads.append(f"  {at} = add nuw nsw i32 %{side}.0, {APART * number}")
            loads.append(
                f"  {value} = call i32 @llvm.amdgcn.{operation}.ptr.buffer.load.i32("
                f"ptr addrspace(8) %buffer, {index}i32 {at}, i32 0, i32 0)"
            )
            new = "%new" if (side, number) == ("column", LOADS - 1) else f"%{side}.sum.{number}"
            loads.append(f"  {new} = add i32 {total}, {value}")
            total = new
    body = "\n".join(loads)
    return f"""target triple = "amdgcn-amd-amdhsa"
@shared = internal addrspace(3) global [2 x i32] poison
define amdgpu_kernel void @sums(ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %count) #0 {{
entry:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %row = mul nuw nsw i32 %lane, {ROW}
  %left = and i32 %lane, 3
  %column = mul nuw nsw i32 %left, {COLUMN}
  %buffer = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(
      ptr addrspace(1) %in, i16 0, i64 4294967295, i32 {0x21027000 if cpu > "gfx10" else 0x27000})
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %new, %loop ]
  %next = add nuw nsw i64 %i, 1
  %short = trunc i64 %next to i32
  %step = mul nuw nsw i32 %short, {STEP}
{body}
  %odd = and i64 %i, 1
  %slot = getelementptr i32, ptr addrspace(3) @shared, i64 %odd
  store volatile i32 %new, ptr addrspace(3) %slot
  %done = icmp eq i64 %next, {bound}
  br i1 %done, label %end, label %loop
end:
  %place = zext nneg i32 %lane to i64
  %to = getelementptr i32, ptr addrspace(1) %out, i64 %place
  store i32 %new, ptr addrspace(1) %to
  ret void
}}
attributes #0 = {{ "target-cpu"="{cpu}" }}
""".replace("(\n      ", "(").encode()


def expected() -> np.ndarray:
    lane = np.arange(64)
    starts = [lane * ROW, lane % 4 * COLUMN]
    places = [
        start + STEP * (turn + 1) + APART * number
        for start in starts
        for turn in range(TURNS)
        for number in range(LOADS)
    ]
    return np.sum([X[place // 4] for place in places], axis=0, dtype=np.int32)


def run(code: bytes, cpu: str) -> np.ndarray:
    device, out = Emulator(cpu), np.zeros(64, np.int32)
    image = link([code])

    def bind(name: str, array: np.ndarray) -> int:
        return device.adopt(array.ctypes.data, array.nbytes, label=name)

    function = device.load(CodeObject.parse(image)).function("sums")
    packed = pack(image, "sums", [X, out, np.int64(TURNS)], bind)
    device.launch(function, (1, 1, 1), (64, 1, 1), packed)
    device.close()
    return out


@pytest.mark.parametrize("operation", ["raw", "struct"])
@pytest.mark.parametrize("cpu", CHIPS)
def test_a_loop_that_ends_at_zero(cpu, operation, llvm):
    """llc's own code is wrong for the lanes whose row begins below what the loop starts with."""
    source = sums(cpu, operation=operation)
    made = run(compile(source, Options()), cpu)
    np.testing.assert_array_equal(made, expected())
    plain = llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)
    wrong = np.flatnonzero(run(plain, cpu) != expected())
    # For gfx1250 LLVM itself computes such a sum in a register.
    assert [*wrong] == ([] if cpu == "gfx1250" else [one for one in range(64) if one % 4 == 0])


def test_a_number_of_turns_that_is_not_known(runs, llvm):
    source = sums("gfx942", bound="%count")
    made = compile(source, Options())
    assert len(runs) == 1
    assert made == llvm("llc", "-mcpu=gfx942", "-filetype=obj", data=source)
    np.testing.assert_array_equal(run(made, "gfx942"), expected())


@pytest.mark.parametrize("cpu", ["gfx942", "gfx1100"])
def test_a_number_of_turns_that_is_a_difference(cpu, llvm):
    """The loop begins with an argument, and ends with that plus a constant."""
    text = sums(cpu, bound="%last").decode()
    changes = {
        "phi i64 [ 0, ": "phi i64 [ %count, ",
        "  br label %loop\nloop:": "  %last = add i64 %count, 5\n  br label %loop\nloop:",
        "%short = trunc i64 %next": "%turn = sub i64 %next, %count\n  %short = trunc i64 %turn",
    }
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    source = text.encode()
    np.testing.assert_array_equal(run(compile(source, Options()), cpu), expected())
    plain = llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)
    assert np.any(run(plain, cpu) != expected())


def test_all_defects_show_before_one_pass():
    """`ir_defects.search` runs llc once, up to this pass."""
    for one in points.code_generations():
        assert len({defect.ir_pass for defect in one.ir_defects}) <= 1


FUNCTION = """define amdgpu_kernel void @f(ptr addrspace(8) %b, i32 %row, ptr addrspace(3) %l) {{
  br label %loop
loop:                                                ; preds = %loop, %0
  %i = phi i32 [ {start}, %0 ], [ %next, %loop ]
  %next = add nsw i32 %i, {step}
  %part = add i32 %row, %i
  %at = {at}
  {call}
  %done = icmp eq i32 %next, 0
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""
LOAD = (
    "%x = tail call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32"
    "(ptr addrspace(8) %b, i32 %at, i32 0, i32 0), !dbg !3"
)


def whole(start="-320", step="64", at="add i32 %part, 384", call=LOAD) -> str | None:
    return buffer_offsets.whole(FUNCTION.format(start=start, step=step, at=at, call=call))


BUFFER = "ptr addrspace(8) %b"


@pytest.mark.parametrize(
    ("call", "before", "after"),
    [
        ("raw.ptr.buffer.load.i32", BUFFER, "i32 0, i32 0), !dbg !3"),
        ("raw.ptr.buffer.store.v2i32", f"<2 x i32> splat (i32 1), {BUFFER}", "i32 %row, i32 0)"),
        ("struct.ptr.buffer.atomic.add.i32", f"i32 1, {BUFFER}, i32 %row", "i32 0, i32 0) #2"),
        (
            "raw.ptr.buffer.load.lds",
            f"{BUFFER}, ptr addrspace(3) %l, i32 4",
            "i32 0, i32 0, i32 0)",
        ),
        ("raw.ptr.tbuffer.load.f32", BUFFER, "i32 0, i32 22, i32 0)"),
    ],
)
def test_which_operand_is_computed(call, before, after):
    line = f"call i32 @llvm.amdgcn.{call}({before}, i32 "
    made = whole(call=f"{line}%at, {after}")
    assert made is not None
    computed = '%fly.offset.0 = call i32 asm "", "=v,0"(i32 %at)'
    assert f"  {computed}\n  {line}%fly.offset.0, {after}\n" in made


def test_which_offsets_are_divided():
    assert whole(start="0", step="-64")  # counts down
    assert whole(
        at="trunc i64 %wide to i32\n  %wide = add i64 %more, 8\n  %more = sext i32 %part to i64"
    )
    assert whole(start="0") is None
    assert whole(at="add i32 %part, -384") is None  # LLVM leaves negative constants alone
    assert whole(at="sub i32 %part, %row") is None
    assert whole(at="call i32 @other(i32 %part)") is None
    assert not buffer_offsets.may_occur("define void @f() {\n  ret void\n}\n")
