"""Pairs of f32 operations of values from other lanes, as packed instructions."""

import re

import numpy as np
import pytest
from fly_llc import Options, compile
from fly_llc.backends.amd import pairing
from fly_llc.codegen import ir_text

from . import random_reductions

PACKED = re.compile(rb"^\tv_pk_(?:add|mul)_f32", re.MULTILINE)
PLAIN = ("pair-f32",)
COUNT = 12

END = """
declare i32 @llvm.amdgcn.workitem.id.x() #1
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32 immarg) #1
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32) #1
declare float @llvm.fabs.f32(float) #1
declare void @llvm.amdgcn.s.barrier() #2
attributes #0 = { "target-cpu"="CPU" }
attributes #1 = { nounwind willreturn memory(none) }
attributes #2 = { convergent nounwind willreturn }
"""


def reductions(count: int, steps: str, cpu: str = "gfx942", before: str = "") -> bytes:
    """A kernel that reduces `count` values of a lane. `steps` are the lines for one of them: V is
    its value, W is for a result, N is its number."""
    lines = ["  %lane = call i32 @llvm.amdgcn.workitem.id.x()"]
    for number in range(count):
        lines += [
            f"  %a{number} = getelementptr float, ptr addrspace(1) %p, i32 {number * 100}",
            f"  %q{number} = getelementptr float, ptr addrspace(1) %a{number}, i32 %lane",
            f"  %l{number} = load float, ptr addrspace(1) %q{number}, align 4",
            f"  %v{number} = fmul float %l{number}, %l{number}",
        ]
    lines += [before] if before else []
    for number in range(count):
        lines += [
            steps.replace("V", f"v{number}").replace("W", f"w{number}").replace("N", str(number))
        ]
    lines += [f"  store float %w{n}, ptr addrspace(1) %q{n}, align 4" for n in range(count)]
    body = "\n".join(lines)
    return (
        'target triple = "amdgcn-amd-amdhsa"\n'
        f"define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {{\n{body}\n  ret void\n}}\n"
        + END.replace("CPU", cpu)
    ).encode()


BUTTERFLY = """  %iN = bitcast float %V to i32
  %sN = call i32 @llvm.amdgcn.ds.swizzle(i32 %iN, i32 16415)
  %fN = bitcast i32 %sN to float
  %mN = fadd float %V, %fN
  %jN = bitcast float %mN to i32
  %tN = call i32 @llvm.amdgcn.ds.swizzle(i32 %jN, i32 1055)
  %gN = bitcast i32 %tN to float
  %W = fadd float %gN, %mN"""


def packed(source: bytes, **options) -> int:
    """The number of packed instructions in the code of a module."""
    return len(PACKED.findall(compile(source, Options(emit="asm", **options))))


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(("count", "pairs"), [(1, 0), (2, 2), (3, 2), (4, 4)])
def test_two_reductions_are_one_of_pairs(cpu, count, pairs):
    assert packed(reductions(count, BUTTERFLY, cpu)) == pairs
    assert packed(reductions(count, BUTTERFLY, cpu), disable=PLAIN) == 0


@pytest.mark.parametrize("cpu", ["gfx908", "gfx1100", "gfx1201", "gfx1250"])
def test_other_targets_compile_what_they_are_given(cpu, llvm):
    source = reductions(2, BUTTERFLY, cpu)
    assert compile(source, Options()) == llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)


@pytest.mark.parametrize("operation", ["fadd", "fmul", "fsub"])
def test_operations(operation):
    assert packed(reductions(2, BUTTERFLY.replace("fadd", operation))) == 2


def test_one_wait_for_two_values():
    waits = [
        compile(reductions(2, BUTTERFLY), Options(emit="asm", disable=without)).count(b"lgkmcnt")
        for without in ((), PLAIN)
    ]
    assert waits[0] == waits[1] - 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # another permutation for each
        ("i32 16415", "i32 10NN"),
        # |x| and -x are part of an instruction that is not packed
        ("%fN = bitcast i32 %sN to float", "%eN = bitcast i32 %sN to float\n"
         "  %fN = call float @llvm.fabs.f32(float %eN)"),
        ("%fN = bitcast i32 %sN to float", "%eN = bitcast i32 %sN to float\n"
         "  %fN = fneg float %eN"),
    ],
)  # fmt: skip
def test_what_is_not_paired(old, new):
    source = reductions(2, BUTTERFLY.replace(old, new).replace("10NN", "105N"))
    assert packed(source) < 2


