"""Plugins written in C++, built here: machine passes by both routes, and an IR pass of opt's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError, MissingError, UsageError
from fly_common.programs import toolchain
from fly_llc import Options, compile
from fly_llc.insertion import native

import fly
import fly.expr as fx

from . import test_sinking
from .woven import CASES, ir

HERE = Path(__file__).parent
SLED = "test-sled"
X = np.arange(256, dtype=np.float32)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Builds a plugin of tests/fly_llc/plugins."""
    folder = tmp_path_factory.mktemp("plugins")
    llc = toolchain.find_program("llc")

    def build(name: str) -> Path:
        path = folder / f"{name}.so"
        if not path.exists():
            words = [native._compiler(llc), "-std=c++17", "-fno-rtti", "-fPIC", "-shared", "-O1"]
            words += [f"-I{native._headers(llc)}", str(HERE / "plugins" / f"{name}.cpp")]
            subprocess.run([*words, "-o", str(path)], check=True)
        return path

    return build


@pytest.mark.parametrize("cpu", ["gfx942", "gfx1100"])
@pytest.mark.parametrize(
    "place",
    ["post-isel", "after:machine-scheduler", "before:postmisched", "pre-waits", "pre-emit"],
)
def test_both_routes_give_the_same_code(built, large, cpu, place):
    source = large(cpu).encode()
    insert = (f"{place}={built('sled')}:{SLED}",)
    filtered = compile(source, Options(insert=insert))
    inside = compile(source, Options(insert=insert, in_process=True))
    assert inside == filtered
    assert inside != compile(source, Options())
    text = compile(source, Options("asm", insert=insert, in_process=True))
    assert text.count(b"s_nop 0") >= 2


@pytest.mark.parametrize("place", ["post-isel", "pre-ra", "pre-sched2", "pre-emit"])
def test_in_process_a_pass_that_changes_nothing_gives_the_same_bytes(built, place):
    """Of the kernel, too, whose code going on from MIR gives in another order."""
    (case,) = (case for case in CASES if case.name == "preshuffle_gemm")
    source = ir(case, "gfx942")
    options = Options(insert=(f"{place}={built('sled')}:test-nothing",), in_process=True)
    assert compile(source, options) == compile(source, Options())


def test_in_process_where_no_filter_can_be(built, small):
    """At this pass llc can't stop and resume."""
    insert = (f"after:si-wqm={built('sled')}:{SLED}",)
    with pytest.raises(InputError, match="LLVM can't resume after si-wqm"):
        compile(small().encode(), Options(insert=insert))
    made = compile(small().encode(), Options("asm", insert=insert, in_process=True))
    assert made.count(b"s_nop 0") == 2


def test_beside_a_pass_that_is_left_out(built):
    source = test_sinking.source(test_sinking.CASES[0])
    plain = compile(source, Options("asm")).count(b"s_nop 0")

    def made(place, in_process):
        insert = (f"{place}={built('sled')}:{SLED}",)
        return compile(source, Options("asm", insert=insert, in_process=in_process))

    for asm in (made("post-isel", False), made("post-isel", True), made("pre-emit", True)):
        assert asm.count(b"s_nop 0") == plain + 2
        assert asm.index(b"v_wmma") < asm.index(b"v_cmpx")
    assert made("after:machine-sink", False).count(b"s_nop 0") == plain + 2
    with pytest.raises(InputError, match="machine-sink generates wrong code") as caught:
        made("after:machine-sink", True)
    assert "without --in-process" in (caught.value.hint or "")


def test_both_kinds_of_insertion_together(built, small):
    options = Options(
        "asm",
        insert=(f"pre-waits={built('sled')}:{SLED}", "pre-emit=nop-sled --count 1 --cycles 8"),
        in_process=True,
    )
    text = compile(small().encode(), options)
    assert (text.count(b"s_nop 0"), text.count(b"s_nop 7")) == (2, 1)


def test_where_it_can_not_be_in_process(built, small):
    insert = (f"post-ra={built('sled')}:{SLED}",)
    said = "after virtregrewriter,2: LLVM would insert after each of the 3 runs of virtregrewriter"
    with pytest.raises(UsageError, match=rf"{said}\n") as caught:
        compile(small().encode(), Options(insert=insert, in_process=True))
    assert caught.value.hint == "the next possible point is after:amdgpu-mark-last-scratch-load"
    insert = (f"before:amdgpu-isel={built('sled')}:{SLED}",)
    with pytest.raises(
        UsageError, match="before amdgpu-isel: no machine pass runs earlier"
    ) as caught:
        compile(small().encode(), Options(insert=insert, in_process=True))
    assert caught.value.hint == "the next possible point is after:amdgpu-isel"


@pytest.mark.parametrize("in_process", [False, True])
def test_what_is_wrong_with_a_plugin(built, small, tmp_path, in_process):
    source = small().encode()

    def insert(what: str) -> Options:
        return Options(insert=(f"pre-waits={what}",), in_process=in_process)

    with pytest.raises((UsageError, InputError), match="no-such-pass"):
        compile(source, insert(f"{built('sled')}:no-such-pass"))
    broken = tmp_path / "broken.so"
    broken.write_text("this is no library")
    with pytest.raises(MissingError, match=r"LLVM can't load .*broken\.so"):
        compile(source, insert(f"{broken}:x"))
    with pytest.raises(MissingError, match=r"the plugin .*absent\.so was not found"):
        compile(source, insert(f"{tmp_path / 'absent.so'}:x"))


