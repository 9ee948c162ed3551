"""A pass is left out only where it would find nothing: no pass makes what it looks for, unless the
text of the module has it."""

from pathlib import Path

import pytest
from fly_opt.pipeline import pipelines, registry, runner, stage
from fly_opt.pipeline.options import Options
from fly_opt.reporting.observer import Observer
from fly_trace.session.trace import trace_file

EXAMPLES = Path(__file__).parents[3] / "examples"
PIECES = """
gpu.module @m {
  gpu.func @k(%x: i32) kernel {
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    HERE
    gpu.return
  }
}
"""
SHUFFLE = "%y, %ok = gpu.shuffle xor %x, %c1, %c64 : i32"


def passes_left_out(monkeypatch, text: str, options: Options) -> set[str]:
    """Compiles quickly. Returns the passes that were left out, each of which is shown to find
    nothing where it was."""
    left_out = set()

    def may_act(step, names):
        if may(step, names):
            return True
        left_out.add(step.name)
        return True  # it runs all the same, and must not change anything

    def changes(anchors, step, module):
        changed = change(anchors, step, module)
        assert not changed or step.name not in left_out, step.name
        return changed

    may, change = runner._may_act, runner._changes
    monkeypatch.setattr(runner, "_may_act", may_act)
    monkeypatch.setattr(runner, "_changes", changes)
    monkeypatch.setattr(runner, "run", lambda *_: pytest.fail("a pass has rejected the module"))
    stage.run(text.encode(), pipelines.select(options), options, "kernel.mlir", Observer())
    return left_out


@pytest.mark.parametrize(
    ("name", "target", "some"),
    [
        ("vector_add.py", "gfx942", "fly-promote-regmem-to-vectorssa"),
        ("row_softmax.py:row_softmax", "gfx942", "fly-fold-wave-size"),
        ("row_softmax.py:row_softmax", "sm_90a", "fly-lower-prints"),
        ("mfma_gemm.py:gemm_f16", "gfx942", "fly-rocdl-lane-moves"),
        ("top_k.py:top_k", "gfx1201", "fly-rocdl-cluster-attr"),
        pytest.param(
            "flash_attention.py:flash_attention_mfma",
            "gfx942",
            "fly-lower-prints",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            "pipelined_gemm.py:pipelined_gemm_mfma",
            "gfx950",
            "fly-lower-prints",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            "prefix_sum.py:prefix_sum_f32",
            "gfx942",
            "fly-rocdl-cluster-attr",
            marks=pytest.mark.heavy,
        ),
    ],
)
def test_what_is_left_out_would_find_nothing(name: str, target: str, some: str, monkeypatch):
    path, _, entry = name.partition(":")
    text = trace_file(str(EXAMPLES / path), entry or None, target=target)
    assert some in passes_left_out(monkeypatch, text, Options(target=target))


def ran(monkeypatch, text: str, options: Options) -> set[str]:
    """The passes of this project that a compilation runs."""
    names, change = set(), runner._changes

    def changes(anchors, step, module):
        names.add(step.name)
        return change(anchors, step, module)

    monkeypatch.setattr(runner, "_changes", changes)
    stage.run(text.encode(), pipelines.select(options), options, "kernel.mlir", Observer())
    return names


def test_a_pass_runs_if_the_text_has_the_name(monkeypatch):
    options = Options(target="gfx942")
    assert "fly-check-shuffles" in ran(monkeypatch, PIECES.replace("HERE", SHUFFLE), options)
    assert "fly-check-shuffles" not in ran(monkeypatch, PIECES.replace("HERE", ""), options)


def test_a_name_may_be_written_with_a_backslash(monkeypatch):
    """As a string, it may have escapes."""
    written = SHUFFLE.replace(" : i32", r' {"fly.lane\5Fmove" = "xor:1"} : i32')
    assert "fly-rocdl-lane-moves" in ran(
        monkeypatch, PIECES.replace("HERE", written), Options(target="gfx942")
    )


def test_a_pipeline_that_somebody_writes_is_run_as_it_is(monkeypatch):
    text = PIECES.replace("HERE", "")
    written = Options(passes="builtin.module(fly-set-target{chip=gfx942},fly-check-shuffles)")
    assert "fly-check-shuffles" in ran(monkeypatch, text, written)


def test_so_is_one_with_passes_of_others(monkeypatch):
    """They may make what they like."""
    pipeline = pipelines.select(Options(target="gfx942"))
    assert runner._is_plain(pipeline)
    home = registry.home
    monkeypatch.setattr(
        registry, "home", lambda name: "other.passes" if name == "fly-canonicalize" else home(name)
    )
    runner._is_plain.cache_clear()
    try:
        assert not runner._is_plain(pipeline)
    finally:
        runner._is_plain.cache_clear()
