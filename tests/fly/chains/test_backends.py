"""Backends of a process: switching between them and between targets never gives stale code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fly_backend import registry
from fly_backend.amd import ROCM
from fly_common.errors import UsageError
from fly_common.record import replace
from fly_run.launch import runtime

import fly
import fly.expr as fx

pytestmark = pytest.mark.usefixtures("clean_registry")


@fly.kernel
def doubled_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    B[i] = A[i] + A[i]


def plain(A: fx.Tensor[fx.Float32, 64], B: fx.Tensor[fx.Float32, 64]):
    doubled_kernel(A, B).launch(grid=1, block=64)


def function(**options: Any) -> Any:
    return fly.jit(plain, **options) if not options else fly.jit(**options)(plain)


def works(call) -> None:
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    call(a, b)
    assert (b == 2 * a).all()


def waves(code: Any) -> bool:
    """Whether the code has the attribute that the template's fragment sets."""
    return '"amdgpu-waves-per-eu"="1,4"' in code.ir("ll")


def test_the_names_of_the_library(monkeypatch, template):
    assert fly.backend_name() == "rocm"
    assert fly.get_backend() is fly.get_backend("ROCm") is ROCM
    assert fly.get_backend("Template") is template
    monkeypatch.setenv("FLY_BACKEND", "TEMPLATE")
    assert fly.backend_name() == "template"
    fly.register_backend("other", lambda: replace(ROCM, name="other"))
    with pytest.raises(UsageError, match="the backend other is already registered"):
        fly.register_backend("Other", lambda: ROCM)
    with pytest.raises(UsageError, match="unknown backend 'nix'\n  the backends are rocm, cuda"):
        fly.get_backend("nix")


def test_one_function_for_two_backends(template):
    call = function()
    rocm, guest = call.compile(), call.compile(backend="TEMPLATE")
    assert (waves(rocm), waves(guest)) == (False, True)
    assert rocm.image.digest != guest.image.digest
    assert call.compile().image.digest == rocm.image.digest


def test_a_switch_by_the_environment_is_noticed_at_once(monkeypatch, template):
    """The same arguments again, also after native code has taken over the calls."""
    call = function()
    devices = []
    for name in ("", "template", "", "rocm", "Template"):
        monkeypatch.setenv("FLY_BACKEND", name)
        runtime.close_all()
        for _ in range(3):
            works(call)
        devices.append([opened.device.name for opened in runtime._opened.values()])
    assert devices == [["emulator"], ["template"], ["emulator"], ["emulator"], ["template"]]


def test_a_switch_of_the_target_is_noticed_at_once(monkeypatch):
    call = function()
    targets = []
    for name in ("gfx942", "gfx1100", "gfx942"):
        monkeypatch.setenv("FLY_TARGET", name)
        runtime.close_all()
        for _ in range(3):
            works(call)
        targets.append([opened.device.target for opened in runtime._opened.values()])
    assert targets == [["gfx942"], ["gfx1100"], ["gfx942"]]


def test_backends_have_other_fingerprints(template):
    """Also those that only differ in their record, for every stage of their own."""
    registry.register("twin", lambda: replace(template, name="twin"))
    registry.register("same", lambda: replace(ROCM, name="same"))
    chains = [fly.chain(backend=name) for name in ("rocm", "template", "twin", "same")]
    assert len({made.identity() for made in chains}) == 4
    for name in ("opt-py", "llc", "link"):
        stages = [stage for made in chains for stage in made if stage.name == name]
        assert len({stage.identity() for stage in stages}) == 4
    assert fly.chain(backend="rocm").identity() == fly.chain().identity()


def test_the_fingerprint_has_the_sources_of_the_backend(tmp_path: Path):
    """Another process, after the backend's source has changed, has another one."""
    module = tmp_path / "own_lowering.py"
    module.write_text(
        "from fly_opt.backends.amd.lowering import RocmLowering\nONE = RocmLowering()\n"
    )
    source = (
        "import fly\n"
        "from fly_backend.amd import ROCM\n"
        "from fly_common.record import replace\n"
        "made = replace(ROCM, name='own', lowering='own_lowering:ONE')\n"
        "fly.register_backend('own', lambda: made)\n"
        "print(hash(fly.chain(backend='own').identity()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "0"}

    def identity() -> str:
        words = [sys.executable, "-B", "-c", source]
        return subprocess.run(
            words, env=environment, capture_output=True, check=True
        ).stdout.decode()

    first = identity()
    assert identity() == first
    module.write_text(f"{module.read_text()}# changed\n")
    assert identity() != first


def test_nothing_is_validated_before_it_is_needed(monkeypatch):
    def factory():
        raise AssertionError("called too early")

    fly.register_backend("late", factory)
    monkeypatch.setenv("FLY_BACKEND", "nosuch")
    late = function(backend="late")
    wrong = function(target="gfx9999")
    unset = function()
    monkeypatch.delenv("FLY_BACKEND")
    with pytest.raises(UsageError, match="unknown target 'gfx9999'"):
        wrong.compile()
    with pytest.raises(fly.MissingError, match="backend late: its factory failed: AssertionError"):
        late.compile()
    works(unset)
    monkeypatch.setenv("FLY_BACKEND", "nosuch")
    with pytest.raises(UsageError, match="unknown backend 'nosuch'"):
        works(unset)


def test_the_aliases_of_target():
    for name in ("target", "arch", "chip"):
        assert function(**{name: "gfx90a"}).compile().target == "gfx90a"
        assert fly.chain(**{name: "gfx90a"}).target == "gfx90a"
    with pytest.raises(UsageError, match="arch='gfx90a' and chip='gfx942' contradict each other"):
        function(arch="gfx90a", chip="gfx942")
    with pytest.raises(UsageError, match="target='gfx90a' and arch='gfx942' contradict each other"):
        fly.chain("gfx90a", arch="gfx942")


def test_a_chain_says_its_backend_itself(template):
    assert fly.chain(backend="template").backend == "template"
    with pytest.raises(UsageError, match="chain= and backend= contradict each other"):
        function(chain=fly.chain(), backend="template")
    code = function(chain=fly.chain(backend="template")).compile()
    assert waves(code)


def test_a_module_says_the_backend_only_where_it_is_not_the_targets_own(template):
    module = b"module {\n}\n"
    emit = [("emit", "mlir")]
    first = next(iter(fly.chain(opt_py=emit))).run(module)
    assert b"fly.backend" not in first
    second = next(iter(fly.chain(opt_py=emit, backend="template"))).run(module)
    assert b'fly.backend = "template", fly.target = "gfx942"' in second
    assert fly.chain(backend="template").stages[0].words == (
        "fly-opt-py",
        "--target",
        "gfx942",
        "--backend",
        "template",
    )
