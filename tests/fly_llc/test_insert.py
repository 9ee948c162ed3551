"""Filters within code generation: where they run, in which order, and what is said of a bad one."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from chosen_targets import USUAL, chosen, some
from fly_common.errors import InputError, MissingError, UsageError
from fly_llc import Options, compile
from fly_llc.backends.amd import comparison
from fly_llc.codegen import assembly
from fly_llc.codegen.points import named

from .woven import CASES, ir

IDENTITY = "cat"


def script(folder: Path, name: str, body: str, interpreter: str = sys.executable) -> Path:
    path = folder / name
    path.write_text(f"#!{interpreter}\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


NOPS = (
    "import sys; text = sys.stdin.read();"
    " sys.stdout.write(text.replace('S_ENDPGM', '{}\\n    S_ENDPGM'))"
)


CHIPS = some(("gfx942", "gfx1201"), *chosen())
# The smaller examples. Of the larger ones, resumed code generation gives another order.
EXAMPLES = [case for case in CASES if case.usual == USUAL]
PAIRS = [(case, cpu) for case in EXAMPLES for cpu in case.targets if cpu in CHIPS]
PIPELINED = ("preshuffle_gemm", "gemm_f16", "gemm_bf16", "gemm_f32")
# Other registers before allocation lead to another order after it.
REORDERED = (("saxpy_wide", "gfx908"), ("saxpy_wide", "gfx90a"))
NAMED = named("gfx942")
EVERYWHERE = tuple(f"{name}={IDENTITY}" for name in NAMED if name != "pre-ra")


@pytest.mark.parametrize(("case", "cpu"), PAIRS, ids=lambda value: getattr(value, "name", value))
def test_a_filter_that_changes_nothing_changes_nothing(case, cpu):
    """At every named point, on these examples: what the table promises of it. At all of them in one
    compilation on each processor; at each by itself on one of each family."""
    source = ir(case, cpu)
    whole = compile(source, Options())
    ranks = ("exact", "registers", "other")
    alone = NAMED if cpu in ("gfx942", "gfx1100") else ["pre-ra"]
    for name in alone:
        made = compile(source, Options(insert=(f"{name}={IDENTITY}",)))
        rank = ranks.index(assembly.likeness(made, whole))
        family = "gfx9" if cpu.startswith("gfx9") else "rdna"
        word = "pipelined" if family == "gfx9" and case.name in PIPELINED else family
        promise = NAMED[name].promise(word)
        if name == "pre-ra" and (case.name, cpu) in REORDERED:
            promise = "other"
        assert rank <= ranks.index(promise), name
    if case.name == "preshuffle_gemm":
        # Another order before the last scheduling, of the same instructions but for the waits.
        points = tuple(one for one in EVERYWHERE if one.startswith(("pre-waits", "pre-emit")))
        assert without_waits(compile(source, Options(insert=EVERYWHERE))) == without_waits(whole)
    else:
        points = EVERYWHERE
    assert compile(source, Options(insert=points)) == whole


def without_waits(obj: bytes) -> Counter[str]:
    """How often each instruction is in an object's code, by name; s_waitcnt and s_nop aside."""
    names = (line.split()[0] for lines in assembly.functions(obj).values() for line in lines)
    return Counter(name for name in names if not name.startswith(("s_wait", "s_nop")))


def test_they_run_in_the_order_of_the_pipeline_and_as_given(small, tmp_path):
    first = script(tmp_path, "first", NOPS.format("S_NOP 1"))
    second = script(tmp_path, "second", NOPS.format("S_NOP 2"))
    third = script(tmp_path, "third", NOPS.format("S_NOP 3"))
    options = Options(
        "asm",
        insert=(f"pre-emit={third}", f"before:pre-waits={first}", f"after:pre-waits={second}"),
    )
    text = compile(small().encode(), options).decode()
    assert re.findall(r"s_nop (\d)", text)[:3] == ["1", "2", "3"]
    # At one point each sees what the one before made of it.
    options = Options("asm", insert=(f"pre-emit={second}", f"pre-emit={first}"))
    assert re.findall(r"s_nop (\d)", compile(small().encode(), options).decode())[:2] == ["2", "1"]


def test_a_filter_gets_words_and_says_what_it_likes(small, tmp_path, capfd):
    path = script(
        tmp_path,
        "told",
        "import sys; print(sys.argv[1:], file=sys.stderr); print(sys.stdin.read())",
    )
    made = compile(small().encode(), Options(insert=(f"post-ra={path} --deep 'a b'",)))
    assert made == compile(small().encode(), Options())
    assert capfd.readouterr().err == "['--deep', 'a b']\n"


