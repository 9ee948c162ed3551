"""`fx.ffi.function`: functions of LLVM bitcode and of LLVM IR's text, called in kernels."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import FlyError, InputError, MissingError
from fly_common.programs import toolchain
from fly_opt.pipeline import stage
from fly_opt.pipeline.options import Options
from fly_target import registry

import fly
import fly.expr as fx
from fly.dependencies.hashing import dependency_hash
from primitives import TARGETS, run

PIPELINE = "builtin.module(fly-set-target{chip=gfx942},fly-emit-llvm)"
BODY = """
define float @scaled(float %x, i32 %n) {
  %m = sitofp i32 %n to float
  %y = fmul float %x, %m
  %z = call float @shifted(float %y)
  ret float %z
}
define internal float @shifted(float %y) noinline { %z = fadd float %y, 0.5
  ret float %z
}
define <2 x i32> @turned(<2 x i32> noundef %v) local_unnamed_addr #3 {
  %w = shufflevector <2 x i32> %v, <2 x i32> poison, <2 x i32> <i32 1, i32 0>
  ret <2 x i32> %w
}
define void @unused() { ret void
}
attributes #3 = { nounwind "target-cpu"="generic" }
"""


def module(target: str, body: str = BODY) -> str:
    chip = registry.get(target)
    assert chip is not None
    return f'target datalayout = "{chip.data_layout}"\ntarget triple = "{chip.triple}"\n{body}'


def written(folder: Path, target: str, form: str = "ll", body: str = BODY) -> Path:
    path = folder / f"functions.{form}"
    data = module(target, body).encode()
    if form == "bc":
        done = toolchain.run_program("llvm-as", ["-o", "-", "-"], data)
        assert done.returncode == 0, done.stderr
        data = done.stdout
    path.write_bytes(data)
    return path


def scaled_of(path: Path):
    return fx.ffi.function(
        "scaled", arguments=[fx.Float32, fx.Int32], result=fx.Float32, bitcode=path
    )


@pytest.mark.parametrize("form", ["ll", "bc"])
@pytest.mark.parametrize("target", TARGETS)
def test_calls(target, form, tmp_path):
    path = written(tmp_path, target, form)
    scaled = scaled_of(path)
    turned = fx.ffi.function("turned", arguments=[fx.Int32x2], result=fx.Int32x2, bitcode=str(path))
    x = np.arange(64, dtype="f4")
    y, z = np.zeros_like(x), np.zeros((2, 64), "i4")

    def body(A, B, C):
        i = fx.thread_idx.x
        B[i] = scaled(A[i], i) + scaled(2, 3)
        if i > 3:
            C[0, i], C[1, i] = turned(fx.Vector.from_elements([i, i + 100]))

    run(body, x, y, z, block=64, target=target)
    np.testing.assert_array_equal(y, x * x + 0.5 + 6.5)
    number = np.arange(64)
    wanted = np.where(number > 3, [number + 100, number], 0)
    np.testing.assert_array_equal(z, wanted)


KERNEL = """
import fly
import fly.expr as fx

scaled = fx.ffi.function(
    "scaled", arguments=[fx.Float32, fx.Int32], result=fx.Float32, bitcode="functions.bc"
)

@fly.kernel
def kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = scaled(A[fx.thread_idx.x], 4)

@fly.jit
def entry(A: fx.Tensor[fx.Float32, 64]):
    kernel(A).launch(grid=1, block=64)
"""


def pipe(tmp_path: Path, *command: str, given: bytes = b"") -> bytes:
    tool = Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [tool, *command[1:]], input=given, capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_the_pipe_carries_the_file_and_links_what_is_needed(tmp_path):
    path = written(tmp_path, "gfx942", "bc")
    (tmp_path / "k.py").write_text(KERNEL)
    traced = pipe(tmp_path, "fly-trace", "k.py")
    path.unlink()
    text = pipe(tmp_path, "fly-opt-py", "--target", "gfx942", given=traced).decode()
    assert re.search(r"define internal float @scaled\(.*#", text)
    assert "define internal float @shifted(" in text
    assert "@unused" not in text
    assert "@turned" not in text
    groups = re.findall(r"^attributes #\d+ = .*", text, re.MULTILINE)
    assert all('"target-cpu"="gfx942"' in one for one in groups if "target-cpu" in one)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ("", "fly.bitcode_file names file 0 of 0"),
        ('{file = "f.ll"}', "fly.bitcode is a list of {file, text} and {file, base64}"),
        ('{file = "f.bc", base64 = "?"}', "fly.bitcode is a list of {file, text} and"),
        ('"f.ll"', "fly.bitcode is a list of {file, text} and {file, base64}"),
    ],
)
def test_a_wrong_attribute_is_an_error(files, message):
    source = f"""module attributes {{fly.bitcode = [{files}]}} {{
  llvm.func @scaled(f32) -> f32 attributes {{fly.bitcode_file = 0 : i64}}
}}
"""
    with pytest.raises(InputError, match=re.escape(message)):
        stage.compile(source.encode(), Options(passes=PIPELINE), "k.mlir")


def test_a_function_may_need_the_device_libraries(tmp_path):
    body = """
