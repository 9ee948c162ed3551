"""PTX for tests, and NVIDIA's programs as the judges of what is made of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from fly_common.programs import cuda_toolkit, toolchain
from fly_host import program, text
from fly_host.section import SECTION
from fly_image.nvidia import ptx

HEADER = ".version 8.8\n.target {target}\n.address_size 64\n"
PROGRAM = program.Program(
    entry="scale",
    target="sm_90a",
    parameters=(),
    expressions=(("const", 1),),
    steps=(program.Launch("scale", (0, 0, 0), (0, 0, 0), 0, ()),),
)

# Two kernels: one with shared memory and a bound of its block, one with a required block.
TWO = """
.visible .entry scale(
	.param .u64 .ptr .global .align 16 scale_param_0, // the array
	.param .f32 scale_param_1,
	.param .u8 scale_param_2,
	.param .align 16 .b8 scale_param_3[16]
)
.maxntid 128, 2, 1
{
	.reg .b32 	%r<4>;
	.reg .b64 	%rd<5>;
	.shared .align 4 .b8 buffer[1024];
	ld.param.b64 	%rd1, [scale_param_0];
	ld.param.b32 	%r1, [scale_param_1];
	mov.u32 	%r2, %tid.x;
	mul.wide.u32 	%rd2, %r2, 4;
	add.s64 	%rd3, %rd1, %rd2;
	ld.global.b32 	%r3, [%rd3];
	mov.b64 	%rd4, buffer;
	add.s64 	%rd4, %rd4, %rd2;
	st.shared.b32 	[%rd4], %r3;
	bar.sync 	0;
	mul.rn.f32 	%r3, %r3, %r1;
	st.global.b32 	[%rd3], %r3;
	ret;
}
.visible .entry nothing()
.reqntid 32, 4, 2
{
	ret;
}
"""


def module(body: str = TWO, target: str = "sm_90a", manifest: str = "") -> bytes:
    """PTX with these functions; `manifest` goes into the program's section."""
    made = HEADER.format(target=target) + body
    return (ptx.with_section(made, SECTION, manifest.encode()) if manifest else made).encode()


def manifest(target: str = "sm_90a", kernel: str = "scale") -> str:
    """The text of a host program that launches a kernel."""
    return (
        text.write(PROGRAM)
        .replace("sm_90a", target)
        .replace('"kernel":"scale"', f'"kernel":"{kernel}"')
    )


def from_llvm(source: str, target: str = "sm_90a") -> bytes:
    """What LLVM's llc makes of LLVM IR."""
    words = ["-O2", f"-mcpu={target}", "-mattr=+ptx88", "-o", "-", "-"]
    done = subprocess.run(
        [toolchain.find_program("llc"), *words],
        input=source.encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout


def ptxas(folder: Path, source: bytes, target: str = "sm_90a", *flags: str) -> tuple[bytes, str]:
    """The cubin that ptxas makes of a file, and what it says."""
    (folder / "judge.ptx").write_bytes(source)
    words = [cuda_toolkit.find_program("ptxas"), "-O3", f"-arch={target}", "-v", *flags]
    done = subprocess.run(
        [*words, folder / "judge.ptx", "-o", folder / "judge.cubin"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return (folder / "judge.cubin").read_bytes(), done.stderr


def disassembled(folder: Path, cubin: bytes) -> str:
    """What nvdisasm prints of a cubin, without our sections."""
    (folder / "shown.cubin").write_bytes(cubin)
    words = [cuda_toolkit.find_program("nvdisasm"), folder / "shown.cubin"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    ours = r"^//-+ \.fly\..*?(?=^//-|\Z)"
    return re.sub(ours, "", done.stdout, flags=re.MULTILINE | re.DOTALL).rstrip()