def test_products_that_llvm_fuses_with_sums_stay():
    """`fma(l, l, f)` is rounded once: with a pair of products it would be rounded twice."""
    fused = BUTTERFLY.replace("fadd float", "fadd contract float")
    source = reductions(2, fused).replace(b"= fmul float", b"= fmul contract float")
    plain, made = (
        compile(source, Options(emit="asm", disable=without)).count(b"v_fma")
        for without in (PLAIN, ())
    )
    assert plain == made == 2
    assert packed(source) == 1  # the second sums


def test_options_that_fuse_everything():
    assert packed(reductions(2, BUTTERFLY), flags=("-fp-contract=fast",)) == 0


def test_values_that_depend_on_each_other_are_not_paired():
    steps = BUTTERFLY + "\n  %V.next = fadd float %W, %W"
    source = reductions(2, steps).replace(b"%i1 = bitcast float %v1", b"%i1 = bitcast float %w0")
    assert packed(source) == 0


def test_order_of_memory_accesses_forbids_pairs():
    """The second reduction reads what the first one has stored."""
    between = b"""  store volatile float %w0, ptr addrspace(1) %q0, align 4
  %again = load volatile float, ptr addrspace(1) %q0, align 4
  %i1 = bitcast float %again to i32"""
    source = reductions(2, BUTTERFLY).replace(b"  %i1 = bitcast float %v1 to i32", between)
    assert packed(source) == 0


def test_level_0_and_bitcode(llvm):
    source = reductions(2, BUTTERFLY)
    assert compile(source, Options(level=0)) == llvm(
        "llc", "-mcpu=gfx942", "-O0", "-filetype=obj", data=source
    )
    assert packed(llvm("llvm-as", data=source)) == 2


def test_errors_are_about_the_module_that_was_given():
    from fly_common.errors import InputError

    source = reductions(2, BUTTERFLY).replace(
        b"ret void", b"%x = add i32 %lane, %nothing\n  ret void"
    )
    with pytest.raises(InputError) as raised:
        compile(source, Options())
    place = raised.value.place
    assert place is not None
    assert place.line is not None
    assert "%nothing" in source.decode().splitlines()[place.line - 1]


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("seed", range(3))
def test_random_kernels_compute_the_same(seed, cpu, tmp_path):
    source = random_reductions.module(seed, COUNT, cpu).encode()
    assert packed(source) > packed(source, disable=PLAIN)
    given = random_reductions.inputs(seed)
    plain, pairs = (
        random_reductions.results(compile(source, Options(disable=without)), COUNT, given, tmp_path)
        for without in (PLAIN, ())
    )
    np.testing.assert_array_equal(pairs, plain)


def test_numbered_values_and_blocks_get_names(llvm):
    """LLVM reads numbers only in the order of the lines."""
    source = random_reductions.module(5, COUNT)
    function = ir_text.FUNCTION.search(source)
    assert function
    text = ir_text.Function(function[0]).text({})
    assert not re.search(r"%\d", text)
    llvm("opt", "-passes=verify", "-S", data=(source.replace(function[0], text)).encode())


def test_the_order_keeps_groups_together():
    before = [[], [0], [], [2], [1], [3, 4]]
    order, wrong = ir_text.ordered(before, [(1, 3)])
    assert wrong is None
    assert order.index(3) == order.index(1) + 1
    places = {one: place for place, one in enumerate(order)}
    assert all(places[needed] < places[one] for one, all_ in enumerate(before) for needed in all_)


def test_groups_that_need_each_other_are_found():
    # (0, 3) and (1, 2): 2 needs 0, and 3 needs 1.
    order, wrong = ir_text.ordered([[], [], [0], [1]], [(0, 3), (1, 2)])
    assert not order
    assert wrong in ((0, 3), (1, 2))


def test_a_module_without_permutations_is_not_read(monkeypatch, large):
    monkeypatch.setattr(ir_text, "rewritten", None)
    compile(large("gfx942").encode(), Options())
    assert pairing.paired("", None, ()) is None  # type: ignore[arg-type]