def test_a_pass_can_be_replaced_and_left_out(large, tmp_path):
    source = large("gfx942").encode()
    plain = compile(source, Options())
    without = compile(source, Options(disable=("machine-scheduler",)))
    assert without != plain
    assert compile(source, Options(replace=(f"machine-scheduler={IDENTITY}",))) == without
    path = script(tmp_path, "nops", NOPS.format("S_NOP 5"))
    replaced = compile(source, Options("asm", replace=(f"machine-scheduler={path}",)))
    assert b"s_nop 5" in replaced
    two = compile(source, Options(disable=("postmisched", "machine-scheduler")))
    assert two not in (plain, without)


def test_llvm_options(large):
    source = large("gfx942").encode()
    made = compile(source, Options("asm", flags=("-amdgpu-waitcnt-forcezero=1",)))
    assert made.count(b"s_waitcnt") > 2 * compile(source, Options("asm")).count(b"s_waitcnt")
    with pytest.raises(UsageError, match="is not an LLVM option"):
        Options(flags=("forcezero",))
    with pytest.raises(UsageError, match="llc has no option -amdgpu-no-such"):
        compile(source, Options(flags=("-amdgpu-no-such",)))
    with pytest.raises(UsageError, match="llc's option --amdgpu-waitcnt-forcezero: '7' is invalid"):
        compile(source, Options(flags=("-amdgpu-waitcnt-forcezero=7",)))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none(seconds):
    with pytest.raises(
        UsageError, match=r"--timeout .*: must be a number of seconds above 0 and at most 1000000"
    ):
        Options(timeout=seconds)


def test_inserting_into_mir(large):
    source = large("gfx942").encode()
    mir = compile(source, Options("mir", stop_after="post-ra"))
    assert compile(mir, Options(insert=(f"pre-emit={IDENTITY}",))) == compile(source, Options())
    with pytest.raises(UsageError, match="the MIR was already stopped after virtregrewriter,2"):
        compile(mir, Options(insert=(f"post-isel={IDENTITY}",)))


def test_stopping_behind_an_insertion(large, tmp_path):
    source = large("gfx942").encode()
    path = script(tmp_path, "nops", NOPS.format("S_NOP 5"))
    options = Options(insert=(f"post-ra={path}",))
    mir = compile(source, Options("mir", insert=options.insert, stop_after="pre-emit"))
    assert b"S_NOP 5" in mir
    assert compile(mir, Options()) == compile(source, options)
    with pytest.raises(UsageError, match="something is inserted after virtregrewriter,2, which is"):
        compile(source, Options("mir", insert=options.insert, stop_after="post-isel"))


BAD = {
    "exit": ("import sys; print('no idea', file=sys.stderr); sys.exit(1)", InputError,
             r"the filter \S+ \(after virtregrewriter,2\) failed \(exit status 1\)", "no idea"),
    "killed": ("import os; os.kill(os.getpid(), 9)", InputError, "was killed by signal 9", None),
    "silent": ("import sys; sys.stdin.read()", InputError, "printed nothing", "whole MIR"),
    "garbage": ("import sys; sys.stdin.read(); print('hello')", InputError,
                "printed something that is not MIR: hello", "whole MIR"),
    "headless": ("import sys; print('---\\n' + sys.stdin.read().partition('\\n---\\n')[2])",
                 InputError, "removed the module's IR", "whole MIR"),
    "opcode": ("import sys; print(sys.stdin.read().replace('S_ENDPGM', 'S_ENDPGN'))", InputError,
               "unknown machine instruction name 'S_ENDPGN'", None),
    "operand": ("import sys; print(sys.stdin.read().replace('S_ENDPGM 0', 'S_ENDPGM'))", InputError,
                "Too few operands", None),
    "hangs": ("import time; time.sleep(60)", InputError, "did not finish within 0.5 s", None),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_filter_is_named(small, tmp_path, name):
    body, kind, message, hint = BAD[name]
    path = script(tmp_path, name, body)
    timeout = 0.5 if name == "hangs" else 60
    with pytest.raises(kind, match=message) as caught:
        compile(small().encode(), Options(insert=(f"post-ra={path}",), timeout=timeout))
    assert name in caught.value.render("fly-llc")
    assert hint is None or hint in (caught.value.hint or "")


def test_the_verifier_looks_at_what_a_filter_made(small, tmp_path):
    """A register that nothing has written; of two filters the one that did it is named."""
    path = script(
        tmp_path,
        "undefined",
        "import sys; print(sys.stdin.read().replace('    S_ENDPGM',"
        " '    $vgpr40 = V_MOV_B32_e32 $vgpr41, implicit $exec\\n    S_ENDPGM'))",
    )
    insert = (f"pre-emit={path}", f"pre-emit={IDENTITY}")
    said = "bad machine code in small: Using an undefined physical"
    with pytest.raises(InputError, match=rf"undefined \(before branch-relaxation\): {said}"):
        compile(small().encode(), Options(insert=insert))
    # llc looks at MIR that it reads too, and can't tell whose it is.
    with pytest.raises(
        InputError, match=rf"output of .*undefined and cat \(before branch-relaxation\): {said}"
    ):
        compile(small().encode(), Options(insert=insert, verify=False))


def test_a_filter_that_can_not_run(small, tmp_path):
    source = small().encode()
    plain = tmp_path / "plain"
    plain.write_text("x")
    lost = script(tmp_path, "lost", "x", "/no/such/interpreter")
    for what, message in (
        (str(plain), "is not executable"),
        (str(tmp_path / "absent"), "was not found"),
        ("no-such-filter", "there is no filter no-such-filter"),
        (str(lost), "can't be run: No such file"),
        (f"{tmp_path}/absent.so:x", "plugin .* was not found"),
    ):
        with pytest.raises(MissingError, match=message):
            compile(source, Options(insert=(f"post-ra={what}",)))


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("insert", "pre-ra", "expected before:PASS=WHAT or after:PASS=WHAT"),
        ("insert", "within:greedy=cat", "expected"),
        ("insert", "greedy=cat", "'greedy' is not an insertion point"),
        ("insert", "before:greedy=", "expected"),
        ("insert", "before:greedy='", "is not a command"),
        ("insert", "before:greedy=x.so", "the pass's name is missing"),
        ("insert", "before:gready=cat", "no machine pass gready"),
        ("replace", "before:greedy=cat", "expected PASS=WHAT"),
        ("disable", "gready", "no machine pass gready"),
    ],
)
def test_what_is_wrong_with_the_words(small, field, text, message):
    with pytest.raises(UsageError, match=message):
        compile(small().encode(), Options(**{field: (text,)}))


