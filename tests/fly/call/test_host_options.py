"""`fly.CompileOptions`: how the host side of a function runs."""

import os

import pytest
from fly_common.errors import UsageError
from fly_host.native.specialisation import Options
from fly_host.program import Program

from fly import CompileOptions
from fly.call import host_options

PROGRAM = Program("scale", "gfx942", (), (), ())


def test_what_they_are_by_default():
    options = CompileOptions()
    assert (options.host, options.num_threads, options.opt_level, options.dump) == (
        "auto", 2, 1, None,
    )  # fmt: skip
    assert options == host_options.DEFAULT == host_options.checked(None)


@pytest.mark.parametrize(
    "given",
    [{"num_threads": 1}, {"num_threads": 64}, *({"opt_level": level} for level in range(4))]
    + [{"host": name} for name in ("auto", "jit", "py", "interp")],
)
def test_what_makes_sense(given):
    options = CompileOptions(**given)
    assert {name: getattr(options, name) for name in given} == given
    assert host_options.checked(options) is options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_threads": 0}, "num_threads=0: a number from 1 on is wanted"),
        ({"num_threads": True}, "num_threads=True: a number from 1 on is wanted"),
        ({"num_threads": 2.0}, "num_threads=2.0: a number from 1 on is wanted"),
        ({"opt_level": -1}, "opt_level=-1: 0, 1, 2 or 3 is wanted"),
        ({"opt_level": 4}, "opt_level=4: 0, 1, 2 or 3 is wanted"),
        ({"opt_level": True}, "opt_level=True: 0, 1, 2 or 3 is wanted"),
        ({"host": "gpu"}, "host= 'gpu': one of jit, py, interp is wanted"),
    ],
)
def test_what_makes_no_sense(given, message):
    with pytest.raises(UsageError) as caught:
        CompileOptions(**given)
    assert caught.value.message == message


def test_options_of_a_decorator_are_options():
    with pytest.raises(UsageError) as caught:
        host_options.checked("jit")
    assert caught.value.message == "options='jit': fly.CompileOptions(…) is wanted"


@pytest.mark.parametrize(
    ("host", "variable", "reader", "native"),
    [
        ("auto", None, "auto", True),
        ("auto", "", "auto", True),
        ("auto", "jit", "jit", True),
        ("auto", "py", "py", False),
        ("auto", "interp", "interp", False),
        ("jit", "py", "jit", True),
        ("py", "jit", "py", False),
        ("interp", "nonsense", "interp", False),
    ],
)
def test_the_option_goes_before_the_environment(monkeypatch, host, variable, reader, native):
    monkeypatch.delenv("FLY_HOST", raising=False)
    if variable is not None:
        monkeypatch.setenv("FLY_HOST", variable)
    options = CompileOptions(host=host)
    assert (options.reader, options.is_native) == (reader, native)


def test_an_environment_that_names_no_reader(monkeypatch):
    monkeypatch.setenv("FLY_HOST", "gpu")
    with pytest.raises(UsageError) as caught:
        _ = CompileOptions().reader
    assert caught.value.message == "FLY_HOST= 'gpu': one of jit, py, interp is wanted"


def test_what_native_code_is_told():
    assert CompileOptions(opt_level=3, num_threads=5).for_native() == Options(
        opt_level=3, num_threads=5
    )


def test_dumps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CompileOptions().write(PROGRAM, ".ll", "text")
    assert os.listdir(tmp_path) == []
    folder = tmp_path / "a" / "b"
    for text in ("old", "tëxt"):
        CompileOptions(dump=folder).write(PROGRAM, ".ll", text)
    assert os.listdir(folder) == ["scale.gfx942.ll"]
    assert (folder / "scale.gfx942.ll").read_text(encoding="utf-8") == "tëxt"


def test_a_folder_that_can_not_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "dump"
    with pytest.raises(UsageError) as caught:
        CompileOptions(dump=folder).write(PROGRAM, ".ll", "text")
    assert caught.value.message == f"dump={str(folder)!r}: Not a directory"
