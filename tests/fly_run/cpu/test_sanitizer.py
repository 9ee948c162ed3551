"""AddressSanitizer on the device `cpu`: what it finds that the device's own checks do not see, what
is said of it, and how its run-time library is found and loaded.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cpu_support import TARGET, image, kernel
from fly_common.errors import MissingError, UsageError
from fly_run.cpu import compile, sanitizer
from fly_run.cpu.device import Cpu
from fly_run.shell import npy

pytestmark = pytest.mark.heavy
TESTS = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CONTINUING = "detect_leaks=0:halt_on_error=0:suppress_equal_pcs=0:redzone=2048"
# Accesses to the neighbour of what they mean, or to what took its place, and what ASan calls them.
PLANTED = {
    "A read": "heap-buffer-overflow",
    "A write": "heap-buffer-overflow",
    "A add": "heap-buffer-overflow",
    "A copy": "heap-buffer-overflow",
    "A vector": "heap-buffer-overflow",
    "shared read": "global-buffer-overflow",
    "shared write": "global-buffer-overflow",
    "constant read": "global-buffer-overflow",
    "stack read=64": "stack-buffer-overflow",
    "stack write=64": "stack-buffer-overflow",
    "stack fill=72": "stack-buffer-overflow",
    "freed read": "heap-use-after-free",
    "freed write": "heap-use-after-free",
}
INSIDE = (
    *("A write=4092", "A copy=4072", "A vector=4080", "shared write=252", "constant read=12"),
    *("variable write=12", "dynamic write=96", "stack write=60", "stack fill=64"),
)
# What the device's checks notice, too: ASan's name of it, if it knows the memory.
OUTSIDE = {
    "A copy=4088": "heap-buffer-overflow",
    "A read=-4": "heap-buffer-overflow",
    "variable write=16": "global-buffer-overflow",
    "dynamic write=100": "use-after-poison",
    "released read": "heap-use-after-free",
    "null read=8": None,
    "null write=1311768467463790320": None,
    "A read=2": None,
    "stack trap=0": None,
}
SHIFT = """
import fly
import fly.expr as fx


