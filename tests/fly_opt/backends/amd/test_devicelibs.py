"""Mathematics: which way each function goes, and the device libraries inside the module."""

from __future__ import annotations

import re

import pytest
from chosen_targets import AMD, one_of_each
from fly_common.errors import InputError, MissingError
from fly_opt import Options, compile
from fly_opt.backends.amd import device_libraries
from fly_target.amd.facts import facts_of

UNARY = [
    "sin",
    "cos",
    "tan",
    "tanh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "erf",
    "erfc",
    "asinh",
    "acosh",
    "atanh",
    "atan",
    "asin",
    "acos",
    "sinh",
    "cosh",
    "cbrt",
    "ceil",
    "floor",
    "trunc",
    "round",
    "roundeven",
    "absf",
]
BINARY = [
    "math.powf",
    "math.atan2",
    "math.copysign",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "arith.remf",
]


def calling(kind: str, *operations: str) -> bytes:
    """A kernel that applies operations one after the other to a value from memory."""
    lines = [f"%v0 = llvm.load %p : !llvm.ptr<1> -> {kind}"]
    for number, operation in enumerate(operations):
        operands = f"%v{number}" if operation.removeprefix("math.") in UNARY else f"%v{number}, %v0"
        lines.append(f"%v{number + 1} = {operation} {operands} : {kind}")
    lines.append(f"llvm.store %v{len(operations)}, %p : {kind}, !llvm.ptr<1>")
    body = "\n      ".join(lines)
    return f"""module {{
  gpu.module @kernels {{
    gpu.func @k(%p: !llvm.ptr<1>) kernel {{
      {body}
      gpu.return
    }}
  }}
}}
""".encode()


@pytest.fixture(autouse=True)
def fresh_search():
    device_libraries.folder.cache_clear()
    yield
    device_libraries.folder.cache_clear()


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "vector<2xf32>"])
@pytest.mark.parametrize("level", [None, "-O3"])
def test_everything_compiles_to_an_object(kind, level, llvm):
    source = calling(kind, *(f"math.{name}" for name in UNARY), *BINARY)
    text = compile(source, Options(target="gfx942"))
    if level:
        text = llvm("opt", "-S", level, text=text)
    code = llvm("llc", "-mcpu=gfx942", "-filetype=obj", "-o", "-", text=text)
    assert code.startswith(b"\x7fELF")


@pytest.mark.parametrize(
    ("operation", "kind", "function"),
    [
        ("math.exp", "f32", "llvm.exp.f32"),
        ("math.exp2", "f32", "llvm.exp2.f32"),
        ("math.log", "f32", "llvm.log.f32"),
        ("math.log2", "f32", "llvm.log2.f32"),
        ("math.sqrt", "f32", "llvm.sqrt.f32"),
        ("math.sqrt", "f64", "llvm.sqrt.f64"),
        ("math.rsqrt", "f64", "llvm.sqrt.f64"),
        ("math.floor", "f16", "llvm.floor.f16"),
        ("math.ceil", "vector<2xf32>", "llvm.ceil.v2f32"),
        ("math.absf", "bf16", "llvm.fabs.bf16"),
        ("math.exp", "bf16", "llvm.exp.f32"),
        ("math.exp", "f16", "llvm.exp.f32"),
        ("math.sqrt", "bf16", "llvm.sqrt.f32"),
        ("math.sin", "f64", "__ocml_sin_f64"),
        ("math.tanh", "f64", "__ocml_tanh_f64"),
        ("math.exp", "f64", "__ocml_exp_f64"),
        ("math.powf", "f64", "__ocml_pow_f64"),
        ("arith.remf", "f64", "__ocml_fmod_f64"),
    ],
)
def test_which_way_a_function_goes(operation, kind, function):
    text = compile(calling(kind, operation), Options(target="gfx942", emit="mlir")).decode()
    called = re.findall(r'(?:llvm\.call @|call_intrinsic "|(?=llvm\.intr))([\w.]+)', text)
    assert called == [function]


def test_fast_math_flags_stay():
    source = calling("f32", "math.exp").replace(b"%v0 : f32", b"%v0 fastmath<afn,nnan> : f32")
    text = compile(source, Options(target="gfx942")).decode()
    assert re.search(r"call (nnan afn|afn nnan) float @llvm.exp.f32", text)


