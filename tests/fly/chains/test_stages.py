"""The stages of a chain: their words, what identifies them, and where their programs are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fly_common.errors import InputError, MissingError, UsageError
from fly_common.programs import toolchain
from fly_store import identity
from fly_store.store import Store, default_store

from fly.chains import builtin
from fly.chains.chain import Chain, Prefetch, results, run
from fly.chains.stage import Stage


def command(*words: str, **named: Any) -> Stage:
    return Stage.command(words, **{"suffix": ".txt", **named})


def script(path: Path, text: str = "exec cat") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# -- the stages that come with the library


def test_the_words_of_the_built_in_stages():
    assert builtin.opt_py("gfx950").words == ("fly-opt-py", "--target", "gfx950")
    lines = builtin.opt_py("gfx950", {"debug_info": True})
    assert lines.words == ("fly-opt-py", "--target", "gfx950", "-g")
    assert builtin.llc().words == ("fly-llc",)
    assert builtin.llc({"level": 1}).words == ("fly-llc", "-O", "1")
    assert builtin.link().words == ("fly-link",)
    stages = (builtin.opt_py("gfx950"), builtin.llc(), builtin.link())
    assert [stage.name for stage in stages] == ["opt-py", "llc", "link"]
    assert [stage.suffix for stage in stages] == [".ll", ".o", ".hsaco"]


@pytest.mark.parametrize("options", [None, {"emit": "llvm"}])
def test_a_stage_with_lines_is_the_same_otherwise(options):
    stage = builtin.opt_py("gfx950", options)
    assert stage.with_lines is not None
    lines = stage.with_lines()
    assert lines.words == (*stage.words, "-g")
    assert (
        lines.identity()
        == builtin.opt_py("gfx950", {**(options or {}), "debug_info": True}).identity()
    )
    assert lines.with_lines is None
    assert lines.identity() != stage.identity()


@pytest.mark.parametrize(
    ("make", "tool", "first"),
    [
        (lambda: builtin.opt_py("gfx942", {"fast": 1}), "fly-opt-py", "target"),
        (lambda: builtin.llc({"fast": 1}), "fly-llc", "emit"),
    ],
)
def test_an_option_that_there_is_not(make, tool: str, first: str):
    with pytest.raises(UsageError) as refused:
        make()
    assert refused.value.message == f"{tool} has no option 'fast'"
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("its options are ")
    assert first in refused.value.hint.removeprefix("its options are ").split(", ")


def test_what_identifies_the_built_in_stages(monkeypatch):
    """Their options, their sources and LLVM's programs."""
    monkeypatch.setattr(identity, "sources", lambda *packages: f"sources of {packages}")
    monkeypatch.setattr(identity, "program", lambda name: f"program {name}")
    shared = ", ".join(map(repr, identity.SHARED))
    llc, link = builtin.llc().identity(), builtin.link().identity()
    assert f"sources of ('fly_llc', {shared})" in llc
    assert "program llc" in llc
    assert f"sources of ('fly_link', {shared})" in link
    assert "program ld.lld" in link
    others = [builtin.llc({"level": 1}).identity(), builtin.opt_py("gfx942").identity()]
    others.append(builtin.opt_py("gfx950").identity())
    assert len({llc, link, *others}) == 5


def test_what_can_be_started_ahead():
    llc = builtin.llc(target="gfx942").ahead
    assert llc is not None
    found = llc()
    assert found is not None
    assert found[0] == toolchain.find_program("llc")
    assert "-mcpu=gfx942" in found[1]
    unknown = builtin.llc().ahead
    assert unknown is not None
    assert unknown() is None
    link = builtin.link().ahead
    assert link is not None
    found = link()
    assert found is not None
    assert found[0] == toolchain.find_program("ld.lld")


@pytest.mark.parametrize(
    ("options", "settled"),
    [
        ({}, True),
        ({"flags": ("-verify-machineinstrs",)}, True),
        ({"flags": ("-load=/a/b.so",)}, False),
        ({"insert": ("before:greedy=./a.py",)}, False),
        ({"replace": ("greedy=./a.py",)}, False),
    ],
)
def test_a_users_file_may_change_at_any_time(options, settled: bool):
    assert builtin.llc(options).settled is settled


# -- commands

LLVM = ["ld.lld", "llc", "llvm-link", "llvm-mc", "llvm-objcopy", "opt"]


