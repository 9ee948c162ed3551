"""How lit runs test/lit: `lit test/lit`, or `lit --param filecheck=both test/lit`.

Parameters: `filecheck` is `pypi` (default: the Python port, which needs no LLVM tools package),
`llvm`, or `both`, one after the other on the same input; `cache` is a folder to keep between runs
(default: a new one each run, removed after it).
A tool that is missing fails the run: a test that can't run must not look as if it had passed.
"""

# ruff: noqa: F821  (lit runs this file with `config` and `lit_config` defined)

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import lit.formats

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "common"), str(ROOT / "tools" / "fly-run")]
from fly_common.errors import FlyError  # noqa: E402
from fly_common.programs import toolchain  # noqa: E402  (found through the line above)
from fly_run.emulator.engine import library  # noqa: E402

TOOLS = ("fly-trace", "fly-opt-py", "fly-llc", "fly-link", "fly-run")
# LLVM's programs, each as the substitution %NAME. Those of a pipe are on PATH by name too.
IN_PIPES = ("opt", "llc", "ld.lld")
LLVM = (*IN_PIPES, "llvm-as", "llvm-dis", "llvm-link", "llvm-mc", "llvm-nm", "llvm-objcopy",
        "llvm-objdump", "llvm-readelf", "llvm-readobj")  # fmt: skip
# What a tool may be told by its surroundings. HOME and the rest of the user's settings stay out.
FORWARDED = (
    "PYTHONPATH",
    "FLY_LLVM_DIR",
    "FLY_DEVICE_LIBS",
    "ROCM_PATH",
    "FILECHECK_OPTS",
    "FLY_DEBUG",
)


def required(name: str, folder: Path) -> Path:
    """The path of our own `name` in the environment that runs lit."""
    path = folder / name
    if not path.is_file():
        lit_config.fatal(f"{path} is missing: install the project with its test extra")
    return path


def required_llvm(name: str) -> Path:
    try:
        return Path(toolchain.find_program(name))
    except FlyError as error:
        lit_config.fatal(str(error))


def new_folder() -> Path:
    """A folder of this run's own, removed when lit ends."""
    owner, folder = os.getpid(), Path(tempfile.mkdtemp(prefix="fly-lit-"))
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return folder


def linked_handlers(cache: Path) -> Path:
    """The cache, with a link to the emulator's library in the user's own, where it is built if it
    is not there: that takes 12 seconds of a processor, and is what every run would do."""
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)  # one that others can write is not used
    try:
        handlers = library.load().path
    except FlyError as error:
        lit_config.fatal(str(error))
    if handlers.exists() and not (cache / handlers.name).exists():
        (cache / handlers.name).symlink_to(handlers)
    return cache


config.name = "fly"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir", ".ll", ".mir", ".py", ".test"]
config.excludes = ["Inputs", "lit.cfg.py", "benchmarks", "common", "docs", "examples", "fly",
                   "tests", "tools", ".venv"]  # fmt: skip

binaries = Path(sys.executable).parent
for tool in TOOLS:
    required(tool, binaries)
run = new_folder()
for name in ("home", "shims"):
    (run / name).mkdir()
for name in IN_PIPES:
    (run / "shims" / name).symlink_to(required_llvm(name))

which = lit_config.params.get("filecheck", "pypi")
if which not in ("pypi", "llvm", "both"):
    lit_config.fatal(f"--param filecheck={which}: must be pypi, llvm or both")
if which == "pypi":
    filecheck = str(required("filecheck", binaries))
elif which == "llvm":
    # What the Python port can't do is switched on where it can be.
    filecheck = f"{required_llvm('FileCheck')} --enable-var-scope"
else:
    programs = required("filecheck", binaries), required_llvm("FileCheck")
    filecheck = " ".join(map(str, [ROOT / "test" / "both-filechecks", *programs]))

config.environment = {
    "PATH": os.pathsep.join([str(binaries), str(run / "shims"), "/usr/bin", "/bin"]),
    "HOME": str(run / "home"),
    "TMPDIR": tempfile.gettempdir(),
    "LANG": "C.UTF-8",
    "COLUMNS": "100",
    "FLY_CACHE_DIR": str(linked_handlers(Path(lit_config.params.get("cache", run / "cache")))),
    **{name: os.environ[name] for name in FORWARDED if name in os.environ},
}
# Longer names first: a substitution is replaced wherever it occurs.
config.substitutions += [
    (f"%{name}".replace(".", r"\."), str(required_llvm(name)))
    for name in sorted(LLVM, key=len, reverse=True)
]
config.substitutions += [
    (r"%filecheck\b", filecheck),
    (r"(?<![\w/.%-])FileCheck\b", filecheck),
    (r"%PYTHON\b", sys.executable),
    (r"%examples\b", str(ROOT / "examples")),
]
