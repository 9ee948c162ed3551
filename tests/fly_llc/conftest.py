"""IR and LLVM tools for the tests of code generation."""

import subprocess

import pytest
from fly_common.programs import toolchain
from fly_llc.codegen import llc as code_generation

TRIPLE = 'target triple = "amdgcn-amd-amdhsa"\n'


def small_kernel(cpu: str = "gfx942") -> str:
    """One load, one addition, one store."""
    return f"""{TRIPLE}
define amdgpu_kernel void @small(ptr addrspace(1) %p) #0 {{
  %v = load float, ptr addrspace(1) %p
  %w = fadd float %v, 1.0
  store float %w, ptr addrspace(1) %p
  ret void
}}

attributes #0 = {{ "target-cpu"="{cpu}" }}
"""


def large_kernel(cpu: str) -> str:
    """A loop with LDS, a barrier, a branch, a division, a private array and 48 values live across
    it: enough to exercise the scheduler, the allocator and the wait insertion."""
    alive = 48
    loads = "\n".join(
        f"  %a{n} = getelementptr float, ptr addrspace(1) %row, i32 {n * 67}\n"
        f"  %v{n} = load float, ptr addrspace(1) %a{n}"
        for n in range(alive)
    )
    sums = "\n".join(
        f"  %s{n} = call float @llvm.fma.f32(float %v{n}, float %x, float %s{n - 1})"
        for n in range(1, alive)
    )
    return f"""{TRIPLE}
@tile = internal addrspace(3) global [256 x float] poison

declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
declare float @llvm.fma.f32(float, float, float)

define amdgpu_kernel void @large(ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %n) #0 {{
entry:
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %row = getelementptr float, ptr addrspace(1) %in, i32 %id
  %private = alloca [16 x float], addrspace(5)
  %cell = getelementptr float, ptr addrspace(3) @tile, i32 %id
{loads}
  br label %loop

loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %latch ]
  %acc = phi float [ 0.0, %entry ], [ %acc1, %latch ]
  %slot = urem i32 %k, 16
  %spot = getelementptr float, ptr addrspace(5) %private, i32 %slot
  store float %acc, ptr addrspace(5) %spot
  store float %acc, ptr addrspace(3) %cell
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %mirror = xor i32 %id, 1
  %other = getelementptr float, ptr addrspace(3) @tile, i32 %mirror
  %x = load float, ptr addrspace(3) %other
  %positive = fcmp ogt float %x, 0.0
  br i1 %positive, label %then, label %latch

then:
  %s0 = fdiv float %x, %v0
{sums}
  br label %latch

latch:
  %acc1 = phi float [ %x, %loop ], [ %s{alive - 1}, %then ]
  %k1 = add i32 %k, 1
  %more = icmp slt i32 %k1, %n
  br i1 %more, label %loop, label %done

done:
  %last = load float, ptr addrspace(5) %private
  %result = fadd float %last, %acc1
  %to = getelementptr float, ptr addrspace(1) %out, i32 %id
  store float %result, ptr addrspace(1) %to
  ret void
}}

attributes #0 = {{ "target-cpu"="{cpu}" "amdgpu-flat-work-group-size"="256,256" }}
"""


def run_llvm(program: str, *arguments: str, data: bytes, stderr: bool = False) -> bytes:
    """Runs an LLVM program, using none of our code except the search for it. Returns its output, or
    its standard error."""
    done = subprocess.run(
        [toolchain.find_program(program), *arguments], input=data, capture_output=True, check=True
    )
    return done.stderr if stderr else done.stdout


@pytest.fixture
def small():
    return small_kernel


@pytest.fixture
def large():
    return large_kernel


@pytest.fixture
def llvm():
    return run_llvm


@pytest.fixture
def runs(monkeypatch) -> list[list[str]]:
    """The words of each run of llc."""
    found = []
    start = code_generation.start

    def recorded(words: list[str], data: bytes):
        found.append(list(words))
        return start(words, data)

    monkeypatch.setattr(code_generation, "start", recorded)
    return found