@pytest.mark.parametrize("name", LLVM)
def test_llvms_programs_are_those_of_the_tools(name: str, tmp_path, monkeypatch):
    """Not what PATH has under that name; and what they do before they read is to load."""
    script(tmp_path / name)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    stage = command(name)
    assert stage.settled is True
    assert stage.ahead is not None
    assert stage.ahead() == (toolchain.find_program(name), ())
    assert identity.program(name) in stage.identity()


def test_another_program_is_neither_settled_nor_started_ahead():
    stage = command("cat")
    assert stage.settled is False
    assert stage.ahead is not None
    assert stage.ahead() is None


@pytest.mark.parametrize(
    ("words", "settled"),
    [
        (("opt", "-S", "-O3"), True),
        (("opt", "-load-pass-plugin=/a.so"), False),
        (("opt", "plugin.so"), False),
    ],
)
def test_llvms_programs_are_settled_without_files(words, settled: bool, tmp_path):
    assert command(*words).settled is settled
    assert command(*words, depends=[tmp_path]).settled is False


@pytest.mark.parametrize("place", ["{input}", "{output}", "-o={output}"])
def test_a_program_that_wants_files_is_not_started_ahead(place: str):
    ahead = command("opt", place).ahead
    assert ahead is not None
    assert ahead() is None


def test_a_program_of_another_folder_is_not_started_ahead(tmp_path, monkeypatch):
    ahead = command("opt", "-S").ahead
    monkeypatch.chdir(tmp_path)
    assert ahead is not None
    assert ahead() is None