def test_without_a_compiler_or_headers(built, small, tmp_path, monkeypatch):
    options = Options(insert=(f"pre-waits={built('sled')}:{SLED}",), in_process=True)
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))  # where no library has been built
    with monkeypatch.context() as patch:
        patch.setenv("CXX", "no-such-compiler")
        with pytest.raises(MissingError, match=r"no C\+\+ compiler \(no-such-compiler\)") as caught:
            compile(small().encode(), options)
        assert "without --in-process, a native pass runs as a filter" in (caught.value.hint or "")
    monkeypatch.setattr(native, "HEADER", "llvm/NoSuchHeader.h")
    with pytest.raises(MissingError, match=r"headers \(llvm/NoSuchHeader\.h\) were not found"):
        compile(small().encode(), options)
    assert not list(tmp_path.glob("llc-shim-*.so"))


def test_a_damaged_shim_is_built_again(built, small, tmp_path, monkeypatch):
    """What llc loads is what was verified: a file that was cut or flipped never gets there."""
    options = Options("asm", insert=(f"pre-waits={built('sled')}:{SLED}",), in_process=True)
    with open(native.shim(), "rb") as file:  # of this session
        shim = file.read()
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(native, "_build", lambda llc: shim)
    compile(small().encode(), options)
    (path,) = tmp_path.glob("llc-shim-*.so")
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(shim) // 2] ^= 1
    for damaged in (b"", whole[: len(whole) // 2], bytes(flipped), shim):
        path.write_bytes(damaged)
        native._in_memory.cache_clear()
        assert compile(small().encode(), options).count(b"s_nop 0") == 2
        assert path.read_bytes() == whole


@fly.kernel
def add_kernel(X: fx.Tensor, Y: fx.Tensor):
    i = fx.thread_idx.x
    Y[i] = X[i] + 1.0


def add(X: fx.Tensor[fx.Float32, 256], Y: fx.Tensor[fx.Float32, 256]):
    add_kernel(X, Y).launch(grid=1, block=256)


def result(**options) -> np.ndarray:
    y = np.zeros_like(X)
    fly.jit(**options)(add)(X, y)
    return y


@pytest.mark.heavy
def test_an_ir_plugin_changes_the_kernel(built, monkeypatch):
    """Visible in the results; without the plugin, without its pass, and with both."""
    plugin = [built("negate")]
    pipeline = "default<O3>,function(negate-additions)"
    np.testing.assert_array_equal(result(), X + 1)
    np.testing.assert_array_equal(result(opt_plugins=plugin), X + 1)
    np.testing.assert_array_equal(result(opt_plugins=plugin, opt_pipeline=pipeline), X - 1)
    with pytest.raises(InputError, match="unknown function pass 'negate-additions'"):
        result(opt_pipeline="function(negate-additions)")
    # IR and machine passes combine, and the environment says it as well.
    insert = [f"pre-emit={built('sled')}:{SLED}"]
    both = {"opt_plugins": plugin, "opt_pipeline": pipeline, "insert": insert}
    np.testing.assert_array_equal(result(**both), X - 1)
    assert fly.jit(**both)(add).compile().ir("asm").count("s_nop 0") >= 2
    monkeypatch.setenv("FLY_OPT_PLUGINS", str(plugin[0]))
    monkeypatch.setenv("FLY_OPT_PIPELINE", pipeline)
    np.testing.assert_array_equal(result(), X - 1)
    np.testing.assert_array_equal(result(opt_pipeline="default<O3>"), X + 1)


def test_the_order_of_plugins_matters_to_the_key(built):
    one, other = str(built("negate")), str(built("sled"))
    identities = {
        tuple(fly.jit(opt_plugins=plugins)(add)._chain(None).identity())
        for plugins in ([one, other], [other, one])
    }
    assert len(identities) == 2


@pytest.mark.parametrize(
    ("name", "option", "form", "stage"),
    [
        ("sled", "insert", f"pre-emit={{}}:{SLED}", "llc"),
        ("negate", "opt_plugins", "{}", "opt"),
    ],
)
def test_editing_a_plugin_reruns_its_stage(
    built, tmp_path, monkeypatch, capfd, name, option, form, stage
):
    """A machine pass's library, and an IR pass's. The bytes added do nothing, so that what is
    behind it is found; touching it reruns nothing."""
    plugin = tmp_path / "plugin.so"
    plugin.write_bytes(built(name).read_bytes())
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FLY_CACHE", "explain")

    def rerun() -> list[str]:
        capfd.readouterr()
        fly.jit(**{option: [form.format(plugin)]})(add).compile()
        missed = [line for line in capfd.readouterr().err.splitlines() if ": miss " in line]
        return [line.split(":")[2].strip() for line in missed]

    assert rerun() == ["trace", "opt-py", "opt", "llc", "link"]
    with plugin.open("ab") as file:
        file.write(b"\0")  # behind the sections: the same pass
    assert rerun() == [stage]
    os.utime(plugin, (1e9, 1e9))
    assert rerun() == []
