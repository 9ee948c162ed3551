"""What the device does not run is refused when the image is loaded, by name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cpu_support import image, kernel
from fly_common.errors import InputError, MissingError
from fly_cpu import section
from fly_image.nvidia import ptx, ptx_image
from fly_run.cpu.device import Cpu


def message(text: str) -> str:
    with pytest.raises(InputError) as caught:
        Cpu("sm_90a").load(image(text))
    return caught.value.message


def test_an_intrinsic_that_the_device_lacks():
    text = kernel("  call void @llvm.nvvm.fence.proxy.alias()", 0)
    assert message(text) == "the device cpu has no llvm.nvvm.fence.proxy.alias"


def test_a_generic_intrinsic_that_the_device_lacks():
    body = """
  %v = call <4 x float> @llvm.masked.load.v4f32.p1(ptr addrspace(1) align 16 %p0,
    <4 x i1> <i1 true, i1 false, i1 true, i1 true>, <4 x float> zeroinitializer)
  store <4 x float> %v, ptr addrspace(1) %p0"""
    found = message(kernel(body, 1))
    assert found == (
        "the device cpu does not know the intrinsic llvm.masked.load.v4f32.p1, which is called"
    )


def test_a_function_that_is_not_in_the_module():
    text = "declare void @elsewhere(i32)\n" + kernel("  call void @elsewhere(i32 1)", 0)
    assert message(text) == "the device cpu does not know the function elsewhere, which is called"


def test_inline_assembly():
    body = '  %v = call i32 asm "bfe.u32 $0, $1, 1, 2;", "=r,r"(i32 5)\n'
    body += "  store i32 %v, ptr addrspace(1) %p0"
    assert message(kernel(body, 1)) == (
        "k has inline assembly, which can't run on the host: 'bfe.u32 $0, $1, 1, 2;'"
    )


def test_assembly_of_the_module():
    text = 'module asm ".global .u32 x;"\n' + kernel("  ret void", 0)
    assert "assembly of the module can't run on the host: " in message(text)


def test_no_section():
    whole = image(kernel("  ret void", 0))
    bare = ptx_image.read(whole.data.split(b"//.fly.section")[0])
    with pytest.raises(InputError) as caught:
        Cpu("sm_90a").load(bare)
    assert caught.value.message == (
        "the PTX has no section .fly.llvm, whose LLVM IR the device cpu compiles for the host"
    )
    assert caught.value.hint == (
        "fly-llc adds it; code of other compilers needs a GPU: --device cuda"
    )


@pytest.mark.parametrize("keep", [0, 3, 40, -4])
def test_a_truncated_section(keep):
    whole = image(kernel("  ret void", 0))
    text = whole.data.decode().split("//.fly.section")[0]
    bitcode = section.bitcode(whole)[:keep]
    cut = ptx_image.read(ptx.with_section(text, ".fly.llvm", bitcode).encode())
    with pytest.raises(InputError, match=r"section \.fly\.llvm"):
        Cpu("sm_90a").load(cut)


def test_a_section_of_another_kernel():
    one, other = image(kernel("  ret void", 0)), image(kernel("  ret void", 0, name="other"))
    with pytest.raises(InputError, match=r"the section \.fly\.llvm has no kernel 'k'"):
        Cpu("sm_90a").load(replace(one, sections=other.sections))
    wide = image(kernel("  ret void", 2))
    with pytest.raises(InputError, match=r"kernel 'k' has 0 parameters, but 2 in \.fly\.llvm"):
        Cpu("sm_90a").load(replace(one, sections=wide.sections))


def test_another_vendor_s_target():
    with pytest.raises(MissingError) as caught:
        Cpu("gfx942")
    assert caught.value.message == (
        "the device cpu runs code for NVIDIA's targets (sm_…), not for gfx942"
    )
    with pytest.raises(InputError, match="the code is for sm_90a, but the device was opened for"):
        Cpu("sm_80").load(image(kernel("  ret void", 0)))


def test_another_host(monkeypatch):
    from fly_run.cpu import compile as compiling

    monkeypatch.setattr(compiling.platform, "machine", lambda: "riscv64")
    compiling.check_host.cache_clear()
    try:
        with pytest.raises(MissingError, match="the device cpu does not run on riscv64 with Linux"):
            Cpu("sm_90a")
    finally:
        monkeypatch.undo()
        compiling.check_host.cache_clear()
