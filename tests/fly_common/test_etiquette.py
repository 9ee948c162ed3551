"""The manners of all five tools, from outside: exit codes, streams, terminals, leftovers."""

import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
HEAVY = ("mlir", "torch_mlir", "numpy", "rich", "torch", "msgpack", "asyncio")

LLVM_IR = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 7, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-cpu"="gfx942" }
"""


@dataclass(frozen=True)
class Tool:
    """`good` is a call that succeeds and prints; `{input}` stands for the input file."""

    name: str
    module: str
    good: tuple[str, ...]
    writes: bool = True  # has -o
    binary: bool = False
    needs_llvm: bool = False


TOOLS = (
    Tool("fly-trace", "fly_trace", ("{input}",)),
    Tool("fly-opt-py", "fly_opt", ("{input}",)),
    Tool("fly-llc", "fly_llc", ("{input}",), binary=True, needs_llvm=True),
    Tool("fly-link", "fly_link", ("{input}",), binary=True, needs_llvm=True),
    Tool("fly-run", "fly_run", ("{input}", "--inspect"), writes=False),
)
every = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


# typer prints the help, and the same code calls it in every tool: one of them stands for all.
work_and_help = pytest.mark.parametrize(
    ("tool", "help"),
    [*((tool, False) for tool in TOOLS), (TOOLS[2], True)],
    ids=lambda value: value.name if isinstance(value, Tool) else "help" if value else "work",
)


def those(**wanted):
    chosen = [tool for tool in TOOLS if all(getattr(tool, k) == v for k, v in wanted.items())]
    return pytest.mark.parametrize("tool", chosen, ids=lambda tool: tool.name)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> dict[str, Path]:
    """An input for each tool."""
    folder = tmp_path_factory.mktemp("inputs")
    made = {
        "fly-trace": ROOT / "examples" / "vector_add.py",
        "fly-opt-py": folder / "k.mlir",
        "fly-llc": folder / "k.ll",
        "fly-link": folder / "k.o",
        "fly-run": folder / "k.hsaco",
    }
    made["fly-opt-py"].write_text("module {\n}\n")
    made["fly-llc"].write_text(LLVM_IR)
    for name, source in (("fly-llc", "fly-link"), ("fly-link", "fly-run")):
        subprocess.run([BIN / name, made[name], "-o", made[source]], check=True)
    return made


@pytest.fixture
def call(inputs, tmp_path):
    """Runs a tool; every stream can be replaced. The good call's output goes to a pipe."""

    def run(tool, *arguments, good=True, env=None, **streams):
        words = [word.format(input=inputs[tool.name]) for word in tool.good] if good else []
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | streams
        surroundings = os.environ | {"FLY_CACHE_DIR": str(tmp_path / "cache")} | (env or {})
        surroundings.pop("FLY_DEBUG", None)
        return subprocess.run(
            [BIN / tool.name, *words, *arguments],
            stderr=subprocess.PIPE,
            env=surroundings,
            timeout=60,
            **streams,
        )

    return run


def error_line(done, tool) -> str:
    """The first line of an error, after checking that it is one and that no traceback is there."""
    text = done.stderr.decode()
    assert text.startswith(f"{tool.name}: error: "), text
    assert "Traceback" not in text
    return text.splitlines()[0]


