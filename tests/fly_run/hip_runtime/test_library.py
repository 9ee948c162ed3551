"""The built library, in processes of its own: how it starts, what it passes on, how it ends."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from emulator_support.engine import compile_opencl
from fly_common import paths
from fly_common.programs import process, toolchain
from fly_run.hip_runtime import code, interface, library, table
from fly_run.hip_runtime.prototypes import prototypes

LIBRARY = 'import ctypes, sys\nhip = ctypes.CDLL("libamdhip64.so")\n'
# Runs `add` on arrays of 1000 floats, and prints the result's sum.
ADD = (
    LIBRARY
    + """
def add(n=1000):
    data = open(sys.argv[1], "rb").read()
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert hip.hipModuleLoadData(ctypes.byref(module), data) == 0
    assert hip.hipModuleGetFunction(ctypes.byref(function), module, b"add") == 0
    values = (ctypes.c_float * 1000)(*range(1000))
    a = ctypes.c_void_p()
    assert hip.hipMalloc(ctypes.byref(a), ctypes.c_size_t(4000)) == 0
    assert hip.hipMemcpy(a, values, ctypes.c_size_t(4000), 1) == 0
    arguments = [a, a, a, ctypes.c_int64(n)]
    pointers = (ctypes.c_void_p * 4)(*map(ctypes.addressof, arguments))
    code = hip.hipModuleLaunchKernel(function, 17, 1, 1, 64, 1, 1, 0, None, pointers, None)
    assert hip.hipMemcpy(values, a, ctypes.c_size_t(4000), 2) == 0
    return code, sum(values)
"""
)


@pytest.fixture(scope="module")
def folder() -> Path:
    return library.folder()


@pytest.fixture
def hsaco(add, tmp_path) -> str:
    path = tmp_path / "add.hsaco"
    path.write_bytes(add)
    return str(path)


def run(*words: str, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command under `fly-run --hip gfx942`."""
    command = [str(Path(sys.executable).with_name("fly-run")), "--hip", "gfx942", "--", *words]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == status, done.stderr
    return done


