"""Chains as data: changing them, storing results stage by stage, external commands, failures."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import pytest
from fly_common.errors import InputError, MissingError, UsageError
from fly_store.store import Store

from fly.chains.chain import Chain, Prefetch, chain, results, run
from fly.chains.stage import Stage


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def counting(name: str, log: list[str], fingerprint: str = "1", add: bytes | None = None) -> Stage:
    """A stage that appends its name and writes down that it ran."""

    def work(data: bytes) -> bytes:
        log.append(name)
        return data + (name.encode() if add is None else add)

    return Stage(name, work, fingerprint, f".{name}")


def three(log: list[str]) -> Chain:
    return Chain("gfx942", tuple(counting(name, log) for name in "abc"))


def names(chain: Chain) -> list[str]:
    return [stage.name for stage in chain]


def test_a_chain_runs_its_stages_in_order():
    assert run(three([]), b">") == b">abc"


def test_the_default_chain():
    made = chain(target="gfx90a")
    assert names(made) == ["opt-py", "opt", "llc", "link"]
    assert made.target == "gfx90a"
    assert names(chain(opt=None)) == ["opt-py", "llc", "link"]
    assert [stage.suffix for stage in made] == [".ll", ".opt.ll", ".o", ".hsaco"]


def test_the_target_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("FLY_TARGET", raising=False)
    assert chain().target == "gfx942"
    monkeypatch.setenv("FLY_TARGET", "gfx950")
    assert chain().target == "gfx950"
    assert chain(target="gfx90a").target == "gfx90a"


def test_the_default_chains_of_two_targets_have_other_identities():
    identities = {chain(target=target).identity() for target in ("gfx90a", "gfx942", "gfx950")}
    assert len(identities) == 3
    assert chain(target="gfx942").identity() in identities


def test_an_unknown_option_of_a_stage_is_refused():
    with pytest.raises(UsageError, match="fly-llc has no option 'speed'"):
        chain(llc=[("speed", 11)])


def test_editing_makes_a_new_chain():
    log: list[str] = []
    old = three(log)
    new = counting("x", log)
    assert names(old.replace("b", new)) == ["a", "x", "c"]
    assert names(old.without("a")) == ["b", "c"]
    assert names(old.insert_before("a", new)) == ["x", "a", "b", "c"]
    assert names(old.insert_after("c", new)) == ["a", "b", "c", "x"]
    assert names(old) == ["a", "b", "c"]


def test_a_stage_that_is_not_there():
    with pytest.raises(UsageError, match="no stage 'opt'\n  its stages are a, b, c"):
        three([]).without("opt")


def test_a_second_run_finds_everything():
    log: list[str] = []
    assert run(three(log), b">") == run(three(log), b">")
    assert log == ["a", "b", "c"]
    run(three(log), b"other")
    assert log == ["a", "b", "c"] * 2


def test_editing_one_stage_reruns_only_the_tail():
    log: list[str] = []
    run(three(log), b">")
    log.clear()
    edited = three(log).replace("b", counting("b", log, fingerprint="2", add=b"B"))
    assert run(edited, b">") == b">aBc"
    assert log == ["b", "c"]


def test_a_stage_whose_result_did_not_change_ends_the_rerun():
    log: list[str] = []
    run(three(log), b">")
    log.clear()
    edited = three(log).replace("b", counting("b", log, fingerprint="2"))
    assert run(edited, b">") == b">abc"
    assert log == ["b"]


def test_stages_with_one_fingerprint_and_two_names_are_two():
    log: list[str] = []
    run(Chain("gfx942", (counting("a", log),)), b">")
    run(Chain("gfx942", (counting("b", log),)), b">")
    assert log == ["a", "b"]


def test_results_come_stage_by_stage():
    made = [(stage.name, data) for stage, data in results(three([]), b">")]
    assert made == [("a", b">a"), ("b", b">ab"), ("c", b">abc")]


def test_a_fingerprint_that_changed_during_the_run_is_not_stored(tmp_path: Path):
    versions = iter(["1", "2", "2", "2"])
    stage = Stage("a", lambda data: data + b"!", lambda: next(versions), ".a")
    store = Store(tmp_path / "store")
    assert run(Chain("gfx942", (stage,)), b">", store) == b">!"
    assert not list(store.entries())


def test_a_stage_must_make_bytes():
    stage = Stage("text", lambda data: data.decode(), "1", ".txt")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="stage text returned str, but must return bytes"):
        run(Chain("gfx942", (stage,)), b">")


# --- external commands ---


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    # Older than the clock's grain, so that its digest may be remembered.
    os.utime(path, (0, time.time() - 100))
    return path


UPPER = "sys.stdout.write(sys.stdin.read().upper())"


def test_a_command_is_a_stage():
    stage = Stage.command(["tr", "a-z", "A-Z"], suffix=".txt")
    assert stage.name == "tr"
    assert run(Chain("gfx942", (stage,)), b"some text") == b"SOME TEXT"


def test_a_command_with_files(tmp_path: Path):
    body = "open(sys.argv[2], 'w').write(open(sys.argv[1]).read()[::-1])"
    path = script(tmp_path / "reverse", body)
    stage = Stage.command([str(path), "{input}", "{output}"], suffix=".txt")
    assert run(Chain("gfx942", (stage,)), b"abc") == b"cba"


def test_llvm_programs_are_the_toolchains():
    stage = Stage.command(["opt", "-S", "-passes=instsimplify"], suffix=".ll")
    ir = b"define i32 @f(i32 %x) {\n  %y = add i32 %x, 0\n  ret i32 %y\n}\n"
    assert b"add" not in run(Chain("gfx942", (stage,)), ir)


def test_a_commands_words_are_in_its_fingerprint():
    one = Stage.command(["tr", "a", "b"], suffix=".txt")
    two = Stage.command(["tr", "a b"], suffix=".txt")
    assert one.identity() != two.identity()
    assert one.identity() == Stage.command(["tr", "a", "b"], suffix=".txt").identity()


def test_an_edited_program_runs_again_in_the_same_process(tmp_path: Path):
    path = script(tmp_path / "filter", UPPER)
    chained = Chain("gfx942", (Stage.command(["./filter"], suffix=".txt"),))
    assert run(chained, b"text") == b"TEXT"
    script(path, UPPER.replace("upper", "title"))
    assert run(chained, b"text") == b"Text"
    script(path, UPPER)
    assert run(chained, b"text") == b"TEXT"


def test_an_edit_that_keeps_size_and_time_to_the_second_is_seen(tmp_path: Path):
    path = script(tmp_path / "filter", UPPER.replace("upper", "lower"))
    chained = Chain("gfx942", (Stage.command(["./filter"], suffix=".txt"),))
    path.touch()
    assert run(chained, b"Text") == b"text"
    stamp = path.stat()
    path.write_text(path.read_text().replace("lower", "upper"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert run(chained, b"Text") == b"TEXT"


@pytest.mark.parametrize(
    "words",
    [
        [sys.executable, "pass.py"],
        [sys.executable, "-X", "dev", "./pass.py"],
        ["cat", "--plugin=pass.py"],
        ["cat", "--insert=before:machine-scheduler=./pass.py"],
        ["cat", "--load=pass.py:name"],
    ],
)
def test_files_that_words_name_are_in_the_fingerprint(tmp_path: Path, words: list[str]):
    path = tmp_path / "pass.py"
    path.write_text("print(1)")
    stage = Stage.command(words, suffix=".txt")
    before = stage.identity()
    path.write_text("print(2)")
    assert stage.identity() != before
    path.write_text("print(1)")
    assert stage.identity() == before


def test_files_that_a_command_depends_on_are_in_the_fingerprint(tmp_path: Path):
    path = tmp_path / "table.txt"
    path.write_text("1")
    stage = Stage.command(["cat"], suffix=".txt", depends=[path])
    before = stage.identity()
    path.write_text("2")
    assert stage.identity() != before
    path.unlink()
    with pytest.raises(MissingError, match=r"table\.txt: No such file or directory"):
        stage.identity()


def test_a_large_programs_digest_is_remembered_in_the_store(tmp_path: Path, monkeypatch):
    from fly_store import file_digests

    path = tmp_path / "large"
    path.write_bytes(bytes(file_digests.LARGE))
    os.utime(path, (0, time.time() - 100))
    monkeypatch.setattr(file_digests, "_known", {})
    digest = file_digests.digest_of(path)
    monkeypatch.setattr(file_digests, "_known", {})
    monkeypatch.setattr(file_digests, "_hash", lambda path: pytest.fail("hashed again"))
    assert file_digests.digest_of(path) == digest


def test_the_library_s_digest_is_taken_beside_the_trace(monkeypatch):
    """Where there is something to trace, and before it is traced."""
    from fly_store import identity

    happened = []
    monkeypatch.setattr(identity, "program_ahead", lambda: happened.append("digest"))
    with Prefetch(chain("gfx942")) as prefetch:
        assert not happened
        prefetch.start()
        prefetch.start()
    assert set(happened) == {"digest"}
    happened.clear()
    with Prefetch(Chain("gfx942", (Stage.command(["cat"], suffix=".txt"),))) as prefetch:
        prefetch.start()
    assert not happened


def test_a_failing_command_says_why_and_how_to_do_it_again(tmp_path: Path):
    path = script(tmp_path / "picky", "sys.exit('line 1: no\\nand this is why')")
    stage = Stage.command([str(path), "--hard"], suffix=".txt")
    with pytest.raises(InputError) as raised:
        run(Chain("gfx942", (stage,)), b"input")
    error = raised.value
    assert error.message == f"{path} failed (exit status 1): line 1: no"
    why, again = (error.hint or "").splitlines()
    assert why == "and this is why"
    command, _, kept = again.strip().partition(" < ")
    assert command == f"reproduce: {path} --hard"
    assert Path(kept).read_bytes() == b"input"
    assert Path(kept).suffix == ".mlir"


def test_a_failure_is_not_stored(tmp_path: Path):
    path = script(tmp_path / "picky", "sys.exit(1)")
    chained = Chain("gfx942", (Stage.command([str(path)], suffix=".txt"),))
    for _ in range(2):
        with pytest.raises(InputError, match="exit status 1"):
            run(chained, b"input")
    assert not list(Store(tmp_path / "cache" / "store").entries())


def test_a_command_that_is_killed(tmp_path: Path):
    path = script(tmp_path / "dies", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(InputError, match="was killed by signal 9: it said nothing"):
        run(Chain("gfx942", (Stage.command([str(path)], suffix=".txt"),)), b"")


def test_a_command_that_does_not_end(tmp_path: Path, monkeypatch):
    """From the folder it was made in, and from another one."""
    monkeypatch.setenv("FLY_TIMEOUT", "0.3")
    stage = Stage.command(["sleep", "60"], suffix=".txt")
    for folder in (os.getcwd(), tmp_path):
        monkeypatch.chdir(folder)
        with pytest.raises(InputError, match=r"sleep did not finish within 0\.3 s and was killed"):
            run(Chain("gfx942", (stage,)), b"input")


def test_a_command_that_does_not_exist():
    stage = Stage.command(["no-such-program"], suffix=".txt")
    with pytest.raises(MissingError, match="the program no-such-program of a stage was not found"):
        run(Chain("gfx942", (stage,)), b"")


def test_a_command_that_promises_a_file_and_writes_none():
    stage = Stage.command(["true", "{output}"], suffix=".txt")
    with pytest.raises(InputError, match=r"succeeded but wrote no \{output\}"):
        run(Chain("gfx942", (stage,)), b"")


def test_what_a_command_remarks_is_passed_on(tmp_path: Path, capfd):
    path = script(tmp_path / "talks", "print('remark', file=sys.stderr); print('made')")
    assert run(Chain("gfx942", (Stage.command([str(path)], suffix=".txt"),)), b"") == b"made\n"
    assert capfd.readouterr() == ("", "remark\n")


def test_a_command_needs_a_word():
    with pytest.raises(UsageError, match="at least one word"):
        Stage.command([], suffix=".txt")


def test_an_empty_input_and_a_full_store_are_no_special_cases(tmp_path: Path):
    (tmp_path / "cache").write_text("not a folder")
    log: list[str] = []
    assert run(three(log), b"") == b"abc" == run(three(log), b"")
    assert log == ["a", "b", "c"] * 2
