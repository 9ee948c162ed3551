"""What the trace hands to the lowering beside its text changes no byte, whatever it is."""

import importlib.util
from pathlib import Path

import pytest
from fly_common.errors import FlyError
from fly_dialect import dialect, handover, text
from fly_opt.pipeline import stage
from fly_opt.pipeline.options import Options
from fly_trace.session.decorators import HostFunction
from fly_trace.session.trace import trace_function

import fly
import fly.expr as fx

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.py"))


def hosts(path: Path) -> list[HostFunction]:
    spec = importlib.util.spec_from_file_location(f"handed_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [one for one in vars(module).values() if isinstance(one, HostFunction)]


def compare(function: HostFunction, target: str) -> None:
    with handover.between_stages():
        traced = trace_function(function, {}, target=target)
        offered = handover.take(traced)
        assert offered is not None
        with dialect.new_context() as context:
            read = text.read(traced, context).operation.get_asm(enable_debug_info=True)
        with offered.context:
            handed = text.read_offered(offered)
            assert handed is not None
            assert handed.operation.get_asm(enable_debug_info=True) == read
            del handed
        handover.offer(*offered)
        made = stage.compile(traced.encode(), Options(target=target))
        assert handover.take(traced) is None  # it was taken
    assert made == stage.compile(traced.encode(), Options(target=target))


def compare_all(path: Path, target: str) -> None:
    compared = 0
    refusals = []
    for function in hosts(path):
        try:
            trace_function(function, {}, target=target)
        except FlyError as error:
            refusals.append(error.message)
            continue
        compare(function, target)
        compared += 1
    assert all("rocdl" in one for one in refusals)  # they are for other hardware
    assert compared or target != "gfx942"


@pytest.mark.parametrize("name", ["row_softmax", "mfma_gemm"])
def test_two_examples(name: str):
    compare_all(EXAMPLES[0].with_name(f"{name}.py"), "gfx942")


@pytest.mark.heavy
@pytest.mark.parametrize("target", ["gfx942", "sm_90a"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example(path: Path, target: str):
    compare_all(path, target)


@fly.kernel
def one_kernel(A: fx.Tensor):
    A[0] = fx.Float32(1.0)


@fly.jit
def one(A: fx.Tensor[fx.Float32, None]):
    one_kernel(A).launch(grid=1, block=1)


def test_outside_of_a_compilation_nothing_is_kept():
    traced = trace_function(one, {})
    assert handover.take(traced) is None


def test_nothing_is_kept_after_a_compilation(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    one._kept.clear()
    offered = []
    offer = handover.offer
    monkeypatch.setattr(handover, "offer", lambda *one: (offered.append(one[0]), offer(*one)))
    one.compile(target="gfx942")
    assert offered
    assert all(handover.take(each) is None for each in offered)


def test_another_text_takes_nothing():
    with handover.between_stages():
        traced = trace_function(one, {})
        assert handover.take(traced.replace("one_kernel", "two_kernel")) is None
        assert handover.take(traced) is not None
        assert handover.take(traced) is None


def test_a_compilation_within_a_trace_has_its_own():
    with handover.between_stages():
        traced = trace_function(one, {})
        with handover.between_stages():
            assert handover.take(traced) is None
            trace_function(one, {}, locations=True)
        assert handover.take(traced) is not None


def test_what_mlir_does_not_read_back_is_read_from_the_text():
    with handover.between_stages():
        traced = trace_function(one, {})
        offered = handover.take(traced)
        assert offered is not None
        handover.offer(traced, "what MLIR refuses", offered.context)
        made = stage.compile(traced.encode(), Options(target="gfx942"))
    assert made == stage.compile(traced.encode(), Options(target="gfx942"))


def test_a_traced_module_is_freed_without_the_collector():
    """The library pauses it while it compiles."""
    import gc
    import weakref

    from fly_trace.session import module_trace

    seen = []
    kept = module_trace.ModuleTrace.host

    def host(self, *arguments):
        seen.append(weakref.ref(self))
        return kept(self, *arguments)

    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module_trace.ModuleTrace, "host", host)
            trace_function(one, {})
        assert seen[0]() is None
    finally:
        gc.enable()