def python(script: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-c", script, *words, **variables)


# -- the file


def test_its_names_and_versions(folder):
    """Programs look for three names, which are one library, and for versions of symbols."""
    names = sorted(one.name for one in folder.iterdir())
    assert names == ["libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"]
    assert len({os.path.realpath(folder / name) for name in names}) == 1
    nm = toolchain.find_program("llvm-nm")
    listed = process.run(nm, ["-D", "--defined-only", str(folder / names[0])]).stdout.decode()
    found = dict(re.findall(r" T (hip\w+)@@(hip_\d\.\d)", listed))
    assert found == {one.name: one.version for one in prototypes().values()}
    assert found["hipMalloc"] == "hip_4.2"
    assert found["hipGetProcAddress"] == "hip_6.1"
    readelf = toolchain.find_program("llvm-readelf")
    dynamic = process.run(readelf, ["-d", str(folder / names[0])]).stdout.decode()
    assert "Library soname: [libamdhip64.so.7]" in dynamic
    assert "NEEDED" not in dynamic


def test_a_damaged_library_is_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    first = library.folder()
    path = first / "libamdhip64.so"
    good = path.read_bytes()
    os.chmod(path, 0o600)
    path.write_bytes(good[:-100] + b"\0" * 100)
    (first / "libamdhip64.so.6").unlink()
    assert library.folder() == first
    assert path.read_bytes() == good
    assert (first / "libamdhip64.so.6").read_bytes() == good


def test_every_function_passes_its_arguments_on():
    """All functions are made to fail, and the log shows what arrived: a different value of each
    argument, of its full width."""
    functions = [one for one in prototypes().values() if not one.returns_text]
    values, lines, script = {64: 0xFEDC_BA98_7654_3200, 32: 0x7654_3200}, [], LIBRARY
    for one in functions:
        passed, shown = [], []
        for number, parameter in enumerate(one.parameters):
            bits = 8 * ctypes.sizeof(parameter.ctype)
            value = (values.get(bits) or 0x3200) + number & (1 << bits) - 1
            passed.append(f"ctypes.c_uint{bits}({value})")
            shown.append(f"{parameter.name}={value:#x}" if parameter.is_pointer else None)
            shown[-1] = shown[-1] or f"{parameter.name}={value}"
        script += f"assert hip.{one.name}({', '.join(passed)}) == 214\n"
        lines.append(f"{one.name}({', '.join(shown)}) → hipErrorECCNotCorrectable: injected")
    rules = ",".join(f"{one.name}=hipErrorECCNotCorrectable" for one in functions)
    done = python(script, FLY_HIP_FAIL=rules, FLY_HIP_LOG="1")
    assert [line.removeprefix("fly-run: HIP: ") for line in done.stderr.splitlines()] == lines


def test_texts_come_back_as_pointers():
    script = f"""{LIBRARY}
hip.hipGetErrorString.restype = hip.hipKernelNameRef.restype = ctypes.c_char_p
print(hip.hipGetErrorString(2), hip.hipKernelNameRef(None))"""
    assert python(script).stdout == "b'out of memory' b''\n"


def test_addresses_of_functions():
    """hipGetProcAddress gives the exported functions, which outlive Python's callbacks."""
    script = f"""{LIBRARY}
def find(name, version=60000000):
    address, status = ctypes.c_void_p(), ctypes.c_int(9)
    code = hip.hipGetProcAddress(name, ctypes.byref(address), version, ctypes.c_uint64(0),
        ctypes.byref(status))
    return code, address.value, status.value
def at(name):
    return ctypes.cast(getattr(hip, name), ctypes.c_void_p).value
assert find(b"hipMalloc") == (0, at("hipMalloc"), 0)
assert find(b"hipGetDeviceProperties") == (0, at("hipGetDevicePropertiesR0600"), 0)
assert find(b"hipGetDeviceProperties", 500) == (0, at("hipGetDeviceProperties"), 0)
assert find(b"hipNothing") == (1, None, 1), find(b"hipNothing")
address = ctypes.c_void_p()
assert hip.hipGetDriverEntryPoint(b"hipFree", ctypes.byref(address), ctypes.c_uint64(0), None) == 0
assert address.value == at("hipFree")"""
    python(script)


# -- programs


def test_a_program(hsaco):
    done = python(f"{ADD}\nprint(*add())", hsaco)
    assert done.stdout == f"0 {float(2 * sum(range(1000)))}\n"
    done = python(f"{ADD}\nprint(*add(1001))", hsaco)
    assert done.stdout.startswith("700 ")
    assert "`device memory 1` (4000 bytes)" in done.stderr


def test_a_python_without_packages(hsaco):
    """Neither fly-run nor anything else is installed there, and only its packages are found."""
    script = f"""{ADD}
print(*add())
for name in ("numpy", "torch", "pytest", "rich"):
    try:
        __import__(name)
        print(name)
    except ImportError:
        pass"""
    done = run(sys.executable, "-I", "-S", "-c", script, hsaco)
    assert done.stdout == f"0 {float(2 * sum(range(1000)))}\n"


def test_threads_and_first_calls_at_once(hsaco):
    script = f"""{ADD}
import threading
found = []
threads = [threading.Thread(target=lambda: found.append(add())) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(set(found))"""
    assert python(script, hsaco).stdout == f"{{(0, {float(2 * sum(range(1000)))})}}\n"


def test_a_fork_has_a_copy(hsaco):
    """Memory of before is the child's own, and both go on launching, while a thread launches."""
    script = f"""{ADD}
import os, threading
add()
busy, done = threading.Event(), threading.Event()
def work():
    while not done.is_set():
        add(); busy.set()
thread = threading.Thread(target=work); thread.start(); busy.wait()
memory = ctypes.c_void_p()
assert hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(4)) == 0
for _ in range(5):
    child = os.fork()
    if child == 0:
        code = hip.hipMemset(memory, 1, ctypes.c_size_t(4)) or add()[0]
        os._exit(code or (ctypes.c_int.from_address(memory.value).value != 0x1010101))
    assert os.waitpid(child, 0)[1] == 0
assert ctypes.c_int.from_address(memory.value).value == 0
done.set(); thread.join()
print(*add())"""
    assert python(script, hsaco).stdout == f"0 {float(2 * sum(range(1000)))}\n"


def test_two_processes_build_and_use_it_at_once(hsaco, tmp_path):
    handlers = Path(paths.cache_dir()).glob("handlers-*.so")
    for one in handlers:  # the emulator's handlers take seconds to build
        (tmp_path / one.name).write_bytes(one.read_bytes())
        os.chmod(tmp_path / one.name, 0o600)
    os.chmod(tmp_path, 0o700)
    command = [str(Path(sys.executable).with_name("fly-run")), "--hip", "gfx942", "--"]
    command += [sys.executable, "-c", f"{ADD}\nprint(*add())", hsaco]
    environment = {**os.environ, "FLY_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    for one in running:
        assert one.communicate(timeout=120)[0] == f"0 {float(2 * sum(range(1000)))}\n"


def test_calls_after_pythons_end():
    """In the destructor of an object that lives until the end."""
    script = f"""{LIBRARY}
hip.hipInit(0)
class Late:
    def __del__(self, hip=hip, write=__import__("os").write, text=ctypes.c_char_p):
        hip.hipGetErrorName.restype = text
        codes = hip.hipFree(None), hip.hipInit(0), hip.hipGetErrorName(0)
        write(1, repr(codes).encode())
sys.modules["late"] = Late()
import builtins
builtins.late = Late()"""
    done = python(script)
    assert done.stdout == "(0, 4, b'hipErrorDeinitialized')" * 2


def test_a_wrong_variable_is_told_once_and_calls_fail():
    script = LIBRARY + "print(hip.hipInit(0), hip.hipInit(0))"
    done = run(sys.executable, "-c", f"import os; os.environ['FLY_HIP_FAIL'] = 'x'\n{script}")
    assert done.stdout == "3 3\n"
    assert done.stderr.count("FLY_HIP_FAIL: x is not a HIP function") == 1


def test_an_older_builds_library_is_refused(monkeypatch):
    with pytest.raises(ImportError, match="was built by another version of fly-run"):
        table.fill(0x1000, 0x1000, 0x1000, "another digest")
    assert 0x1000 not in table._filled


# -- programs that are not Python


PROGRAM = """
declare ptr @dlopen(ptr, i32)
declare ptr @dlsym(ptr, ptr)
declare i32 @printf(ptr, ...)
declare void @exit(i32)
@library = constant [17 x i8] c"libamdhip64.so.7\\00"
@function = constant [18 x i8] c"hipGetDeviceCount\\00"
@format = constant [7 x i8] c"%d %d\\0A\\00"
define void @_start() {
  %library = call ptr @dlopen(ptr @library, i32 2)
  %function = call ptr @dlsym(ptr %library, ptr @function)
  %count = alloca i32, align 16
  store i32 -1, ptr %count
  %code = call i32 %function(ptr %count)
  %found = load i32, ptr %count
  call i32 (ptr, ...) @printf(ptr @format, i32 %code, i32 %found)
  call void @exit(i32 0)
  unreachable
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> str:
    """An executable that prints what hipGetDeviceCount returns and stores. The attribute aligns the
    stack, which has no return address in `_start`."""
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    libc, loader = (
        next(one for one in mapped if name in one) for name in ("/libc.so", "/ld-linux")
    )
    folder = tmp_path_factory.mktemp("program")
    text = PROGRAM.replace("@_start() {", '@_start() "stackrealign" {').encode()
    words = ["-filetype=obj", "-relocation-model=pic", f"-mtriple={library.TRIPLE}", "-o", "-", "-"]
    (folder / "made.o").write_bytes(toolchain.run_program("llc", words, text).stdout)
    words = ["-dynamic-linker", loader, "-pie", "-o", str(folder / "made")]
    linked = toolchain.run_program("ld.lld", [*words, str(folder / "made.o"), libc], None)
    assert linked.returncode == 0, linked.stderr
    return str(folder / "made")


def test_a_program_that_is_not_python(program):
    """It loads the Python that fly-run names, if fly-run's has a shared library; Debian's python3
    has none without the package libpython3.11."""
    done = run(program)
    if library.shared_python() is None:
        assert (done.stdout, done.stderr) == ("3 -1\n", code.NO_PYTHON)
    else:
        assert (done.stdout, done.stderr) == ("0 1\n", "")


def test_the_shared_library_of_a_python(tmp_path, monkeypatch):
    def configured(**variables: str) -> str | None:
        monkeypatch.setattr(library.sysconfig, "get_config_var", variables.get)
        return library.shared_python()

    shared = tmp_path / "libpython3.99.so.1.0"
    shared.touch()
    names = {"INSTSONAME": shared.name, "LDLIBRARY": "libpython3.99.a"}
    assert configured(LIBDIR=str(tmp_path), **names) == str(shared)
    assert configured(LIBDIR="/no/such/folder", **names) is None
    assert configured(LIBDIR=str(tmp_path), LDLIBRARY="libpython3.99.a") is None
    monkeypatch.setattr(library.sys, "base_prefix", str(tmp_path))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / shared.name).touch()
    assert configured(LIBDIR="/no", **names) == str(tmp_path / "lib" / shared.name)


def test_a_program_without_a_python(program, folder):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    environment.pop(interface.PYTHON, None)
    done = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert done.stdout == "3 -1\n"
    assert done.stderr == code.NO_PYTHON
    environment[interface.PYTHON] = "/no/such/library.so"
    done = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("3 -1\n", code.NOT_LOADED)


# -- the command line


def test_the_folder_is_printed(folder):
    fly_run = str(Path(sys.executable).with_name("fly-run"))
    done = subprocess.run([fly_run, "--hip-runtime"], capture_output=True, text=True)
    assert done.stdout == f"{folder}\n"


def test_the_commands_variables(folder):
    script = "import os; print(*(os.environ[x] for x in os.sys.argv[1:]))"
    words = ["LD_LIBRARY_PATH", "FLY_HIP_TARGET", "TRITON_LIBHIP_PATH"]
    done = run(sys.executable, "-c", script, *words, LD_LIBRARY_PATH="/one:/two")
    assert done.stdout == f"{folder}:/one:/two gfx942 {folder}/{interface.NAME}\n"


def test_wrong_command_lines():
    def error(*words: str, **variables: str) -> tuple[int, str]:
        command = [str(Path(sys.executable).with_name("fly-run")), *words]
        environment = {**os.environ, **variables}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        return done.returncode, done.stderr.splitlines()[0]

    assert error("--hip", "gfx9", "--", "true") == (
        *(3, "fly-run: error: the emulator does not run gfx9"),
    )
    assert error("--hip", "gfx942") == (2, "fly-run: error: --hip needs a command")
    assert error("--hip", "gfx942", "--", "./no-such") == (
        *(2, "fly-run: error: ./no-such can't be run: No such file or directory"),
    )
    assert error("--hip", "gfx942", "--", "true", FLY_HIP_FAIL="hipX") == (
        *(2, "fly-run: error: FLY_HIP_FAIL: hipX is not a HIP function that can fail"),
    )


def test_the_exit_status_is_the_commands():
    run(sys.executable, "-c", "raise SystemExit(7)", status=7)


def test_an_interrupted_launch():
    """Ctrl-C ends a launch, and then the program."""
    source = "kernel void k(global volatile int *at) { while (at[0] == 0); }"
    path = os.memfd_create("kernel")
    os.write(path, compile_opencl(source, "gfx942", "-O1").data)
    script = f"""{LIBRARY}
import os, time
data = open(sys.argv[1], "rb").read()
module, function, memory = (ctypes.c_void_p() for _ in range(3))
assert hip.hipModuleLoadData(ctypes.byref(module), data) == 0
assert hip.hipModuleGetFunction(ctypes.byref(function), module, b"k") == 0
assert hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(4)) == 0
pointers = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
print("launching", flush=True)
print(hip.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, pointers, None), flush=True)
time.sleep(60)"""
    command = [str(Path(sys.executable).with_name("fly-run")), "--hip", "gfx942", "--"]
    command += [sys.executable, "-c", script, f"/proc/{os.getpid()}/fd/{path}"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "launching\n"
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    said, errors = running.communicate(timeout=60)
    assert said == "999\n"
    assert errors.endswith("KeyboardInterrupt\n")
    assert running.returncode == -signal.SIGINT
    os.close(path)