@pytest.fixture
def beside(tmp_path, monkeypatch) -> Path:
    """The folder of Python's program, with our tools in it; PATH has another folder first."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python" / "python3"))
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    return tmp_path / "python"


def ran(*words: str) -> bytes:
    return run(Chain("gfx942", (command(*words),)), b"text")


def test_our_programs_are_those_beside_python(beside: Path):
    for name in ("fly-opt-py", "fly-llc", "fly-link"):
        script(beside / name, "echo beside")
        script(beside.parent / "path" / name, "echo path")
        assert ran(name) == b"beside\n"
    (beside / "fly-link").unlink()
    assert ran("fly-link") == b"path\n", "where there is none, PATH's"


def test_other_programs_are_paths(beside: Path):
    script(beside / "mine", "echo beside")
    script(beside.parent / "path" / "mine", "echo path")
    assert ran("mine") == b"path\n"


PACKAGES = {
    "fly-opt-py": ("fly_opt", "fly_dialect", *identity.SHARED),
    "fly-llc": ("fly_llc", *identity.SHARED),
    "fly-link": ("fly_link", *identity.SHARED),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_our_programs_are_identified_by_their_sources(name: str, beside: Path, monkeypatch):
    """Their files in bin say nothing of them."""
    script(beside / name)
    said = {PACKAGES[name]: "old"}
    monkeypatch.setattr(identity, "sources", lambda *packages: said[packages])
    monkeypatch.setattr(identity, "program", lambda program: f"program {program}")
    before = command(name).identity()
    assert "program llc" in before
    assert command(name).identity() == before
    said[PACKAGES[name]] = "new"
    assert command(name).identity() != before


def test_what_others_are_identified_by(tmp_path):
    """Their words, in order, and the content of the files these and `depends` name."""
    stage = lambda *words, **named: command("cat", *words, **named).identity()  # noqa: E731
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("1")
    other.write_text("2")
    found = [stage(), stage("-u"), stage("-u", "-v"), stage("-v", "-u"), stage("-u -v")]
    found += [stage(str(path)), stage(str(other)), stage(depends=[path]), stage(depends=[other])]
    path.write_text("3")
    found += [stage(str(path)), stage(depends=[path])]
    assert len(set(found)) == len(found)
    assert command("cat").identity().startswith("cat\ncommand\n'cat'\n")


# -- running


class Watched:
    """What was started ahead, and when it was let go."""

    def __init__(self) -> None:
        self.started: list[int] = []

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.started.append(-1)

    def start(self, first: int = 0) -> None:
        self.started.append(first)


def test_programs_are_started_by_stages_that_work(tmp_path):
    """Not by those whose result is found."""
    stages = tuple(Stage(name, bytes.upper, name, ".txt") for name in ("one", "two", "three"))
    store = Store(tmp_path / "store")
    for chain, expected in (
        (Chain("gfx942", stages[:1]), [1, -1]),
        (Chain("gfx942", stages), [2, 3, -1]),  # what the first makes is there
        (Chain("gfx942", stages), [-1]),
    ):
        watched: Any = Watched()
        list(results(chain, b"text", store, watched))
        assert watched.started == expected


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (("tool", "-x y"), "reproduce: tool '-x y' < {kept}"),
        (("tool", "{input}"), "reproduce: tool {kept} < {kept}"),
        ((), None),
    ],
)
def test_how_to_repeat_what_failed(words, again: str | None, private_cache: Path):
    def refuse(data: bytes) -> bytes:
        raise InputError("no")

    chain = Chain("gfx942", (Stage("picky", refuse, "1", ".txt", words),))
    with pytest.raises(InputError) as refused:
        run(chain, b"input")
    kept = [path for path in private_cache.rglob("*") if path.suffix == ".mlir"]
    assert len(kept) == 1
    assert kept[0].read_bytes() == b"input"
    assert refused.value.hint == (again and again.format(kept=kept[0]))


def test_what_can_not_be_kept_is_not_said_how_to_repeat(monkeypatch):
    def refuse(data: bytes) -> bytes:
        raise InputError("no")

    monkeypatch.setenv("FLY_CACHE_DIR", "/proc/nowhere")
    monkeypatch.setenv("FLY_CACHE", "off")
    with pytest.raises(InputError) as refused:
        run(Chain("gfx942", (Stage("picky", refuse, "1", ".txt", ("tool",)),)), b"input")
    assert refused.value.hint is None


def test_a_store_that_is_given_is_the_only_one(tmp_path):
    store = Store(tmp_path / "store")
    assert run(Chain("gfx942", (command("cat"),)), b"text", store) == b"text"
    assert len(list(store.entries())) == 1
    assert not list(default_store().entries())


def test_what_was_started_for_nothing_is_killed():
    killed = []
    prefetch = Prefetch(Chain("gfx942", ()))
    with prefetch:
        prefetch._programs = SimpleNamespace(kill=lambda: killed.append(1))  # type: ignore[assignment]
        assert not killed
    assert killed == [1]


def test_where_a_stage_is_put():
    one, two, new = (Stage(name, bytes.upper, name, ".txt") for name in ("one", "two", "new"))
    chain = Chain("gfx942", (one, two))
    assert chain.insert_after("one", new).stages == (one, new, two)
    assert chain.insert_after("two", new).stages == (one, two, new)
    assert chain.insert_before("one", new).stages == (new, one, two)
    assert chain.insert_before("two", new).stages == (one, new, two)
    assert chain.replace("one", new).stages == (new, two)
    assert chain.without("one").stages == (two,)


@pytest.mark.parametrize(
    ("stage", "settled"),
    [
        (Stage("a", bytes.upper, "text", ".txt"), True),
        (Stage("a", bytes.upper, lambda: "text", ".txt"), False),
        (Stage("a", bytes.upper, lambda: "text", ".txt", settled=True), True),
    ],
)
def test_a_chain_is_settled_with_all_its_stages(stage: Stage, settled: bool):
    text = Stage("b", bytes.upper, "text", ".txt")
    assert Chain("gfx942", (text, stage)).settled is settled
    assert Chain("gfx942", (stage, text)).settled is settled


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("exit 3", "{path} failed (exit status 3): it said nothing", None),
        (
            "printf 'a\\377b' >&2; exit 1",
            "{path} failed (exit status 1): a\N{REPLACEMENT CHARACTER}b",
            None,
        ),
        ("kill -9 $$", "{path} was killed by signal 9: it said nothing", None),
        ("seq 20 >&2; exit 1", "{path} failed (exit status 1): 1", "2\n  3\n  4\n  5\n  6"),
    ],
)
def test_how_a_command_failed(text: str, message: str, hint: str | None, tmp_path, monkeypatch):
    monkeypatch.setenv("FLY_CACHE", "off")
    path = script(tmp_path / "tool", text)
    with pytest.raises(InputError) as refused:
        command(str(path)).run(b"")
    assert refused.value.message == message.format(path=path)
    if hint is None:
        assert refused.value.hint is None
    else:
        assert refused.value.hint == hint + "".join(f"\n  {line}" for line in range(7, 13))


def test_a_command_runs_in_the_folder_where_it_was_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stage = command("pwd")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert stage.run(b"").decode().strip() == str(tmp_path)
    assert command("pwd").run(b"").decode().strip() == str(tmp_path / "other")


def test_a_program_that_can_not_be_started(tmp_path):
    path = tmp_path / "tool"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    stage = command(str(path))
    with pytest.raises(MissingError, match=r"tool can't be run: No such file or directory"):
        stage.run(b"data")