def test_where_llvm_can_not_go_on_the_nearest_points_are_named(small):
    with pytest.raises(
        InputError, match="LLVM can't resume after greedy for this module"
    ) as caught:
        compile(small().encode(), Options(insert=(f"after:greedy={IDENTITY}",)))
    assert caught.value.hint == "it can resume before greedy and after virtregrewriter"
    with pytest.raises(InputError, match="LLVM requires greedy"):
        compile(small().encode(), Options(disable=("greedy",)))


def test_dumps(small, tmp_path):
    source = small().encode()
    folder = tmp_path / "mir"
    assert compile(source, Options(dump=str(folder))) == compile(source, Options())
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == len(NAMED)
    assert names[0] == "01.after-finalize-isel.mir"
    for path in folder.iterdir():
        # Each says where to go on.
        if "greedy" not in path.name:
            assert compile(path.read_bytes(), Options()) == compile(source, Options())
    other = tmp_path / "other"
    compile(source, Options(insert=("post-ra=nop-sled", f"post-ra={IDENTITY}"), dump=str(other)))
    assert sorted(path.name for path in other.iterdir()) == [
        "01.after-virtregrewriter.2.mir",
        "02.after-virtregrewriter.2.nop-sled.mir",
        "03.after-virtregrewriter.2.cat.mir",
    ]
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingError, match="--dump-mir"):
        compile(source, Options(dump=str(tmp_path / "file")))


def test_the_effect_is_told(small):
    source = small().encode()
    options = Options(insert=("pre-emit=nop-sled --count 3",))
    text = comparison.report(source, compile(source, options), options, "k.ll")
    assert re.search(r"^diff: small$", text, re.MULTILINE)
    assert re.search(r"^  instructions +\d+ → +\d+  \+3 ", text, re.MULTILINE)
    assert re.search(r"^  s_nop +0 → +3  \+3$", text, re.MULTILINE)
    same = Options(insert=(f"pre-emit={IDENTITY}",))
    assert comparison.report(source, compile(source, same), same, "k.ll") == (
        "diff: nothing changed: the object has the same bytes"
    )


def test_the_counts_are_the_disassembler_s(large):
    """`--diff` counts what llc's own assembly has."""
    source = large("gfx942").encode()
    row = comparison.measure(compile(source, Options()))["large"]
    text = compile(source, Options("asm")).decode()
    body = text.partition("large:")[2].partition(".section")[0]
    lines = [line.split()[0] for line in body.splitlines() if re.match(r"\t[a-z]\w+", line)]
    assert row["instructions"] == len(lines)
    assert row["waits"] == sum(name == "s_waitcnt" for name in lines)
    assert row["LDS"] == sum(name.startswith("ds_") for name in lines)
    assert f"; TotalNumVgprs: {row['VGPRs']}\n" in text
    assert f"; codeLenInByte = {row['code bytes']}\n" in text


def test_from_the_shell(small, tmp_path):
    source = tmp_path / "k.ll"
    source.write_text(small())
    filter = script(tmp_path, "f", "import sys; sys.exit('that is not MIR I know')")
    fly_llc = str(Path(sys.executable).with_name("fly-llc"))
    words = [fly_llc, str(source), "--insert", f"pre-emit={filter}", "-o", str(tmp_path / "k.o")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        f"fly-llc: error: the filter {filter} (before branch-relaxation) failed (exit status 1)\n"
        "  that is not MIR I know\n"
        f"  reproduce: fly-llc --insert pre-emit={filter} {source}\n"
    )
    assert not (tmp_path / "k.o").exists()
