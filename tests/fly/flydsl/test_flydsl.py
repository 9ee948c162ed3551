"""fly.flydsl: FlyDSL's programs as they are, by each of the ways to run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx
from fly.flydsl._mlir import ir
from fly.flydsl._mlir.dialects import arith as mlir_arith
from fly.flydsl._mlir.dialects import fly as fly_dialect
from fly.flydsl._mlir.dialects import llvm
from fly.flydsl.compiler.ast_rewriter import ReplaceIfWithDispatch
from fly.flydsl.expr import arith, const_expr, gpu, range_constexpr, rocdl, vector
from fly.flydsl.expr.typing import T
from fly.flydsl.expr.typing import Vector as Vec

PROGRAM = """
import numpy as np
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import gpu
from flydsl.runtime.device import get_rocm_arch

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    i = gpu.block_idx.x * 64 + gpu.thread_idx.x
    if i < n:
        B[i] = A[i] + fx.Float32(1)

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    add(A, B, n).launch(grid=((n + 63) // 64, 1, 1), block=(64, 1, 1), stream=stream)

a = np.arange(100, dtype=np.float32)
b = np.zeros_like(a)
launch(a, b, 100)
print(get_rocm_arch(), (b == a + 1).all())
"""
MARK = fx.Stream(None)


@pytest.fixture(autouse=True)
def target(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.mark.usefixtures("shared_handlers")
@pytest.mark.parametrize("way", ["program", "module", "install", "import lines"])
def test_a_program_runs(way: str, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = {"program": ["-m", "fly.flydsl", "program.py"]}.get(way, ["program.py"])
    if way == "module":
        words = ["-m", "fly.flydsl", "-m", "program"]
    elif way == "install":
        program.write_text("import fly.flydsl.install\n" + PROGRAM)
    elif way == "import lines":
        text = PROGRAM.replace("import flydsl.", "import fly.flydsl.")
        program.write_text(text.replace("from flydsl.", "from fly.flydsl."))
    done = run(words, tmp_path)
    assert done.stdout == "gfx942 True\n", done.stderr


def test_errors_of_the_command_line(tmp_path: Path):
    done = run(["-m", "fly.flydsl", "missing.py"], tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("fly.flydsl: error: there is no program missing.py")
    assert run(["-m", "fly.flydsl"], tmp_path).returncode == 2


def test_a_missing_module_is_named(tmp_path: Path):
    (tmp_path / "program.py").write_text("import flydsl.nothing\n")
    done = run(["-m", "fly.flydsl", "program.py"], tmp_path)
    assert "fly.flydsl has no module flydsl.nothing (docs/flydsl.md)" in done.stderr


def results(kernel: Any, kind: Any = np.int32, count: int = 8, **given: Any) -> list[Any]:
    """What a kernel of one wave stores."""

    @flyc.jit
    def launch(out: fx.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(64, 1, 1), **given)

    found = np.zeros(count, kind)
    launch(found)
    return found.tolist()


def test_numbers_follow_flydsl():
    """A raw value of MLIR has no sign; FlyDSL's classes have their own rules."""

    @flyc.kernel
    def kernel(out: fx.Tensor):
        raw = arith.constant(-8, type=T.i32)
        out[0] = fx.Int32(raw >> arith.constant(1, type=T.i32))  # no sign
        out[1] = fx.Int32(-8) >> fx.Int32(1)
        out[2] = (fx.Int32(7) > fx.Uint32(3)).select(fx.Int32(1), fx.Int32(0))
        out[3] = fx.Int32(fx.Index(5) + 2)
        both = mlir_arith.addi(fx.Int32(40).ir_value(), arith.unwrap(fx.Int32(2)))
        out[4] = fx.Int32(both)
        out[5] = fx.Int32(mlir_arith.AddIOp(both, both).result)

    assert results(kernel) == [0x7FFFFFFC, -4, 1, 7, 42, 84, 0, 0]


def test_vectors_and_raw_builders():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        v = Vec.from_elements([fx.Int32(i) for i in range(4)], fx.Int32)
        out[0] = v[3]
        out[1] = v.reduce("add")
        out[2] = fx.Int32(vector.extract(v, static_position=[2], dynamic_position=[]))
        out[3] = v.bitcast(fx.Int16)[2].to(fx.Int32)
        w = Vec.filled(4, 5, fx.Int32) * v
        out[4] = w[1] + w[2]

    assert results(kernel) == [3, 6, 2, 1, 15, 0, 0, 0]


def test_instructions_that_flydsl_gives_another_form():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        out[0] = fx.Int32(rocdl.perm_b32(0x03020100, 0x07060504, 0x07060302))
        rocdl.s_nop(0)
        rocdl.s_setprio(fx.Int32(1))
        two = rocdl.cvt_pk_fp8_f32(T.i32, fx.Float32(1.0), 2.0, 0, False)
        out[1] = fx.Int32(two)

    assert results(kernel, np.uint32)[:2] == [0x03020706, 0x4840]


def test_a_dispatch_by_a_condition():
    dispatch = ReplaceIfWithDispatch.scf_if_dispatch

    @flyc.kernel
    def kernel(out: fx.Tensor):
        thread = gpu.thread_idx.x
        names, state = ("a", "b"), (fx.Int32(1), fx.Int32(2))
        kept = dispatch(
            thread < 4, lambda *_: None, lambda a, b: {"b": b + 5},
            state_names=names, state_values=state,
        )  # fmt: skip
        if thread < 8:
            out[thread] = kept[0] * 10 + kept[1]

    assert results(kernel) == [12] * 4 + [17] * 4


def test_a_helper_object_that_a_loop_assigns_to():
    class Helper:
        def __init__(self) -> None:
            self.count = 3

        def start(self, at: Any) -> None:
            self.at = lambda k: at * 10 + k

    @flyc.kernel
    def kernel(out: fx.Tensor, n: fx.Int32):
        helper = Helper()
        for i in range(n):
            helper.start(fx.Int32(i))
            total = fx.Int32(0)
            for k in range_constexpr(helper.count):
                total = total + helper.at(k)
            out[i] = total

    @flyc.jit
    def launch(out: fx.Tensor, n: fx.Int32):
        kernel(out, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(3, np.int32)
    launch(out, 3)
    assert out.tolist() == [3, 33, 63]


def test_copies_of_registers_of_another_type_take_the_bits():
    @flyc.kernel
    def kernel(A: fx.Tensor, out: fx.Tensor):
        atom = fx.make_copy_atom(fx.UniversalCopy(64), fx.Float16)
        held = fx.make_rmem_tensor(fx.make_layout(2, 1), fx.Int32)
        part = fx.slice(fx.logical_divide(A, fx.make_layout(4, 1)), (None, gpu.thread_idx.x))
        fx.copy_atom_call(atom, part, held)
        out[gpu.thread_idx.x] = held.load()[1]

    @flyc.jit
    def launch(A: fx.Tensor, out: fx.Tensor):
        kernel(A, out).launch(grid=(1, 1, 1), block=(2, 1, 1))

    a, out = np.arange(8, dtype=np.float16), np.zeros(2, np.int32)
    launch(a, out)
    assert out.tolist() == a.view(np.int32)[1::2].tolist()


def test_addresses_of_pointers_and_tensors():
    @flyc.kernel
    def kernel(A: fx.Pointer, out: fx.Tensor):
        kind = ir.Type.parse("!llvm.ptr<1>")
        for at, one in enumerate((A, out)):
            address = fly_dialect.extract_aligned_pointer_as_index(kind, one)
            found = llvm.load(T.i32, llvm.getelementptr(kind, address, [], [1], T.i32, None))
            out[2 + at] = fx.Int32(found)

    @flyc.jit
    def launch(A: fx.Pointer, out: fx.Tensor):
        kernel(A, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    a, out = np.array([7, 8], np.int32), np.array([5, 6, 0, 0], np.int32)
    launch(flyc.from_c_void_p(fx.Int32, a.ctypes.data), out)
    assert out.tolist() == [5, 6, 8, 6]


@fx.struct
class Shared:
    numbers: fx.Array[fx.Int32, 64, 16]


def test_shared_memory_and_structs():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        lds = fx.SharedAllocator().allocate(Shared).peek()
        thread = gpu.thread_idx.x
        fx.ptr_store(fx.Int32(thread) * 2, lds.numbers.ptr + fx.Int64(thread))
        gpu.barrier()
        if const_expr(True):  # noqa: SIM102
            if thread < 8:
                out[thread] = fx.ptr_load(lds.numbers.ptr + fx.Int64(63 - thread))

    assert results(kernel) == [2 * (63 - i) for i in range(8)]


def test_hints_and_the_handle():
    @flyc.kernel
    def kernel(out: fx.Tensor, n: fx.Constexpr[int]):
        out[gpu.thread_idx.x] = fx.Int32(n)

    @flyc.jit
    def launch(out: fx.Tensor, n: fx.Constexpr[int]):
        kernel(out, n).launch(grid=(1, 1, 1), block=(4, 1, 1))

    out = np.zeros(4, np.int32)
    handle = flyc.compile[{"waves_per_eu": 2, "fast_fp_math": True}](launch, out, 5)
    out[:] = 0
    handle(out, 5)
    assert out.tolist() == [5] * 4
    with pytest.raises(UsageError, match="there is no compile hint nothing"):
        flyc.compile[{"nothing": 1}](launch, out, 5)


def test_errors_name_the_line():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        out[0] = rocdl.nothing_at_all(T.i32)

    with pytest.raises(InputError, match=r"test_flydsl.py:\d+:\d+: .*rocdl has no nothing_at_all"):
        results(kernel)


_TYPE: Any = None


def _kept_type() -> Any:
    """A helper that keeps in a global what it has made once, as FlyDSL's MLA kernel does."""
    global _TYPE
    if _TYPE is None:
        _TYPE = fx.Int32
    return _TYPE


def test_a_helper_may_keep_what_it_makes_in_a_global():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        out[0] = _kept_type()(7)

    assert results(kernel)[0] == 7
    assert _TYPE is fx.Int32


def test_is_true_and_is_false_ask_whether_something_is_given():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        inside = fx.thread_idx.x < 2
        if inside is not False:
            out[0] = 5
        out[1] = 1 if inside is True else 2

    assert list(results(kernel)[:2]) == [5, 2]


def test_signs_of_numbers_and_classes_of_copies():
    @flyc.kernel
    def kernel(out: fx.Tensor):
        negative = fx.Int32(fx.thread_idx.x) - 8 - fx.Int32(fx.thread_idx.x)
        out[0] = fx.Int32(negative.with_signedness(False) // 4)

    assert results(kernel)[0] == (2**32 - 8) // 4
    assert isinstance(fx.rocdl.BufferCopy32b(), fx.rocdl.CopyOpCDNA3BufferCopyType)
    assert not isinstance(fx.UniversalCopy32b(), fx.rocdl.CopyOpCDNA3BufferCopyType)