@fly.kernel
def shift_kernel(X: fx.Tensor, Y: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    Y[i] = X[i + 4]


@fly.jit
def shift(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"]):
    shift_kernel(X, Y).launch(grid=X.shape[0] // 64, block=64)
"""
# Code of @fly.jit has no line tables.
PLACE = r"shift\.py:9:12: "
WHAT = (
    r"AddressSanitizer: heap-buffer-overflow: 4 bytes at 0x[0-9a-f]+: at the end of"
    r" `X` \(512 bytes\); kernel shift_kernel 'load float' block \(1, 0, 0\) thread \(60, 0, 0\)"
)
FOUND = re.compile(PLACE + WHAT)


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in (sanitizer.VARIABLE, sanitizer.PRELOAD, sanitizer.OPTIONS)
    }
    return {**kept, "PYTHONPATH": str(TESTS), "PATH": f"{BIN}:{os.environ['PATH']}", **more}


def watched(options: str = CONTINUING) -> dict[str, str]:
    """The environment of a process with ASan."""
    names = (sanitizer.VARIABLE, sanitizer.PRELOAD, sanitizer.OPTIONS)
    return environment(**dict(zip(names, ("address", sanitizer.find(), options), strict=True)))


def python(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True)


def attempts(words: list[str], env: dict[str, str]) -> dict[str, tuple[int, list[str], str]]:
    """Offset, what was said, and standard error of each case."""
    done = python("-m", "cpu_support.accesses", *words, env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    errors = re.sub("fly: (building|waiting) .*\n", "", done.stderr)  # a slow build says so
    parts = dict(part.split("\n", 1) for part in errors.split("case: ")[1:])
    return {word: (*found[word], parts[word]) for word in words}


@pytest.fixture(scope="module")
def plain():
    return attempts([*PLANTED, *OUTSIDE], environment())


@pytest.fixture(scope="module")
def sanitized(plain):
    """The same offsets under ASan; where the memory would be reused, the process's own."""
    words = {
        case: case if "=" in case or "freed" in case else f"{case}={plain[case][0]}"
        for case in PLANTED
    }
    found = attempts([*words.values(), *OUTSIDE, *INSIDE], watched())
    return {**found, **{case: found[word] for case, word in words.items()}}


@pytest.mark.parametrize("case", PLANTED)
def test_what_the_device_does_not_notice(case, plain, sanitized):
    assert plain[case][1] == ["not noticed"] * 2
    _, said, reports = sanitized[case]
    for one in said:
        assert one.startswith(f"AddressSanitizer: {PLANTED[case]}: ")
        assert one.endswith(" block (0, 0, 0) thread (0, 0, 0)")
    assert reports.count(f"ERROR: AddressSanitizer: {PLANTED[case]} on address 0x") == 2
    way = "READ" if "read" in case or "vector" in case else "WRITE"
    size = {"copy": 24, "vector": 16, "fill=72": 72}.get(case.partition(" ")[2], 4)
    assert reports.count(f"{way} of size {size} at") == 2


@pytest.mark.parametrize("case", INSIDE)
def test_what_is_inside(case, sanitized):
    assert sanitized[case][1:] == (["not noticed"] * 2, "")


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_both_notice(case, plain, sanitized):
    assert "not noticed" not in plain[case][1]
    _, said, reports = sanitized[case]
    if OUTSIDE[case] is None:
        same = [
            re.sub(r" at 0x\w+|; the nearest is `.*` .* at 0x\w+", "", one)
            for one in (*plain[case][1], *said)
        ]
        assert len(set(same)) == 1
        assert reports == ""
    else:
        assert all(one.startswith(f"AddressSanitizer: {OUTSIDE[case]}: ") for one in said)
        assert reports.count("ERROR: AddressSanitizer: ") == 2


def test_words(sanitized):
    """Where the address is, in the device's words and in ASan's."""
    assert ": the last 16 of its bytes are past the end of `A`" in sanitized["A copy=4088"][1][0]
    assert ": in `local memory`; kernel k 'store i32' " in sanitized["stack write=64"][1][0]
    report = sanitized["stack write=64"][2]
    assert "is located in stack of thread T0 at offset 96 in frame" in report
    assert "'a' <== Memory access at offset 96 overflows this variable" in report
    assert "global variable 's' defined in 'kernels" in sanitized["shared read"][2]


def test_redzones_of_a_thread_that_did_not_end(tmp_path):
    """A fault leaves redzones on the stack, where the next launch has something else."""
    arrays = {"abd": 16, "c": 1600}
    small = "".join(
        f"  %{name} = alloca [{size // 4} x i32]\n"
        f"  call void @llvm.memset.p0.i64(ptr %{name}, i8 0, i64 {size}, i1 true)\n"
        for names, size in arrays.items()
        for name in names
    )
    large = """
  %a = alloca [1600 x i32]
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 6400, i1 true)"""
    text = kernel(f"{small}  call void @llvm.trap()", 0, name="small")
    text += kernel(large, 0, name="large")
    (tmp_path / "kernel.ll").write_text(text)
    program = f"""
import numpy as np
from cpu_support import launch, load
from fly_common.errors import Fault
device, module = load(open({str(tmp_path / "kernel.ll")!r}).read())
try:
    launch(device, module, [], 1, 64, name="small")
except Fault as fault:
    print(fault.message)
launch(device, module, [], 1, 64, name="large")
"""
    done = python("-c", program, env=watched())
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trap; kernel small 'trap' block (0, 0, 0) thread (0, 0, 0)\n"


@pytest.mark.parametrize("halt", [0, 1])
def test_reports_of_many_host_threads(halt):
    """Every host thread finds something. One fault is raised, and the device goes on; or the
    process ends, and says where."""
    program = """
import os
import numpy as np
os.sched_getaffinity = lambda _: range(4)
from cpu_support import INDEX, kernel, launch, load
from fly_common.errors import Fault
from fly_run.cpu import execution
from fly_run.devices.options import Options
text = kernel(INDEX + '''
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  br label %loop
loop:
  %n = phi i32 [ 0, %0 ], [ %next, %loop ]
  %x = load volatile i32, ptr addrspace(1) %p0
  %next = add i32 %n, 1
  %again = icmp ult i32 %next, 20000
  br i1 %again, label %loop, label %done
done:
  store i32 1, ptr addrspace(1) %at''', 1)
device, module = load(text)
for threads in (64 * 32, 64 * 32 - 1000, 64 * 32):
    a = np.zeros(threads, np.int32)
    try:
        launch(device, module, [a], 64, 32)
        print("ended", a.sum())
    except Fault as fault:
        print(fault.message.partition(": 4 bytes")[0])
print(len(module.copies(4)), flush=True)
"""
    options = CONTINUING.replace("halt_on_error=0", f"halt_on_error={halt}:exitcode=9")
    done = python("-c", program, env=watched(options))
    found = "AddressSanitizer: heap-buffer-overflow"
    if halt:
        assert done.returncode == 9, done.stderr
        assert done.stderr.count(f"fly: error: {found}: 4 bytes at ") == 1
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout.split("\n") == ["ended 2048", found, "ended 2048", "4", ""]


# -- fly-run


@pytest.fixture(scope="module")
def cubin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shift")
    (folder / "shift.py").write_text(SHIFT)
    pipe = (
        f"fly-trace shift.py | fly-opt-py --target {TARGET} -g | opt -S -O3 | fly-llc | fly-link"
        " > shift.cubin"
    )
    words = ["bash", "-eo", "pipefail", "-c", pipe]
    subprocess.run(words, cwd=folder, env=environment(), check=True)
    return folder / "shift.cubin"


def fly_run(cubin: Path, *words: str, n: int = 128, **more: str) -> subprocess.CompletedProcess:
    given = [str(BIN / "fly-run"), str(cubin), "--device", "cpu", *words]
    given += [f"X=arange({n})", "Y=zeros(128)" if n == 128 else f"Y=zeros({n})", "-q"]
    return subprocess.run(given, env=environment(**more), capture_output=True, text=True)


def test_a_finding(cubin):
    """ASan's report comes first, with the Python line of each frame that has one."""
    done = fly_run(cubin, "--sanitize", "address")
    assert (done.returncode, done.stdout) == (1, "")
    report, _, last = done.stderr.partition("fly-run: error: ")
    assert FOUND.match(last), done.stderr
    assert "ERROR: AddressSanitizer: heap-buffer-overflow on address" in report
    assert re.search(r"#\d+ 0x\w+ in shift_kernel shift\.py:9", report)
    assert "512-byte region" in report


def test_nothing_found(cubin, tmp_path):
    """The kernel reads behind a view here, but not behind the array. Children of fly-run, such as
    llc, do without the library."""
    whole = np.arange(192, dtype=np.float32)
    np.save(tmp_path / "x.npy", whole)
    done = fly_run(
        cubin, "--sanitize", "address", n=100, FLY_CACHE_DIR=str(tmp_path / "cache")
    )  # 100 // 64 is one block, which reads up to element 67
    assert done.returncode == 0
    assert re.sub("fly: (building|waiting) .*\n", "", done.stderr) == ""


def test_the_environment_asks_for_it(cubin):
    done = fly_run(cubin, FLY_CPU_SANITIZE="address")
    assert done.returncode == 1
    assert FOUND.search(done.stderr)
    assert "ERROR: AddressSanitizer: " in done.stderr
    assert "AddressSanitizer" not in fly_run(cubin, FLY_CPU_SANITIZE="0").stderr


def test_the_user_s_options_stay(cubin):
    done = fly_run(cubin, "--sanitize", "address", ASAN_OPTIONS="halt_on_error=1:exitcode=7")
    assert done.returncode == 7
    assert "==ABORTING" in done.stderr
    assert FOUND.search(done.stderr.partition("==ABORTING\n")[2])


def test_two_at_once(cubin, tmp_path):
    """Both build the same library, or one waits for the other."""
    words = [BIN / "fly-run", cubin, "--device", "cpu", "--sanitize", "address", "-q"]
    words += ["X=arange(128)", "Y=zeros(128)"]
    env = environment(FLY_CACHE_DIR=str(tmp_path))
    runs = [
        subprocess.Popen(list(map(str, words)), env=env, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for run in runs:
        _, errors = run.communicate()
        assert run.returncode == 1
        assert FOUND.search(errors)
        assert errors.count("ERROR: AddressSanitizer: ") == 1


def test_a_library_of_its_own():
    """With and without ASan there are two libraries, of which one needs its run-time library."""
    one = image(kernel("store i32 7, ptr addrspace(1) %p0", 1))
    assert b"__asan" not in compile.obtain(one)
    assert b"__asan_storeN_noabort" in compile.obtain(one, sanitized=True)


# -- applications

APPLICATION = """
import numpy as np
import fly
from fly_dialect.bindings import ir
from shift import shift
with ir.Context():
    assert list(ir.DenseI32ArrayAttr.get([1, 2])) == [1, 2]  # a C++ exception ends the iteration
try:
    shift(np.arange(128, dtype=np.float32), np.zeros(128, np.float32))
except fly.Fault as fault:
    print("caught:", fault)
"""


@pytest.mark.parametrize("halt", [True, False])
def test_an_application(tmp_path, halt):
    """Without the library it says the command; with it, it ends as ASan ends it, or goes on."""
    (tmp_path / "shift.py").write_text(SHIFT)
    (tmp_path / "app.py").write_text(APPLICATION)
    more = {"FLY_CPU_SANITIZE": "address", "FLY_DEVICE": "cpu", "FLY_TARGET": TARGET}
    more |= {} if halt else {"ASAN_OPTIONS": "halt_on_error=0"}
    env = environment(**more)
    words = [sys.executable, str(tmp_path / "app.py")]
    done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert (
        "MissingError: FLY_CPU_SANITIZE=address needs AddressSanitizer's run-time library, which"
        " has to be loaded before Python" in done.stderr
    )
    command = done.stderr.partition("start the process with it: ")[2].strip()
    assert shlex.split(command)[2:] == words
    done = subprocess.run(
        ["sh", "-c", command], env=env, capture_output=True, text=True, cwd=tmp_path
    )
    assert "ERROR: AddressSanitizer: heap-buffer-overflow on address" in done.stderr
    if halt:
        assert (done.returncode, done.stdout) == (1, "")
        assert re.match("fly: error: " + WHAT, done.stderr.partition("==ABORTING\n")[2])
    else:
        assert done.returncode == 0, done.stderr
        assert re.match("caught: " + WHAT, done.stdout)


# -- the run-time library


def test_a_process_without_it(monkeypatch):
    monkeypatch.setenv(sanitizer.VARIABLE, "address")
    with pytest.raises(MissingError, match="has to be loaded before Python") as caught:
        Cpu(TARGET)
    assert f"LD_PRELOAD={sanitizer.find()}:libstdc++.so.6 " in (caught.value.hint or "")
    monkeypatch.setenv(sanitizer.VARIABLE, "thread")
    with pytest.raises(UsageError, match="FLY_CPU_SANITIZE=thread: expected address"):
        Cpu(TARGET)


def test_another_library(cubin, tmp_path):
    done = fly_run(cubin, "--sanitize", "address", FLY_ASAN_RUNTIME=str(tmp_path / "none.so"))
    assert done.returncode == 3
    assert f"FLY_ASAN_RUNTIME={tmp_path / 'none.so'} is not a shared library" in done.stderr
    other = compile._mathematics()._name
    other = next(
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().split("\n")
        if other in line
    )
    done = fly_run(cubin, "--sanitize", "address", FLY_ASAN_RUNTIME=other)
    assert done.returncode == 3
    assert f"run-time library {other} could not be loaded" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sanitize", "leak"], "--sanitize leak: expected address"),
        (["--sanitize", "address", "--device", "auto"], "--sanitize requires --device cpu"),
    ],
)
def test_mistakes(cubin, words, said):
    done = fly_run(cubin, *words)
    assert done.returncode == 2
    assert f"fly-run: error: {said}" in done.stderr


def compiler(path: Path, told: object) -> None:
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "{told}"\n')
    path.chmod(0o755)


def test_the_search(tmp_path, monkeypatch):
    """What a compiler says, if it is a library; then folders, the highest number first."""
    monkeypatch.delenv(sanitizer.RUNTIME, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sanitizer, "_FOLDERS", ())
    with pytest.raises(MissingError, match="was not found") as caught:
        sanitizer.find()
    assert "apt-get install libasan8" in (caught.value.hint or "")
    folder = tmp_path / "lib-8"
    folder.mkdir()
    for name in ("libasan.so.6", "libasan.so.10", "libasan.so.8"):
        (folder / name).write_bytes(b"\x7fELF")
    script = tmp_path / "libasan.so"
    script.write_text("INPUT ( /usr/lib64/libasan.so.8 )")
    pattern = (f"{tmp_path}/lib-(\\d+)", r"libasan\.so\.(\d+)")
    monkeypatch.setattr(sanitizer, "_FOLDERS", (pattern,))
    assert sanitizer.find() == str(folder / "libasan.so.10")
    compiler(tmp_path / "gcc", script)
    compiler(tmp_path / "cc", "libasan.so")  # it has none
    assert sanitizer.find() == str(folder / "libasan.so.10")
    compiler(tmp_path / "clang", folder / "libasan.so.6")
    assert sanitizer.find() == str(folder / "libasan.so.6")
    monkeypatch.setenv(sanitizer.RUNTIME, str(folder / "libasan.so.8"))
    assert sanitizer.find() == str(folder / "libasan.so.8")


def test_files_are_read_into_memory_of_malloc(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "MAPPED", 10)
    np.save(tmp_path / "x.npy", np.arange(100))
    assert isinstance(npy.load(str(tmp_path / "x.npy")).base, np.memmap)
    monkeypatch.setenv(sanitizer.VARIABLE, "address")
    found = npy.load(str(tmp_path / "x.npy"))
    assert not isinstance(found.base, np.memmap)
    assert (found == np.arange(100)).all()