declare float @__ocml_tanh_f32(float)
define float @scaled(float %x, i32 %n) {
  %y = call float @__ocml_tanh_f32(float %x)
  ret float %y
}
"""
    scaled = scaled_of(written(tmp_path, "gfx942", body=body))
    x = np.linspace(-4, 4, 64).astype("f4")
    y = np.zeros_like(x)

    def kernel(A, B):
        B[fx.thread_idx.x] = scaled(A[fx.thread_idx.x], 0)

    run(kernel, x, y, block=64, target="gfx942")
    np.testing.assert_allclose(y, np.tanh(x.astype("f8")), rtol=1e-6)


def test_the_contents_are_part_of_the_dependency_hash(tmp_path):
    digests = []
    for body in (BODY, BODY.replace("0.5", "0.25"), BODY):
        scaled = scaled_of(written(tmp_path, "gfx942", body=body))

        @fly.kernel
        def kernel(A: fx.Tensor, scaled=scaled):
            A[0] = scaled(A[0], 1)

        digests.append(dependency_hash(kernel.function).digest)
    assert digests[0] == digests[2]
    assert None not in digests
    assert digests[0] != digests[1]


def test_a_changed_file_is_compiled_again(tmp_path):
    found = []
    for added in ("0.5", "0.25"):
        scaled = scaled_of(written(tmp_path, "gfx942", body=BODY.replace("0.5", added)))

        def body(A, scaled=scaled):
            A[fx.thread_idx.x] = scaled(1, 1)

        x = np.zeros(64, "f4")
        run(body, x, block=64, target="gfx942")
        found.append(x[0])
    assert found == [1.5, 1.25]


def refused(function, *arguments, target="gfx942") -> str:
    def body(A):
        function(*arguments)
        A[0] = 0

    with pytest.raises(FlyError) as caught:
        run(body, np.zeros(64, "f4"), block=64, target=target)
    error = caught.value
    at = "" if error.place is None else f"{Path(error.place.file).name}: "
    return f"{at}{error.message}"


def declared(path, name="scaled", arguments=(fx.Float32, fx.Int32), result=fx.Float32):
    return fx.ffi.function(name, arguments=arguments, result=result, bitcode=path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "other"}, "{path} does not define other"),
        (
            {"result": fx.Float64},
            "scaled is declared as double (float, i32), but in {path} it is float (float, i32)",
        ),
        (
            {"arguments": (fx.Float32, fx.Float16x2)},
            "scaled is declared as float (float, <2 x half>), but in {path} it is float (float, "
            "i32)",
        ),
        (
            {"name": "turned", "arguments": (fx.Float32, fx.Int32)},
            "turned is declared as float (float, i32), but in {path} it is <2 x i32> (<2 x i32>)",
        ),
    ],
)
@pytest.mark.parametrize("form", ["ll", "bc"])
def test_other_types_and_missing_functions(form, changes, message, tmp_path):
    path = written(tmp_path, "gfx942", form)

    def function():
        kinds = changes.get("arguments", (fx.Float32, fx.Int32))
        given = [kind(1) for kind in kinds]
        return declared(path, **changes)(*given)

    assert refused(function) == f"test_ffi.py: {message.format(path=path)}"


def test_another_target(tmp_path):
    path = written(tmp_path, "sm_90a")
    assert refused(declared(path), 1, 2) == (
        f"test_ffi.py: {path} is for another target: its triple is nvptx64-nvidia-cuda, that of"
        " gfx942 is amdgcn-amd-amdhsa"
    )


def test_another_data_layout(tmp_path):
    path = tmp_path / "f.ll"
    path.write_text(f'target datalayout = "e-p:32:32"\n{BODY}')
    assert f"test_ffi.py: {path} is for another target: its data layout is e-p:32:32" in refused(
        declared(path), 1, 2
    )


def test_text_that_is_no_llvm_ir(tmp_path):
    path = tmp_path / "f.ll"
    path.write_text("define float @scaled(float %x, i32 %n) { ret flot %x\n}\n")
    assert refused(declared(path), 1, 2) == (
        f"test_ffi.py: {path} is not LLVM IR that opt reads: 1:46: expected type"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1,), "scaled takes 2 arguments, not 1"),
        ((1, 2.5), "argument 2 of scaled contains i32"),
        ((fx.Float32(1), fx.Vector), "an element of argument 2 of scaled must be a number"),
    ],
)
def test_arguments(arguments, message, tmp_path):
    assert message in refused(declared(written(tmp_path, "gfx942")), *arguments)


def test_two_functions_of_one_name(tmp_path):
    path = written(tmp_path, "gfx942")

    def both():
        declared(path)(1, 2)
        return declared(path, arguments=(fx.Float32, fx.Float32))(1, 2)

    assert "scaled is declared twice, with different types or files" in refused(both)


def test_declarations(tmp_path):
    with pytest.raises(MissingError, match=r"none\.bc: No such file or directory: the bitcode of"):
        declared(tmp_path / "none.bc")
    path = tmp_path / "f.bc"
    path.write_bytes(b"\x7fELF\xff")
    with pytest.raises(InputError, match="is neither LLVM bitcode nor the text of LLVM IR"):
        declared(path)
    for change, message in (
        ({"name": 3}, "fx.ffi.function takes the symbol of a function first, not the Python int"),
        ({"arguments": [float]}, "an argument of scaled is a type, such as fx.Float32"),
        ({"result": fx.Float8E5M2}, "the result of scaled can't be f8E5M2: LLVM has no such type"),
    ):
        with pytest.raises(InputError, match=message):
            declared(written(tmp_path, "gfx942"), **change)
