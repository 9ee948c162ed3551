"""The size of clusters that a launch gives becomes the kernel's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError
from fly_opt import Options, compile

CLUSTER = "clusters in (%c4, %c2, %c1)"
SOURCE = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @h(%size: i32 {fly.name = "size", fly.dtype = "i32"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %n = arith.index_cast %size : i32 to index
    gpu.launch_func @kernels::@k clusters in (%c4, %c2, %c1) blocks in (%n, %n, %c1)
      threads in (%c64, %c1, %c1)
    return
  }
}
"""
AMD, NVIDIA = '"amdgpu-cluster-dims"="4,2,1"', '"nvvm.cluster_dim"="4,2,1"'
KERNEL, TWICE = " kernel {", "    return\n"


def compiled(source: str, target: str) -> str:
    return compile(source.encode(), Options(target=target)).decode()


def marked(attribute: str) -> str:
    return SOURCE.replace(KERNEL, f" kernel attributes {{{attribute}}} {{")


@pytest.mark.parametrize(("target", "expected"), [("gfx1250", AMD), ("sm_90a", NVIDIA)])
@pytest.mark.parametrize(
    "source",
    [
        SOURCE,
        marked('rocdl.cluster_dims = "4,2,1"'),
        marked('fly.cluster_dims = "4,2"'),
        marked("nvvm.cluster_dim = array<i32: 4, 2, 1>"),
        # A launch without sizes has those of its kernel.
        marked('fly.cluster_dims = "4,2,1"').replace(CLUSTER, ""),
    ],
    ids=["launch", "rocdl", "fly", "nvvm", "kernel"],
)
def test_the_kernel_has_the_size(source: str, target: str, expected: str):
    assert expected in compiled(source, target)


def test_clusters_of_one_workgroup_are_none():
    module = compiled(SOURCE.replace(CLUSTER, "clusters in (%c1, %c1, %c1)"), "gfx942")
    assert "define amdgpu_kernel void @k" in module
    assert "cluster" not in module.partition("define amdgpu_kernel void @k")[2]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            marked('fly.cluster_dims = "2,4,1"'),
            "gfx1250",
            "a launch in clusters of 4×2×1 workgroups, but k is compiled for clusters of 2×4×1",
        ),
        (
            SOURCE.replace(CLUSTER, "clusters in (%c4, %c2, %n)"),
            "gfx1250",
            "the size of a cluster is computed",
        ),
        (
            SOURCE.replace(CLUSTER, "clusters in (%c4, %c0, %c1)"),
            "gfx1250",
            "a launch in clusters of 4×0×1 workgroups",
        ),
        (
            marked('rocdl.cluster_dims = "4,x"'),
            "gfx1250",
            'rocdl.cluster_dims = "4,x": expected one to three sizes, as in "2,1,1"',
        ),
        (
            SOURCE.replace(
                TWICE,
                "    gpu.launch_func @kernels::@k blocks in (%n, %n, %c1)"
                " threads in (%c64, %c1, %c1)\n    return\n",
            ),
            "gfx1250",
            "k is launched in clusters of 1×1×1 workgroups here, and of 4×2×1 before",
        ),
        (SOURCE, "gfx942", "gfx942 has no clusters of workgroups"),
    ],
    ids=["another size", "computed", "zero", "malformed", "two sizes", "no clusters"],
)
def test_refused(source: str, target: str, message: str):
    with pytest.raises(InputError) as caught:
        compiled(source, target)
    assert message in caught.value.message


# Each workgroup stores 10 times the greatest rank of its cluster, and its own rank.
RANKS = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @ranks(%out: !fly.memref<i32, global, (4,8):(8,1)>) kernel {
      %row = gpu.block_id y
      %column = gpu.block_id x
      %y = arith.index_cast %row : index to i32
      %x = arith.index_cast %column : index to i32
      %rank = llvm.call_intrinsic "RANK"() : () -> i32
      %last = llvm.call_intrinsic "LAST"() : () -> i32
      %ten = arith.constant 10 : i32
      %tens = arith.muli %last, %ten : i32
      %value = arith.addi %tens, %rank : i32
      %at = fly.make_int_tuple(%y, %x) : (i32, i32) -> !fly.int_tuple<(?,?)>
      fly.memref.store(%value, %out, %at)
        : (i32, !fly.memref<i32, global, (4,8):(8,1)>, !fly.int_tuple<(?,?)>) -> ()
      gpu.return
    }
  }
  func.func @h(%out: !fly.memref<i32, global, (4,8):(8,1)> {fly.name = "out"}) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %rows = arith.constant ROWS : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    gpu.launch_func @kernels::@ranks clusters in (%c4, %c2, %c1) blocks in (%c8, %rows, %c1)
      threads in (%c1, %c1, %c1) args(%out : !fly.memref<i32, global, (4,8):(8,1)>)
    return
  }
}
"""
AMDGPU = ("llvm.amdgcn.cluster.workgroup.flat.id", "llvm.amdgcn.cluster.workgroup.max.flat.id")
NVVM = ("llvm.nvvm.read.ptx.sreg.cluster.ctarank", "llvm.nvvm.read.ptx.sreg.cluster.nctarank")


def run(folder: Path, source: str, target: str, device: str) -> subprocess.CompletedProcess[str]:
    """Compiles a module by the pipe and runs it; the result is out.npy."""
    (folder / "ranks.mlir").write_text(source)
    command = (
        f"fly-opt-py --target {target} ranks.mlir | opt -S -O3 | fly-llc | fly-link -o image"
        f" && fly-run --device {device} -q image 'out=full((4,8),i32,-1):out.npy'"
    )
    tools = Path(sys.executable).parent
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )


def ranks(rows: int, names: tuple[str, str]) -> str:
    found = RANKS.replace("ROWS", str(rows))
    return found.replace("RANK", names[0]).replace("LAST", names[1])


# The greatest rank is 7; NVIDIA's register says how many workgroups a cluster has.
@pytest.mark.parametrize(
    ("target", "device", "names", "greatest"),
    [("gfx1250", "emulator", AMDGPU, 7), ("sm_90a", "cpu", NVVM, 8)],
)
def test_the_launch_is_in_clusters(tmp_path: Path, target, device, names, greatest: int):
    done = run(tmp_path, ranks(4, names), target, device)
    assert done.returncode == 0, done.stderr
    y, x = np.indices((4, 8))
    expected = 10 * greatest + x % 4 + 4 * (y % 2)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_a_grid_of_parts_of_clusters(tmp_path: Path):
    done = run(tmp_path, ranks(3, AMDGPU), "gfx1250", "emulator")
    assert done.returncode == 1
    expected = "a grid of 8×3 workgroups is not made of whole clusters, which have 4×2"
    assert f"fly-run: error: ranks: {expected}" in done.stderr
