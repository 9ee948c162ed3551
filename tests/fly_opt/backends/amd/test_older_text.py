"""LLVM IR text for LLVM 22 whose intrinsics LLVM 24 has changed."""

import pytest
from fly_common.errors import InputError
from fly_opt.backends.amd.older_text import bridge

NAME = "@llvm.amdgcn.tensor.load.to.lds"
FOUR = "<4 x i32>, <8 x i32>, <4 x i32>, <4 x i32>"
DECLARED = f"declare void {NAME}({FOUR}, <8 x i32>, i32 immarg) #1\n"
ZEROS = "<4 x i32> zeroinitializer"
CALLED = (
    f"  call void {NAME}(<4 x i32> %1, <8 x i32> %2, {ZEROS}, {ZEROS}, <8 x i32> {{}}, i32 3)\n"
)


def test_a_descriptor_has_four_groups() -> None:
    wanted = DECLARED.replace(", <8 x i32>, i32", ", i32") + CALLED.replace(", <8 x i32> {}", "")
    assert bridge(DECLARED + CALLED.format("zeroinitializer")) == wanted


@pytest.mark.parametrize("fifth", ["%3", "<i32 1, i32 0>"])
def test_a_fifth_group_is_refused(fifth: str) -> None:
    with pytest.raises(InputError, match="fifth group"):
        bridge(CALLED.format(fifth))