@every
def test_help_imports_nothing_heavy(tool):
    program = f"""
import sys
sys.argv = ["{tool.name}", "--help"]
from {tool.module}.cli import main
try:
    main()
except SystemExit as leaving:
    print(leaving.code, *sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == "0\n"
    assert done.stdout.startswith(f"Usage: {tool.name} ")


@every
def test_the_good_call_is_good_and_gives_the_same_bytes_again(tool, call):
    first, second = call(tool), call(tool)
    assert (first.returncode, first.stderr) == (0, b"")
    assert first.stdout == second.stdout != b""


@work_and_help
def test_a_reader_that_left_is_no_error(tool, help, call):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        done = call(tool, *["--help"] * help, stdout=stdout)
    assert (done.returncode, done.stderr) == (0, b"")


@work_and_help
def test_a_full_disk_is_said(tool, help, call):
    with open("/dev/full", "wb") as stdout:
        done = call(tool, *["--help"] * help, stdout=stdout)
    assert error_line(done, tool) == (
        f"{tool.name}: error: standard output: No space left on device"
    )
    assert done.returncode == 3


@every
def test_an_unknown_flag(tool, call):
    done = call(tool, "--no-such-flag")
    assert done.returncode == 2
    assert "no-such-flag" in error_line(done, tool)
    assert len(done.stderr.splitlines()) == 2
    assert done.stdout == b""


@every
def test_a_missing_file(tool, call, tmp_path):
    path = tmp_path / f"gone{'.py' if tool.name == 'fly-trace' else ''}"
    done = call(tool, str(path), good=False)
    assert done.returncode == 2
    assert error_line(done, tool) == f"{tool.name}: error: {path}: no such file"
    assert done.stdout == b""


@every
def test_a_folder_is_no_file(tool, call, tmp_path):
    done = call(tool, str(tmp_path), good=False)
    assert done.returncode == 2
    line = error_line(done, tool)
    assert line.startswith(f"{tool.name}: error: {tmp_path}: is a directory, not a ")


@every
def test_it_does_not_wait_for_a_person_to_type_ir(tool, call):
    mine, terminal = pty.openpty()
    try:
        done = call(tool, good=False, stdin=terminal)
    finally:
        os.close(mine)
        os.close(terminal)
    assert done.returncode == 2
    error_line(done, tool)


@those(binary=True)
def test_binary_does_not_go_to_a_terminal(tool, call):
    mine, terminal = pty.openpty()
    try:
        done = call(tool, stdout=terminal)
        os.set_blocking(mine, False)
        with pytest.raises(BlockingIOError):
            os.read(mine, 1)
    finally:
        os.close(mine)
        os.close(terminal)
    assert done.returncode == 2
    assert "the output is binary and standard output is a terminal" in error_line(done, tool)


@those(writes=True)
def test_an_output_file_is_the_standard_output(tool, call, tmp_path):
    out = tmp_path / "out"
    done = call(tool, "-o", str(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert out.read_bytes() == call(tool).stdout


@those(writes=True)
def test_an_output_that_may_not_be_written(tool, call, tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    # Permissions don't bind root; no file can be made in /sys by anybody.
    place = Path("/sys") if os.access(folder, os.W_OK) else folder
    done = call(tool, "-o", str(place / "out"))
    assert done.returncode == 3
    assert error_line(done, tool).startswith(f"{tool.name}: error: {place / 'out'}: ")
    assert list(folder.iterdir()) == []


@those(writes=True)
def test_an_output_in_no_folder(tool, call, tmp_path):
    done = call(tool, "-o", str(tmp_path / "gone" / "out"))
    assert done.returncode == 2
    assert "gone does not exist" in error_line(done, tool)


@those(writes=True)
def test_a_refused_input_leaves_no_output(tool, call, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("this is no\x01 input of any kind (")
    done = call(tool, str(wrong), "-o", str(tmp_path / "out"), good=False)
    assert done.returncode == 1
    error_line(done, tool)
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["wrong.py"]


@those(needs_llvm=True)
def test_no_llvm(tool, call, tmp_path):
    env = {"FLY_LLVM_DIR": "/nonexistent", "PATH": ""}
    done = call(tool, "-o", str(tmp_path / "out"), env=env)
    assert done.returncode == 3
    assert "FLY_LLVM_DIR=/nonexistent has no bin/" in error_line(done, tool)
    assert "apt-get install" in done.stderr.decode()
    assert not (tmp_path / "out").exists()


@every
def test_streams_may_be_closed(tool, call):
    done = call(tool, stdin=None, preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stderr) == (0, b"")
    done = call(tool, stdout=None, preexec_fn=lambda: os.close(1))
    assert "standard output is closed" in error_line(done, tool)
    assert done.returncode == 3


@every
def test_it_says_its_version(tool: Tool):
    done = subprocess.run([BIN / tool.name, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{tool.name} 0.1.0\n")
    if tool.needs_llvm:
        assert "LLVM 2" in done.stdout
