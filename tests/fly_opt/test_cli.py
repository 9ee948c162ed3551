"""The tool as a process: streams, flags, exit codes, error lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fly_opt import Options, compile

SMALL = b"module {\n}\n"


def test_the_process_and_the_function_give_the_same_bytes(fly_opt, vector_add):
    done = fly_opt("--target", "gfx942", text=vector_add)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == compile(vector_add, Options(target="gfx942"))


def test_without_options_it_parses_verifies_and_prints(fly_opt, vector_add):
    once = fly_opt(text=vector_add).stdout
    assert once == compile(vector_add)
    assert fly_opt(text=once).stdout == once


def test_a_file_and_an_output(fly_opt, tmp_path):
    source, result = tmp_path / "in.mlir", tmp_path / "out.mlir"
    source.write_bytes(SMALL)
    done = fly_opt(str(source), "-o", str(result))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert result.read_bytes() == SMALL


def test_flags_run_in_their_order_and_find_their_anchor(fly_opt):
    done = fly_opt(
        "--cse",
        "--canonicalize=max-iterations=3 top-down=false",
        "--print-pipeline",
        "--fly-lower-launch-sizes",
        "--convert-gpu-to-rocdl=chipset=gfx942",
    )
    assert done.stdout.decode() == (
        "builtin.module(\n"
        "  cse,\n"
        "  canonicalize{max-iterations=3 top-down=false},\n"
        "  gpu.module(fly-lower-launch-sizes),\n"
        "  gpu.module(convert-gpu-to-rocdl{chipset=gfx942})\n"
        ")\n"
    )


def test_flags_do_what_the_same_passes_do(fly_opt, vector_add):
    passes = ("--fly-set-target=chip=gfx90a", "--fly-extract-host-program", "--cse")
    flags = fly_opt(*passes, text=vector_add)
    text = "fly-set-target{chip=gfx90a},fly-extract-host-program,cse"
    assert flags.stdout == compile(vector_add, Options(passes=text))


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--canonicalise"], 2, "fly-opt-py: error: unknown pass 'canonicalise'"),
        (["--target", "gfx1"], 2, "fly-opt-py: error: unknown target 'gfx1'"),
        (["--emit", "asm"], 2, "fly-opt-py: error: unknown emission 'asm'"),
        (
            ["--target", "gfx942", "--cse"],
            2,
            "fly-opt-py: error: --cse can't be combined with --target",
        ),
        (
            ["--passes", "cse", "--cse"],
            2,
            "fly-opt-py: error: --cse can't be combined with --passes",
        ),
        (["--passes", "cse,"], 2, "fly-opt-py: error: <pipeline>:1:5: expected the name"),
        ([b"--\xff"], 2, "fly-opt-py: error: '--\\udcff': is not UTF-8"),
        (["--passes", b"cse,\xff"], 2, "fly-opt-py: error: 'cse,\\udcff': is not UTF-8"),
        (["-x"], 2, "fly-opt-py: error: no such option: -x"),
        (["one.mlir", "two.mlir"], 2, "fly-opt-py: error: more than one input file"),
        (["no-such.mlir"], 2, "fly-opt-py: error: no-such.mlir: no such file"),
        (["--target"], 2, "fly-opt-py: error: Option '--target' requires an argument"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(fly_opt, arguments, code, line):
    done = fly_opt(*arguments, text=SMALL)
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.decode().startswith(line)


def test_bad_mlir_is_kept_and_the_command_that_reproduces_it_works(fly_opt, tmp_path):
    done = fly_opt("--target", "gfx942", text="module {\n  foo.bar\n}\n")
    kept = next((tmp_path / "cache" / "failed").iterdir())
    assert done.returncode == 1
    assert done.stdout == b""
    first, *rest = done.stderr.decode().splitlines()
    assert first.startswith("fly-opt-py: error: <stdin>:2:3: Dialect `foo' not found")
    assert rest == ["    foo.bar", "    ^", f"  reproduce: fly-opt-py --target=gfx942 {kept}"]
    command = rest[-1].removeprefix("  reproduce: fly-opt-py ").split()
    again = fly_opt(*command)
    assert again.returncode == 1
    assert again.stderr.decode().startswith(f"fly-opt-py: error: {kept}:2:3: Dialect `foo'")


def test_a_crash_of_mlir_is_an_error_line(fly_opt, tmp_path):
    """The verifier lets a pointer begin with an integer. Should MLIR refuse that one day, the test
    needs another of its crashes."""
    source = "module {\n  llvm.mlir.global internal @g(1 : i32) : !llvm.ptr\n}\n"
    assert fly_opt("--emit", "llvm", text=source, FLY_DEBUG="1").returncode < 0
    done = fly_opt("--emit", "llvm", "-o", str(tmp_path / "out"), text=source)
    assert (done.returncode, done.stdout) == (1, b"")
    first, hint, reproduce = done.stderr.decode().splitlines()
    assert first == (
        "fly-opt-py: error: <stdin>: MLIR crashed on this input (signal 11): Global variable"
        " initializer type does not match global variable type!"
    )
    assert "FLY_DEBUG=1" in hint
    assert reproduce.startswith("  reproduce: fly-opt-py --emit=llvm ")
    assert not (tmp_path / "out").exists()
    again = fly_opt(*reproduce.removeprefix("  reproduce: fly-opt-py ").split())
    assert again.returncode == 1


def test_a_failing_pass_leaves_no_output(fly_opt, tmp_path):
    result = tmp_path / "out.ll"
    source = "module {\n  func.func @f() {\n    return\n  }\n}\n"
    done = fly_opt("--target", "gfx942", "-o", str(result), text=source)
    assert done.returncode == 1
    assert done.stderr.decode().startswith(
        "fly-opt-py: error: <stdin>:2:3: pass fly-extract-host-program: the host function"
        " does nothing"
    )
    assert not result.exists()


@pytest.mark.parametrize("data", [b"\xff\xfe\x00module", b"\x7fELF\x02\x01"])
def test_what_is_no_text_is_refused(fly_opt, data):
    done = fly_opt(text=data)
    assert done.returncode == 1
    assert done.stderr.startswith(b"fly-opt-py: error: <stdin>")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"; ModuleID = '<stdin>'\nsource_filename = \"<stdin>\"\n", "an empty LLVM module"),
    ],
)
def test_an_empty_input_is_a_stage_that_failed(fly_opt, data, what):
    for words in ([], ["--target", "gfx942"], ["--split-input-file"]):
        done = fly_opt(*words, text=data)
        assert (done.returncode, done.stdout) == (1, b"")
        first, why = done.stderr.decode().splitlines()[:2]
        assert first == f"fly-opt-py: error: <stdin>: the input is {what}"
        assert why.endswith("produced no output; see its own message above")


def test_dumps_and_times_go_to_standard_error(fly_opt, vector_add):
    plain = fly_opt("--canonicalize", "--cse", text=vector_add)
    watched = fly_opt(
        "--canonicalize",
        "--cse",
        "--timing",
        "--mlir-print-ir-after-all",
        "--mlir-print-ir-before-all",
        text=vector_add,
    )
    assert watched.stdout == plain.stdout
    said = watched.stderr.decode()
    titles = [line for line in said.splitlines() if line.startswith("// -----//")]
    assert titles == [
        f"// -----// IR Dump {when} {name} //----- //"
        for name in ("canonicalize", "cse")
        for when in ("Before", "After")
    ]
    assert "!fly.memref<f32, global, ?{i64}:1>" in said  # FlyDSL's text, not the internal one
    rows = [line.split()[0] for line in said[said.index("step ") :].splitlines()[1:]]
    assert rows[-1] == "total"
    assert {"canonicalize", "cse", "parse", "print"} <= set(rows)


def test_a_failing_pass_is_dumped_and_timed(fly_opt):
    source = "module {\n  func.func @f() {\n    return\n  }\n}\n"
    done = fly_opt(
        "--fly-set-target=chip=gfx942",
        "--fly-extract-host-program",
        "--timing",
        "--mlir-print-ir-after-all",
        text=source,
    )
    said = done.stderr.decode()
    assert "// -----// IR Dump After fly-extract-host-program Failed //----- //" in said
    assert "\nfly-extract-host-program " in said


def test_a_closed_pipe_ends_it_quietly(vector_add):
    program = Path(sys.executable).with_name("fly-opt-py")
    process = subprocess.Popen(
        [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write(vector_add)
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0


def test_the_door_imports_neither_mlir_nor_numpy():
    program = (
        "import sys; from fly_opt import cli; import typer.main;"
        "typer.main.get_command(cli.command.app());"
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'mlir', 'torch_mlir', 'numpy', 'rich', 'fly_dialect'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


SPLIT = """\
module {
  // expected-error@+1 {{Dialect `foo' not found}}
  foo.bar
}
// -----
module {
}
// -----
module {
  func.func @f() -> i32 { // expected-note@below {{nothing}}
    return // expected-error {{has 0 operands}}
  }
}
"""


def test_split_and_expected_errors(fly_opt):
    right = SPLIT.replace(" // expected-note@below {{nothing}}", "")
    done = fly_opt("--split-input-file", "--verify-diagnostics", text=right)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = fly_opt("--split-input-file", "--verify-diagnostics", text=SPLIT)
    assert done.returncode == 1
    assert done.stderr.decode().startswith(
        'fly-opt-py: error: <stdin>:11: expected note "nothing" was not produced'
    )
    done = fly_opt(
        "--split-input-file", "--verify-diagnostics", text=right.replace("has 0", "has 1")
    )
    assert 'expected error "has 1 operands" was not produced' in done.stderr.decode()
    unexpected = right.replace("  // expected-error@+1 {{Dialect `foo' not found}}\n", "")
    done = fly_opt("--split-input-file", "--verify-diagnostics", text=unexpected)
    assert done.stderr.decode().startswith(
        "fly-opt-py: error: <stdin>:2: unexpected error: Dialect `foo' not found"
    )


def test_split_without_verification(fly_opt):
    done = fly_opt("--split-input-file", text="module @a {\n}\n// -----\nmodule @b {\n}\n")
    assert done.stdout == b"module @a {\n}\n// -----\nmodule @b {\n}\n"
    done = fly_opt("--split-input-file", text="module @a {\n}\n// -----\nmodule {\n  x.y\n}\n")
    assert done.stdout == b""
    assert done.stderr.decode().startswith("fly-opt-py: error: <stdin>:5:3: Dialect `x'")
