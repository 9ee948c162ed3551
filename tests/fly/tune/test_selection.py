"""Which configuration a call uses: the default, a winner from a file, the first that compiles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError
from fly_trace.session.load import load_file

import fly
import fly.expr as fx

from .planted import blocks, scale

MODULE = (Path(__file__).parent / "planted.py").read_text()


@pytest.fixture
def x() -> np.ndarray:
    return np.ones(256, np.float32)


def entry(block: int, n: int = 256, device: str = "emulator", target: str = "gfx942") -> dict:
    return {
        "key": {"n": n},
        "types": {"X": "f32"},
        "target": target,
        "device": device,
        "config": {"BLOCK": block},
        "cost": 1.0,
        "unit": "cycles",
        "method": "by hand",
    }


def document(*entries: dict) -> str:
    return json.dumps({"format": "fly-tuned 1", "function": "scale", "winners": entries})


def tuned_in(folder: Path, **options):
    """`scale` of a module of its own, which winners can be beside."""
    path = folder / "kernels.py"
    path.write_text(MODULE)
    function = vars(load_file(str(path)))["scale"]
    return fly.autotune(blocks(64, 128, 256), key=["n"], **options)(function)


def test_without_tuning_nothing_is_measured(measured, x):
    tuned = fly.autotune(blocks(128, 64), key=["n"])(scale)
    tuned(x)
    assert (x == 2).all()
    assert tuned.best(x) == fly.Config(BLOCK=128)
    assert not measured


def test_the_default(measured, x):
    tuned = fly.autotune(blocks(128, 64), default=fly.Config(BLOCK=256))(scale)
    assert tuned.best(x) == fly.Config(BLOCK=256)
    assert tuned.compile(x).hsaco == scale.compile(x, 256).hsaco
    assert tuned.compile().hsaco == scale.compile(x, 256).hsaco
    assert tuned.compile(signature="X: f32[n]").hsaco == scale.compile(x, 256).hsaco
    tuned(x)
    tuned(X=x)
    tuned(x)
    assert (x == 8).all()
    assert not measured


def test_the_first_that_compiles(x):
    tuned = fly.autotune([fly.Config(BLOCK="a"), *blocks(128)])(scale)
    tuned(x)
    assert (x == 2).all()
    assert tuned.best(x) == fly.Config(BLOCK=128)


def test_none_compiles(x):
    tuned = fly.autotune([fly.Config(BLOCK="a"), fly.Config(opt_pipeline="no-such-pass")])(scale)
    with pytest.raises(InputError) as caught:
        tuned(x)
    first, a, b = str(caught.value).splitlines()
    assert first == "none of the configurations can be used"
    assert a.startswith("  Config(BLOCK='a'): ")
    assert b.startswith("  Config(opt_pipeline='no-such-pass'): ")


def test_tuning_when_asked(measured, x, monkeypatch):
    tuned = fly.autotune(blocks(64, 256), key=["n"])(scale)
    monkeypatch.setenv("FLY_AUTOTUNE", "1")
    for _ in range(3):
        tuned(x)
    assert (x == 8).all()
    assert len(measured) == 2
    tuned(np.ones(512, np.float32))
    assert len(measured) == 4
    monkeypatch.setenv("FLY_AUTOTUNE", "yes")
    with pytest.raises(UsageError, match="FLY_AUTOTUNE=yes: must be 0, 1 or report"):
        tuned(x)


def test_a_winner_is_kept_for_other_processes(measured, x):
    configs, costs = blocks(64, 128), {64: 2.0, 128: 1.0}
    tuned = fly.autotune(configs, key=["n"])(scale)
    tuned.tune(x)
    best = tuned.best(x)
    again = fly.autotune(configs, key=["n"])(scale)
    assert again.best(x) == best
    again(x)
    assert again.tune(x) == best
    assert len(measured) == len(costs)


def test_a_file_beside_the_module_is_used_without_measuring(tmp_path, measured, x):
    tuned = tuned_in(tmp_path)
    (tmp_path / "kernels.scale.tuned.json").write_text(document(entry(128)))
    tuned(x)
    assert (x == 2).all()
    assert tuned.best(x) == fly.Config(BLOCK=128)
    assert tuned.best(np.ones(64, np.float32)) == fly.Config(BLOCK=64)  # of another key
    assert not measured


def test_the_file_that_is_named_comes_first(tmp_path, x):
    tuned = tuned_in(tmp_path, file="mine.json")
    (tmp_path / "kernels.scale.tuned.json").write_text(document(entry(128), entry(128, 64)))
    (tmp_path / "mine.json").write_text(document(entry(256)))
    assert tuned.best(x) == fly.Config(BLOCK=256)
    assert tuned.best(np.ones(64, np.float32)) == fly.Config(BLOCK=128)


def test_tuning_writes_the_file_that_is_named(tmp_path, x):
    tuned = tuned_in(tmp_path, file="mine.json")
    best = tuned.tune(x)
    found = json.loads((tmp_path / "mine.json").read_text())
    assert found["function"] == "scale"
    assert [one["config"] for one in found["winners"]] == [dict(best.values)]
    before = (tmp_path / "mine.json").read_bytes()
    tuned.tune(x)
    assert (tmp_path / "mine.json").read_bytes() == before
    tuned.tune(np.ones(64, np.float32))
    assert len(json.loads((tmp_path / "mine.json").read_text())["winners"]) == 2
    assert sorted(path.name for path in tmp_path.glob("mine*")) == ["mine.json"]


def test_save_ships_winners_beside_the_module(tmp_path, measured, x, monkeypatch):
    tuned = tuned_in(tmp_path)
    with pytest.raises(UsageError, match="scale has no winners to save"):
        tuned.save()
    best = tuned.tune(x)
    assert tuned.save() == str(tmp_path / "kernels.scale.tuned.json")
    monkeypatch.setenv("FLY_CACHE", "off")  # as on another machine
    measured.clear()
    assert tuned_in(tmp_path).best(x) == best
    assert not measured


def test_another_device_and_another_target(tmp_path, x, monkeypatch):
    tuned = tuned_in(tmp_path)
    path = tmp_path / "kernels.scale.tuned.json"
    path.write_text(document(entry(256, device="AMD Instinct MI300X")))
    assert tuned.best(x) == fly.Config(BLOCK=256)
    path.write_text(document(entry(256, device="AMD Instinct MI300X"), entry(128)))
    assert tuned_in(tmp_path).best(x) == fly.Config(BLOCK=128)
    monkeypatch.setenv("FLY_TARGET", "gfx1100")
    assert tuned.best(x) == fly.Config(BLOCK=64)
    wanted = tuned.jit.compile(x, 256, target="gfx942")
    assert tuned.compile(x, target="gfx942").hsaco == wanted.hsaco


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is damaged: it is not JSON"),
        ("[" * 10**5, "is damaged: it is not JSON"),
        ("\udcff", "is damaged: it is not JSON"),
        ("[]", "is not a file of winners: its format is not 'fly-tuned 1'"),
        ('{"format": "fly-tuned 2"}', "is not a file of winners: its format is not 'fly-tuned 1'"),
        ('{"format": "fly-tuned 1", "function": "f"}', "is of another function than scale"),
        ('{"format": "fly-tuned 1", "function": "scale"}', "is damaged: an entry lacks something"),
        (document({"key": 7}), "is damaged: an entry lacks something"),
        (document(entry(128) | {"cost": "x"}), "is damaged: an entry lacks something"),
        (document(entry(128) | {"config": 7}), "is damaged: an entry lacks something"),
        (document(entry(128) | {"cost": 10**400}), "is damaged: an entry lacks something"),
        (
            document(entry(512)),
            'names a configuration that the function does not have: {"BLOCK": 512}',
        ),
    ],
)
def test_files_that_are_no_use(tmp_path, x, capsys, text, why):
    tuned = tuned_in(tmp_path)
    path = tmp_path / "kernels.scale.tuned.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    for _ in range(2):
        tuned(x)
    assert tuned.best(x) == fly.Config(BLOCK=64)
    assert capsys.readouterr().err == f"fly: warning: {path}: {why}; it is ignored\n"


def test_a_file_that_can_not_be_written(tmp_path, x, capsys):
    tuned = tuned_in(tmp_path, file="missing/mine.json")
    tuned.tune(x)
    missing = tmp_path / "missing"
    assert capsys.readouterr().err == (
        f"fly: warning: the winner is not kept: {missing / 'mine.json'}: the directory {missing}"
        " does not exist\n"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mine": 1}', "is not a file of winners: its format is not 'fly-tuned 1'"),
        ('{"format": "fly-tuned 1", "function": "f"}', "is of another function than scale"),
        ("<<<<<<< HEAD\n" + document(), "is damaged: it is not JSON"),
    ],
)
def test_a_file_that_is_no_use_is_not_replaced(tmp_path, x, capsys, text, why):
    path = tmp_path / "winners.json"
    path.write_text(text)
    tuned = tuned_in(tmp_path, file=str(path))
    assert tuned.tune(x) == fly.Config(BLOCK=64)
    assert path.read_text() == text
    assert f"fly: warning: the winner is not kept: {path}: {why}\n" in capsys.readouterr().err
    stored = tuned_in(tmp_path)
    stored.tune(x)
    with pytest.raises(UsageError) as error:
        stored.save(path)
    assert str(error.value) == f"{path}: {why}\n  name another file, or delete this one"
    path.write_text("")  # as tempfile makes it
    assert json.loads(Path(stored.save(path)).read_text())["function"] == "scale"


def test_configurations_that_are_gone_from_the_cache(tmp_path, x, capsys):
    """Nobody has written its file, so nobody is told."""
    tuned_in(tmp_path).tune(x)
    kept = fly.autotune(blocks(128, 256), key=["n"])(tuned_in(tmp_path).jit)
    assert kept.best(x) == fly.Config(BLOCK=128)
    assert capsys.readouterr().err == ""


def test_an_edit_of_the_function_is_another_function(tmp_path, x):
    tuned = tuned_in(tmp_path)
    tuned.tune(x)
    (stored,) = (Path(fly.cache.folder()).parent / "tuned").glob("*.json")
    edited = tmp_path / "edited"
    edited.mkdir()
    (edited / "kernels.py").write_text(MODULE.replace("* 2.0", "* 3.0"))
    other = fly.autotune(blocks(64, 128, 256), key=["n"])(
        vars(load_file(str(edited / "kernels.py")))["scale"]
    )
    assert other.library.stored != str(stored)
    assert tuned.library.stored == str(stored)


def test_functions_without_a_file(x):
    """As in a notebook, or in code that exec runs: tracing finds the source in linecache."""
    import linecache

    text = MODULE.split("@fly.kernel\ndef scale_kernel")[1].split("def blocks")[0]
    text = f"import fly\nimport fly.expr as fx\n@fly.kernel\ndef scale_kernel{text}"
    name = "<cell 1>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    tuned = fly.autotune(blocks(64, 128), key=["n"])(space["scale"])
    tuned.tune(x)
    tuned(x)
    assert (x == 2).all()
    with pytest.raises(UsageError, match="scale is in no file that winners could be beside"):
        tuned.save()


def test_a_closure(x):
    def made(factor: float):
        @fly.kernel
        def times_kernel(X: fx.Tensor, BLOCK: fx.Constexpr):
            X[fx.block_idx.x * BLOCK + fx.thread_idx.x] *= factor

        @fly.autotune(blocks(64, 128), key=["X"])
        @fly.jit
        def times(X: fx.Tensor[fx.Float32, 256], BLOCK: fx.Constexpr):
            times_kernel(X, BLOCK).launch(grid=256 // BLOCK, block=BLOCK)

        return times

    three, five = made(3.0), made(5.0)
    three.tune(x)
    three(x)
    five(x)
    assert (x == 15).all()
    assert three.library.stored != five.library.stored
