"""What runs, in which order, and what is refused before anything runs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from chosen_targets import one_of_each
from fly_common.errors import InputError, UsageError
from fly_opt import Options, compile
from fly_opt.pipeline import pipelines, registry
from fly_opt.pipeline.text import Nest, Step
from fly_target.registry import BUILT_IN

EMPTY = b"module {\n}\n"


@pytest.mark.parametrize("chip", one_of_each(BUILT_IN))
@pytest.mark.parametrize("emit", ["mlir", "llvm"])
@pytest.mark.parametrize("debug", [False, True])
def test_the_printed_pipeline_given_back_gives_the_same_bytes(vector_add, chip, emit, debug):
    options = Options(target=chip, emit=emit, debug_info=debug)
    text = str(pipelines.select(options))
    assert compile(vector_add, options) == compile(vector_add, Options(passes=text))


def test_a_pipeline_says_its_target_and_its_end():
    pipeline = pipelines.select(Options(target="gfx942"))
    assert pipeline.elements[0] == Step("fly-set-target", "chip=gfx942")
    assert pipeline.elements[-1] == Step(registry.EMIT_LLVM)
    assert (
        pipelines.select(Options(target="gfx942", emit="mlir")).elements == pipeline.elements[:-1]
    )
    assert pipelines.select(Options(passes="cse", emit="llvm")).elements == (
        Step("cse"),
        Step(registry.EMIT_LLVM),
    )


def test_the_emitted_mlir_goes_on_to_the_same_llvm_ir(vector_add):
    """--emit mlir is the pipeline stopped before its last element, and can be taken up again."""
    middle = compile(vector_add, Options(target="gfx942", emit="mlir"))
    assert b'fly.target = "gfx942"' in middle
    assert compile(middle, Options(emit="llvm")) == compile(vector_add, Options(target="gfx942"))


@pytest.mark.parametrize("name", registry.upstream())
def test_every_upstream_name_is_registered(name):
    from fly_dialect.bindings import ir, passmanager

    with ir.Context():
        said = ""
        try:
            passmanager.PassManager.parse(f"builtin.module({name})")
        except ValueError as error:  # for some the anchor is wrong; what matters is the name
            said = str(error)
        assert "does not refer to a registered pass" not in said


NEEDED = {  # options without which there is no such pass
    "fly-set-target": "chip=gfx942",
    "fly-external-filter": 'command="cat -"',
    "fly-verify-slot": "slot=opt.end",
}


@pytest.mark.parametrize("name", registry.passes())
def test_every_pass_is_what_the_registry_says(name):
    loaded_name = registry.passes()[name]
    made = registry.load(Step(name, NEEDED.get(name, "")))
    assert made.name == name
    assert type(made).__module__ == loaded_name
    assert registry.descriptions()[name] == made.help()
    assert made.help().endswith(".")


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (Options(target="gfx941"), "unknown target 'gfx941'", "gfx942"),
        (Options(target="sm_90"), "unknown target 'sm_90'", "did you mean sm_90a"),
        (
            Options(target="volta"),
            "unknown target 'volta'",
            f"the targets are {', '.join(BUILT_IN)}",
        ),
        (Options(target="gfx942", pipeline="rocn"), "unknown pipeline 'rocn'", "rocm"),
        (Options(pipeline="rocm"), "needs a target", "|".join(BUILT_IN)),
        (
            Options(target="gfx942", passes="cse"),
            "--passes can't be combined with --target",
            "print-pipeline",
        ),
        (
            Options(passes="cse", pipeline="rocm"),
            "--passes can't be combined with --pipeline",
            "omit one",
        ),
        (Options(emit="ll"), "unknown emission 'll'", "mlir, llvm, host or host-llvm"),
        (Options(passes="canonicalise"), "unknown pass 'canonicalise'", "canonicalize"),
        (Options(passes="fly-layout-lower"), "unknown pass", "fly-layout-lowering"),
        (Options(passes="xyzzy"), "unknown pass 'xyzzy'", "--list-passes"),
        (Options(passes="fly-set-target"), "needs the option chip", ""),
        (Options(passes="fly-set-target{chip=gfx1}"), "unknown target 'gfx1'", "gfx"),
        (Options(passes="fly-set-target{cpu=gfx942}"), "unknown option 'cpu'", "chip"),
        (Options(passes="canonicalize{foo=1}"), "no such option foo", ""),
        (Options(passes="convert-gpu-to-rocdl"), "runs on gpu.module", "gpu.module(convert-gpu"),
        (Options(passes="fly-lower-launch-sizes"), "runs on gpu.module", "gpu.module(fly-lower"),
        (
            Options(passes="gpu.module(fly-extract-host-program)"),
            "runs on builtin.module",
            "builtin",
        ),
        (
            Options(passes="fly-emit-llvm,cse"),
            "fly-emit-llvm must be the last pass of the pipeline",
            "",
        ),
        (
            Options(passes="gpu.module(fly-emit-llvm)"),
            "fly-emit-llvm must be the last pass of the pipeline",
            "",
        ),
    ],
)
def test_a_wrong_call(options, message, hint):
    with pytest.raises(UsageError) as caught:
        compile(EMPTY, options)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_pipeline_is_checked_before_it_runs():
    """A broken end is refused before the input is even parsed."""
    with pytest.raises(UsageError, match="unknown pass"):
        compile(b"this is no mlir", Options(passes="canonicalize,nonsense"))


def test_python_passes_nest_like_upstream_ones():
    source = b"""
