"""A pipeline that nobody watches gives what one gives pass by pass: modules, bytes, messages."""

import io
from pathlib import Path

import pytest
from fly_common.errors import InputError
from fly_opt.pipeline import pipelines, runner, stage
from fly_opt.pipeline.options import Options
from fly_opt.reporting.observer import Observer
from fly_trace.session.trace import trace_file

EXAMPLES = Path(__file__).parents[3] / "examples"


def compiled(text: str, options: Options, *, watched: bool) -> bytes:
    observer = Observer(timing=watched, stream=io.StringIO())
    chosen = pipelines.select(options)
    return stage.run(text.encode(), chosen, options, "kernel.mlir", observer)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("row_softmax.py:row_softmax", "gfx942"),
        ("row_softmax.py:row_softmax", "sm_90a"),
        ("mfma_gemm.py:gemm_f16", "gfx942"),
        pytest.param("flash_attention.py:flash_attention_mfma", "gfx942", marks=pytest.mark.heavy),
        pytest.param("pipelined_gemm.py:pipelined_gemm_mfma", "gfx942", marks=pytest.mark.heavy),
        pytest.param("prefix_sum.py:prefix_sum_f32", "sm_90a", marks=pytest.mark.heavy),
        pytest.param("top_k.py:top_k", "gfx1201", marks=pytest.mark.heavy),
    ],
)
def test_the_bytes_are_those_of_single_passes(name: str, target: str, monkeypatch):
    path, _, entry = name.partition(":")
    text = trace_file(str(EXAMPLES / path), entry, target=target)
    options = Options(target=target)
    slowly = compiled(text, options, watched=True)
    monkeypatch.setattr(runner, "run", lambda *_: pytest.fail("it was run pass by pass"))
    assert compiled(text, options, watched=False) == slowly


BAD = """func.func @f(%x: i32) -> i32 {
  %y = "arith.addi"(%x, %x) : (i32, i32) -> i32
  return %y : i32
}
gpu.module @m {
}
gpu.module @n {
}
"""


@pytest.mark.parametrize(
    "passes",
    [
        "canonicalize,fly-rocdl-lane-moves",  # the module has no target
        "canonicalize,convert-func-to-llvm,gpu.module(convert-gpu-to-nvvm),fly-emit-llvm",
    ],
)
def test_a_refusal_is_that_of_the_single_pass(passes: str):
    said = []
    for watched in (True, False):
        with pytest.raises(InputError) as caught:
            compiled(BAD, Options(passes=f"builtin.module({passes})"), watched=watched)
        said.append(caught.value.render("fly-opt-py"))
    assert said[0] == said[1]


def test_a_pass_that_fails_in_the_middle_starts_from_the_input_again(monkeypatch):
    """What the passes before it have changed is not seen by the second run."""
    seen = []
    quickly, slowly = runner.run_quickly, runner.run

    def fails(pipeline, module, **more):
        quickly(pipeline, module, **more)
        seen.append(str(module))
        raise RuntimeError("a defect that single passes do not have")

    def again(pipeline, module, *rest):
        seen.append(str(module))
        slowly(pipeline, module, *rest)

    text = (
        "func.func @f() -> i32 {\n  %c = arith.constant 1 : i32\n  %d = arith.addi %c, %c : i32\n"
    )
    text += "  return %d : i32\n}\n"
    options = Options(passes="builtin.module(canonicalize)")
    made = compiled(text, options, watched=False)
    monkeypatch.setattr(runner, "run_quickly", fails)
    monkeypatch.setattr(runner, "run", again)
    assert compiled(text, options, watched=False) == made
    assert "addi" not in seen[0]
    assert "addi" in seen[1]


def test_what_a_python_pass_leaves_is_verified(monkeypatch):
    """Before MLIR's next pass, and at the end."""
    from fly_dialect.bindings import ir
    from fly_opt.passes.layout.canonicalize import Canonicalize

    def breaks(self, op):
        function = op.regions[0].blocks[0].operations[0]
        function.operation.attributes["function_type"] = ir.TypeAttr.get(ir.F32Type.get())

    monkeypatch.setattr(Canonicalize, "run", breaks)
    text = "func.func @f() {\n  return\n}\n"
    for passes in ("fly-canonicalize", "fly-canonicalize,cse"):
        with pytest.raises(InputError, match="pass fly-canonicalize produced invalid IR"):
            compiled(text, Options(passes=f"builtin.module({passes})"), watched=False)


def test_mlirs_passes_are_verified_in_a_pipeline_that_somebody_writes(monkeypatch):
    """Behind each, as mlir-opt does; in a backend's own, before each row and at the end."""
    from fly_dialect.bindings import passmanager

    said = []
    parse = passmanager.PassManager.parse

    class Noted:
        def __init__(self, text):
            self.made = parse(text)

        def enable_verifier(self, wanted):
            said.append(wanted)
            self.made.enable_verifier(wanted)

        def run(self, op):
            self.made.run(op)

    monkeypatch.setattr(passmanager.PassManager, "parse", Noted)
    text = trace_file(str(EXAMPLES / "vector_add.py"))
    options = Options(target="gfx942")
    compiled(text, options, watched=False)
    assert set(said) == {False}
    said.clear()
    written = str(pipelines.select(options))
    compiled(text, Options(passes=written), watched=False)
    assert set(said) == {True}


def test_what_a_known_pipeline_leaves_is_verified(monkeypatch):
    """Also if an MLIR pass is its last."""
    from fly_dialect.bindings import ir

    module = "module attributes {fly.broken} {\n  func.func private @f()\n}\n"
    with ir.Context() as context:
        read = ir.Module.parse(module, context)
        seen = []
        monkeypatch.setattr(ir.Operation, "verify", lambda op: seen.append(op) or True)
        chosen = pipelines.select(Options(passes="builtin.module(cse)"))
        runner.run_quickly(chosen, read, is_known=True)
        assert len(seen) == 1
        runner.run_quickly(chosen, read)
        assert len(seen) == 1
