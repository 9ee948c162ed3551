"""fly-run as people call it: files, the table, and the line of every mistake."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.record import replace
from fly_host import text
from fly_host.listing import listing
from fly_run import cli

FLY_RUN = Path(sys.executable).parent / "fly-run"


@pytest.fixture
def folder(tmp_path, assemble, add_program):
    """A folder with the code objects and arrays that calls below name."""
    writable = replace(add_program.parameters[2], access="rw")
    changed = replace(add_program, parameters=(*add_program.parameters[:2], writable))
    anonymous = replace(add_program.parameters[2], shape=(None,))
    unknown = replace(add_program, parameters=(*add_program.parameters[:2], anonymous))
    for name, made in (("add", add_program), ("rw", changed), ("any", unknown), ("bare", None)):
        (tmp_path / f"{name}.hsaco").write_bytes(assemble("add", manifest=made))
    generator = np.random.default_rng(5)
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", generator.random(1000, np.float32))
    np.save(tmp_path / "wide.npy", np.zeros(1000))
    np.save(tmp_path / "short.npy", np.zeros(999, np.float32))
    np.save(tmp_path / "square.npy", np.zeros((10, 100), np.float32))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:1000])
    return tmp_path


@pytest.fixture
def fly_run(folder):
    def call(*words: str, data: bytes = b"", **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [FLY_RUN, *words],
            input=data,
            capture_output=True,
            cwd=folder,
            env=os.environ | environment,
        )

    return call


def load(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / name)


def test_files_in_files_out(fly_run, folder):
    done = fly_run("add.hsaco", "A=a.npy", "B=b.npy", "C=c.npy")
    assert (done.returncode, done.stdout) == (0, b"")
    wanted = load(folder, "a.npy") + load(folder, "b.npy")
    assert (load(folder, "c.npy") == wanted).all()


def test_the_code_object_comes_through_a_pipe(fly_run, folder):
    for words in ((), ("-",)):
        data = (folder / "add.hsaco").read_bytes()
        done = fly_run(*words, "A=a.npy", "B=b.npy", "C=c.npy", data=data)
        assert done.returncode == 0, done.stderr
        (folder / "c.npy").unlink()


def test_the_table(fly_run):
    done = fly_run("add.hsaco", "A=arange(100)", "B=full(100,f32,0.5)", "C=c.npy")
    lines = done.stderr.decode().splitlines()
    assert lines[:4] == [
        "name  dtype  shape  min  max   mean  first              result",
        "A     f32    100",
        "B     f32    100",
        "C     f32    100    0.5  99.5  50    0.5 1.5 2.5 3.5 …  → c.npy",
    ]
    assert lines[4].startswith("add: grid 2, block 64: ")
    assert " wave instructions in " in lines[4]
    assert len(lines) == 5


def test_quiet_says_nothing(fly_run):
    done = fly_run("-q", "add.hsaco", "A=a.npy", "B=b.npy", "C=c.npy")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_changed_array_that_is_not_kept_is_told(fly_run, folder):
    before = (folder / "a.npy").read_bytes()
    done = fly_run("rw.hsaco", "A=a.npy", "B=b.npy", "C=a.npy")
    assert "not kept; C=…:out.npy writes it" in done.stderr.decode()
    assert (folder / "a.npy").read_bytes() == before
    fly_run("rw.hsaco", "A=a.npy", "B=b.npy", "C=a.npy:a.npy")
    assert (folder / "a.npy").read_bytes() != before


def test_an_empty_grid(fly_run, folder):
    done = fly_run("add.hsaco", "A=zeros(0)", "B=zeros(0)", "C=c.npy")
    assert done.returncode == 0
    assert done.stderr.decode().endswith("add: grid 0, block 64: nothing to run\n")
    assert load(folder, "c.npy").shape == (0,)


def test_arguments_in_order(fly_run, folder):
    words = ("--kernel", "add", "--grid", "16", "--block", "64", "a.npy", "b.npy")
    done = fly_run("bare.hsaco", *words, "zeros(1000,f32):c.npy", "i64:1000")
    assert done.returncode == 0, done.stderr
    assert (load(folder, "c.npy") == load(folder, "a.npy") + load(folder, "b.npy")).all()


def test_a_program_does_not_stand_in_the_way_of_a_kernel(fly_run, folder):
    words = ("--kernel", "add", "--grid", "1", "--block", "64", "a.npy", "b.npy")
    fly_run("add.hsaco", *words, "sum=zeros(1000,f32):c.npy", "bytes:2800000000000000")
    assert np.count_nonzero(load(folder, "c.npy")) == 40


def test_inspect(fly_run, add_program):
    done = fly_run("add.hsaco", "--inspect")
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.startswith("add.hsaco: gfx942, ")
    assert "\n".join(text.splitlines()[2:]) + "\n" == (
        "kernel add\n"
        "  entry      0x1500\n"
        "  block      at most 64 work items in waves of 64\n"
        "  registers  4 VGPR (0 of them AGPR), 18 SGPR, 0 spilled\n"
        "  memory     0 bytes LDS, 0 scratch per lane, 32 of arguments\n"
        "  offset  size  argument\n"
        "       0     8  global_buffer\n"
        "       8     8  global_buffer\n"
        "      16     8  global_buffer\n"
        "      24     8  by_value\n"
        "\n"
        "program add for gfx942\n"
        "inputs\n"
        "  A  f32[n], read, contiguous\n"
        "  B  f32[n], read, contiguous\n"
        "  C  f32[n], written, contiguous\n"
        "steps\n"
        "  launch add(A, B, C, (A.shape[0]))\n"
        "    grid ceildiv(A.shape[0], 64), block 64\n"
    )
    assert text.endswith(f"\n\n{listing(add_program)}")
    assert (
        "no host program: run it with --kernel"
        in fly_run("bare.hsaco", "--inspect").stdout.decode()
    )


def test_inspect_as_json(fly_run, add_program):
    content = json.loads(fly_run("add.hsaco", "--inspect", "--json").stdout)
    assert content["target"] == "gfx942"
    assert [kernel["name"] for kernel in content["kernels"]] == ["add"]
    assert text.read(json.dumps(content["program"])) == add_program


def test_version_says_what_has_not_been_checked(fly_run):
    text = fly_run("--version").stdout.decode()
    assert text.startswith("fly-run 0.")
    assert "have not been compared with hardware" in text


GOOD = ("A=a.npy", "B=b.npy")
FORMS = (
    "write x.npy, a number, zeros(shape,dtype), full(shape,dtype,value), arange(n,dtype) or"
    " random(shape,dtype,seed=0); :out.npy after it writes the result there"
)
PARAMETERS = "A: f32[n], read, B: f32[n], read, C: f32[n], written"


@pytest.mark.parametrize(
    ("words", "code", "lines"),
    [
        (
            ("add.hsaco", *GOOD),
            2,
            ["add needs C, f32[n], written", "add C=c.npy"],
        ),
        (
            ("add.hsaco", *GOOD, "c=c.npy"),
            2,
            ["add has no parameter 'c'", f"did you mean C?  parameters: {PARAMETERS}"],
        ),
        (
            ("add.hsaco", *GOOD, "zzz=1"),
            2,
            ["add has no parameter 'zzz'", f"parameters: {PARAMETERS}"],
        ),
        (
            ("add.hsaco", *GOOD, "A=b.npy", "C=c.npy"),
            2,
            ["argument A is given twice"],
        ),
        (
            ("add.hsaco", "a.npy", "b.npy", "c.npy"),
            2,
            [
                "a.npy: the argument has no name",
                "arguments are given by name: A=a.npy B=b.npy C=c.npy",
            ],
        ),
        (
            ("add.hsaco", "A=wide.npy", "B=b.npy", "C=c.npy"),
            1,
            ["A must be f32, but the array is f64", "convert it: x.astype('float32')"],
        ),
        (
            ("add.hsaco", "A=square.npy", "B=b.npy", "C=c.npy"),
            1,
            ["A must have 1 dimensions, but the array has 2: shape (10, 100)", "A is f32[n], read"],
        ),
        (
            ("add.hsaco", "A=a.npy", "B=short.npy", "C=c.npy"),
            1,
            ["extent n is 1000 in A, but 999 in B", "A has shape (1000,), B (999,)"],
        ),
        (
            ("add.hsaco", "A=cut.npy", "B=b.npy", "C=c.npy"),
            1,
            [
                "cut.npy: is truncated: shape (1000,) of float32 takes 4000 bytes, but the file"
                " has 872"
            ],
        ),
        (
            ("add.hsaco", "A=none.npy", "B=b.npy", "C=c.npy"),
            2,
            ["none.npy: no such file"],
        ),
        (
            ("add.hsaco", "A=3", "B=b.npy", "C=c.npy"),
            1,
            [
                "A is f32[n], read; 3 is not an array",
                "for an array of one value: A=full((100,),f32,3)",
            ],
        ),
        (
            ("add.hsaco", "A=i32:3", "B=b.npy", "C=c.npy"),
            2,
            ["A=i32:3: A is f32[n], read, an array"],
        ),
        (("add.hsaco", "A=nonsense"), 2, ["A=nonsense: can't parse 'nonsense'", FORMS]),
        (
            ("add.hsaco", "A=a.npy:x.npy", "B=b.npy", "C=c.npy"),
            2,
            ["A=a.npy:x.npy: A is only read, so there is no result to write"],
        ),
        (
            ("any.hsaco", *GOOD, "C=c.npy"),
            2,
            [
                "C=c.npy: extent 0 of C can't be computed from the other arguments",
                "specify it: C=zeros((N,),f32):c.npy",
            ],
        ),
        (
            ("add.hsaco", *GOOD, "C=nowhere/c.npy"),
            2,
            ["C=…:nowhere/c.npy: the directory nowhere does not exist"],
        ),
        (("none.hsaco", *GOOD), 2, ["none.hsaco: no such file"]),
        (
            ("add.hsaco", "rw.hsaco"),
            2,
            [
                "two files are given, add.hsaco and rw.hsaco",
                "fly-run runs one code object; arguments have the form NAME=VALUE",
            ],
        ),
        (
            ("add.hsaco", *GOOD, "C=c.npy", "--device", "exec: "),
            2,
            [
                "--device exec: names no command",
                "write --device 'exec:my-launcher --fast'",
            ],
        ),
        (
            ("add.hsaco", *GOOD, "C=c.npy", "--device", "abacus"),
            2,
            [
                "--device abacus: no such device",
                "devices: auto, emulator, cpu, hip, cuda, exec:COMMAND",
            ],
        ),
        (
            ("add.hsaco", *GOOD, "C=c.npy", "--grid", "4"),
            2,
            ["--grid requires --kernel: a host program defines its own sizes"],
        ),
        (
            ("add.hsaco", *GOOD, "C=c.npy", "--cluster", "2"),
            2,
            ["--cluster requires --kernel: a host program defines its own sizes"],
        ),
        (
            ("bare.hsaco", "--kernel", "add", "--block", "64", "--cluster", "2,1,1,1", "a.npy"),
            2,
            ["--cluster 2,1,1,1: expected one to three integers, as in 4 or 16,16"],
        ),
        (
            ("bare.hsaco", *GOOD),
            2,
            [
                "the code object has no host program: it was not made by fly-opt-py",
                "specify what to launch: --kernel add --grid 4 --block 256, and the arguments in"
                " order",
            ],
        ),
        (
            ("bare.hsaco", "--kernel", "add", "a.npy"),
            2,
            ["--kernel needs --block", "for example, add --block 256 --grid 4"],
        ),
        (
            ("bare.hsaco", "--kernel", "sub", "--block", "64"),
            1,
            ["no kernel 'sub' in the code object", "its kernels: add"],
        ),
        (
            ("bare.hsaco", "--kernel", "add", "--block", "64", "a.npy"),
            2,
            [
                "add takes 4 arguments, got 1",
                "they are: a global_buffer, a global_buffer, a global_buffer, 8 bytes by value",
            ],
        ),
        (
            ("bare.hsaco", "--kernel", "add", "--block", "64", "a.npy", "b.npy", "a.npy", "5"),
            2,
            [
                "5: the size of a number is not known without a program",
                "give its type: i32:5, f32:2.5",
            ],
        ),
        (
            ("bare.hsaco", "--kernel", "add", "--block", "64", "--grid", "x", "a.npy"),
            2,
            ["--grid x: expected one to three integers, as in 4 or 16,16"],
        ),
        (
            ("add.hsaco", *GOOD, "C=c.npy", "--max-instructions", "0"),
            2,
            ["--max-instructions must be at least 1"],
        ),
    ],
)
def test_each_mistake_has_its_line(folder, words, code, lines, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["fly-run", *words])
    # The process is pytest's.
    monkeypatch.setattr("fly_run.shell.command.isolate", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    wanted = "\n  ".join([f"fly-run: error: {lines[0]}", *lines[1:]]) + "\n"
    assert capfd.readouterr() == ("", wanted)
    assert ended.value.code == code
    assert not (folder / "c.npy").exists()


def test_a_damaged_code_object_from_a_pipe_is_kept(fly_run, folder):
    data = (folder / "add.hsaco").read_bytes()[:1000]
    done = fly_run(*GOOD, "C=c.npy", data=data, FLY_CACHE_DIR=str(folder / "cache"))
    (kept,) = (folder / "cache" / "failed").iterdir()
    assert kept.read_bytes() == data
    assert done.returncode == 1
    lines = done.stderr.decode().splitlines()
    assert lines[0].startswith("fly-run: error: <stdin>: the section table is at bytes ")
    assert lines[-1] == f"  reproduce: fly-run {kept} A=a.npy B=b.npy C=c.npy"


def test_an_endless_run_is_ended(fly_run, folder):
    done = fly_run("add.hsaco", *GOOD, "C=c.npy", "--max-instructions", "3")
    assert done.returncode == 1
    assert done.stderr.decode().startswith("fly-run: error: timeout: ")
    assert "the limit is 3; kernel add pc 0x" in done.stderr.decode()
    assert not (folder / "c.npy").exists()


def test_what_lies_outside_a_buffer_is_a_fault(fly_run, folder):
    words = ("--kernel", "add", "--grid", "16", "--block", "64", "a.npy", "x=short.npy")
    done = fly_run("bare.hsaco", *words, "y=zeros(1000,f32):c.npy", "i64:1000")
    assert done.returncode == 1
    message = done.stderr.decode()
    for part in ("fault: 4 bytes at 0x", "kernel add pc 0x", "at the end of `x` (3996 bytes)"):
        assert part in message
    assert "'global_load_dword v3, v0, s[6:7]'" in message
    assert not (folder / "c.npy").exists()


def test_the_wrong_processor_is_named(fly_run, folder, assemble):
    (folder / "new.hsaco").write_bytes(
        assemble("local", "gfx90a").replace(b"\x3f\x05", b"\x44\x05", 1)
    )
    done = fly_run("new.hsaco", "--kernel", "local", "--block", "64", "lds:4", "lds:4", "a.npy")
    assert (done.returncode, done.stdout) == (3, b"")
    assert "gfx1103" in done.stderr.decode()


def test_outputs_are_whole_or_absent(fly_run, folder):
    (folder / "c.npy").write_bytes(b"before")
    done = fly_run("add.hsaco", *GOOD, "C=c.npy", "--max-instructions", "3")
    assert done.returncode == 1
    assert (folder / "c.npy").read_bytes() == b"before"


def test_bytes_in_the_other_order_are_named(fly_run, folder):
    content = io.BytesIO()
    np.save(content, np.zeros(1000, ">f4"))
    (folder / "swapped.npy").write_bytes(content.getvalue())
    done = fly_run("add.hsaco", "A=swapped.npy", "B=b.npy", "C=c.npy")
    assert done.returncode == 1
    assert "its byte order is not this machine's" in done.stderr.decode()