module {
  gpu.module @one {
    gpu.func @k() kernel attributes {known_block_size = array<i32: 7, 1, 1>} {
      %size = gpu.block_dim x
      %wide = arith.index_cast %size : index to i64
      %p = llvm.inttoptr %wide : i64 to !llvm.ptr
      llvm.store %wide, %p : i64, !llvm.ptr
      gpu.return
    }
  }
}
"""
    text = compile(source, Options(passes="gpu.module(fly-lower-launch-sizes,canonicalize)"))
    assert b"gpu.block_dim" not in text
    assert b"arith.constant 7 : i64" in text


@pytest.mark.parametrize("chip", one_of_each(BUILT_IN))
def test_equal_input_gives_equal_bytes_in_other_processes(vector_add, chip, tmp_path):
    """Hash seeds, addresses and the process's history must not show."""
    program = (
        "import sys; from fly_opt import compile, Options;"
        f"sys.stdout.buffer.write(compile(sys.stdin.buffer.read(), Options(target={chip!r})))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=vector_add,
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {compile(vector_add, Options(target=chip))}


def test_locations_do_not_change_the_llvm_ir(vector_add):
    located = compile(vector_add, Options(locations=True))
    assert b"loc(" in located
    assert compile(located, Options(target="gfx942")) == compile(
        vector_add, Options(target="gfx942")
    )
    assert compile(located, Options(target="gfx942", debug_info=True)) != compile(
        vector_add, Options(target="gfx942")
    )


def test_the_pass_and_the_place_are_in_an_error():
    source = b"""module {
  gpu.module @m {
    gpu.func @k(%x: f32) kernel {
      gpu.printf "%f", %x : f32
      gpu.return
    }
  }
}
"""
    with pytest.raises(InputError) as caught:
        compile(source, Options(passes="gpu.module(convert-gpu-to-rocdl)"), "bad.mlir")
    assert re.match("pass convert-gpu-to-rocdl: .*gpu.printf", caught.value.message)
    assert str(caught.value.place) == "bad.mlir:4:7"
    assert caught.value.place.text == '      gpu.printf "%f", %x : f32'


def test_an_error_names_the_python_the_operation_came_from(tmp_path):
    python = tmp_path / "kernel.py"
    python.write_text("def kernel():\n    print(x)\n")
    source = f"""module {{
  gpu.module @m {{
    gpu.func @k(%x: f32) kernel {{
      gpu.printf "%f", %x : f32 loc("{python}":2:5)
      gpu.return
    }}
  }}
}}
""".encode()
    with pytest.raises(InputError) as caught:
        compile(source, Options(passes="gpu.module(convert-gpu-to-rocdl)"))
    assert str(caught.value.place) == f"{python}:2:5"
    assert caught.value.place.text == "    print(x)"


def test_nest_prints_as_text():
    assert str(Nest("gpu.module", (Step("cse"), Step("a", "b=1")))) == "gpu.module(cse,a{b=1})"


def test_threads_compile_side_by_side(vector_add):
    from concurrent.futures import ThreadPoolExecutor

    from fly_dialect.bindings import module

    table = module("_mlir_libs._mlir").globals
    before = list(table.dialect_search_modules)
    expected = compile(vector_add, Options(target="gfx942"))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: compile(vector_add, Options(target="gfx942")), range(16)))
    assert set(made) == {expected}
    assert list(table.dialect_search_modules) == before