@pytest.mark.parametrize(
    ("op", "intrinsic"),
    [("math.exp2", "exp2.f32"), ("math.log2", "log.f32"), ("math.rsqrt", "rsq.f32")],
)
@pytest.mark.parametrize("kind", ["f32", "bf16", "vector<2xf32>"])
def test_approximations_are_the_hardwares(op, intrinsic, kind):
    def text(flags: str) -> str:
        source = calling(kind, op).replace(b"%v0 :", f"%v0 {flags} :".encode())
        return compile(source, Options(target="gfx942")).decode()

    call = f"call float @llvm.amdgcn.{intrinsic}("
    assert text("fastmath<afn>").count(call) == (2 if "vector" in kind else 1)
    assert call in text("fastmath<fast>")
    assert call not in text("fastmath<nnan>")


def test_there_are_no_approximations_of_f64():
    source = calling("f64", "math.rsqrt").replace(b"%v0 :", b"%v0 fastmath<afn> :")
    assert (
        "llvm.amdgcn" not in compile(source, Options(target="gfx942")).decode().split("declare")[0]
    )


@pytest.mark.parametrize("chip", one_of_each(AMD))
def test_only_what_is_needed_is_linked_and_it_is_internal(chip, llvm):
    # A program may call the library itself; its f32 tanh looks at the instruction set's version.
    source = calling("f32", "math.tanh").decode()
    source = source.replace("math.tanh %v0 :", "llvm.call @__ocml_tanh_f32(%v0) : (f32) ->")
    declared = "gpu.module @kernels {\n    llvm.func @__ocml_tanh_f32(f32) -> f32"
    source = source.replace("gpu.module @kernels {", declared)
    text = compile(source.encode(), Options(target=chip)).decode()
    defined = re.findall(r"^define (.*?)@(\w+)", text, re.MULTILINE)
    names = {name for _, name in defined}
    assert "__ocml_tanh_f32" in names
    assert "__ocml_sin_f32" not in names
    assert all(linkage.startswith("internal") for linkage, name in defined if name != "k")
    target = AMD[chip]
    control = re.search(r"@__oclc_ISA_version = internal .* constant i32 (\d+)", text)
    assert control is not None
    assert int(control[1]) == facts_of(target).isa_version
    assert set(re.findall(r'"target-cpu"="(\w+)"', text)) == {chip}
    # Inlined: after -O3 nothing of the library is left but what the kernel holds.
    optimised = llvm("opt", "-S", "-O3", text=text).decode()
    assert "@__ocml" not in optimised
    assert "@__oclc" not in optimised


def test_a_module_without_such_calls_needs_no_libraries(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_DEVICE_LIBS", str(tmp_path))
    assert b"llvm.exp.f32" in compile(calling("f32", "math.exp"), Options(target="gfx942"))


def test_missing_libraries_are_named_with_the_way_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_DEVICE_LIBS", str(tmp_path))
    with pytest.raises(
        MissingError, match="__ocml_tanh_f64 is in ROCm's device libraries"
    ) as caught:
        compile(calling("f64", "math.tanh"), Options(target="gfx942"))
    assert "apt-get install rocm-device-libs" in (caught.value.hint or "")


def test_a_library_without_the_function(monkeypatch, tmp_path, llvm):
    empty = llvm("llvm-as", "-o", "-", text='target triple = "amdgcn-amd-amdhsa"\n')
    (tmp_path / "ocml.bc").write_bytes(empty)
    monkeypatch.setenv("FLY_DEVICE_LIBS", str(tmp_path))
    with pytest.raises(InputError, match=f"{tmp_path} have no __ocml_tanh_f64"):
        compile(calling("f64", "math.tanh"), Options(target="gfx942"))


def test_a_damaged_library(monkeypatch, tmp_path):
    (tmp_path / "ocml.bc").write_bytes(b"BC\xc0\xde damaged")
    monkeypatch.setenv("FLY_DEVICE_LIBS", str(tmp_path))
    with pytest.raises(InputError, match=r"linking the device libraries .* failed"):
        compile(calling("f64", "math.tanh"), Options(target="gfx942"))
