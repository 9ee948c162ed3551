"""Runs cases as a user would: real command lines, joined by pipes, checked from outside."""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fly_host.program import Program, Scalar, Tensor
from fly_host.section import SECTION

from fuzz import corpus
from fuzz.case import Case, judge_line
from fuzz.kinds import EXTENT, INSTRUCTIONS, KINDS, PASSES, TARGETS
from fuzz.workers import Finding, Tally

BIN = Path(sys.executable).parent
SLOW = 180.0  # time limit in seconds for a whole pipe; an insertion with --diff runs llc ten times
CODES = (0, 1, 2, 3)
OUT = "out.bin"
# Files that a case's folder may contain afterwards besides its inputs: the requested outputs.
WRITTEN = {OUT, "trace.txt"}
STORE_SCRIPT = """
import sys, hashlib, fly
with open(sys.argv[1], "rb") as file:
    made = fly.run(fly.chain(target="gfx942"), file.read())
print(hashlib.sha256(made).hexdigest())
"""


@dataclass(frozen=True)
class Command:
    """Programs joined by pipes, and the files in their folder; `expected` is what the last program
    must print."""

    words: tuple[tuple[str, ...], ...]
    files: tuple[tuple[str, bytes], ...]
    expected: bytes | None = None
    cache: Path | None = None

    def __str__(self) -> str:
        return " | ".join(shlex.join(words) for words in self.words)


# -- what is run on an input of each kind ---------------------------------------------------------
def _of_mlir(data: bytes, generator: random.Random) -> Command:
    target = f"--target={generator.choice(TARGETS)}"
    chosen = generator.choice(
        (
            (("fly-opt-py", "in.mlir"),),
            (("fly-opt-py", "in.mlir", "--mlir-print-debuginfo", "-o", OUT),),
            (("fly-opt-py", "in.mlir", "--split-input-file", "--verify-diagnostics"),),
            (("fly-opt-py", f"--{generator.choice(PASSES)}", "in.mlir", "--timing"),),
            (("fly-opt-py", "--mlir-print-ir-after-all", target, "in.mlir", "-o", OUT),),
            (("cat", "in.mlir"), ("fly-opt-py", target), ("fly-llc",), ("fly-link", "-o", OUT)),
            (("cat", "in.mlir"), ("fly-opt-py", target, "-g"), ("fly-llc",), ("fly-link",)),
        )
    )
    return Command(chosen, (("in.mlir", data),))


def _of_llvm(name: str) -> Callable[[bytes, random.Random], Command]:
    def command(data: bytes, generator: random.Random) -> Command:
        insert = "--insert=pre-emit=" + generator.choice(("nop-sled", "peephole", "tighten-waits"))
        chosen = generator.choice(
            (
                (("fly-llc", name, "-o", OUT),),
                (("fly-llc", name, "--emit=asm", "-O", generator.choice("0123")),),
                (("fly-llc", name, "--stop-after=post-ra"), ("fly-llc", "-o", OUT)),
                (("fly-llc", name, insert, "-o", OUT),),
                (("cat", name), ("fly-llc",), ("fly-link",), ("fly-run", "--inspect")),
            )
        )
        return Command(chosen, ((name, data),))

    return command


def _of_mir(data: bytes, generator: random.Random) -> Command:
    insert = "--insert=pre-emit=" + generator.choice(("nop-sled", "peephole", "schedule"))
    chosen = generator.choice(
        (
            (("fly-llc", "in.mir", "-o", OUT),),
            (("fly-llc", "in.mir", "--start-after=post-ra", "-o", OUT),),
            (("fly-llc", "in.mir", insert, "--start-after=post-ra", "--diff", "-o", OUT),),
            (("cat", "in.mir"), ("fly-llc",), ("fly-link", "-o", OUT)),
        )
    )
    return Command(chosen, (("in.mir", data),))


def _of_object(data: bytes, generator: random.Random) -> Command:
    sound = generator.choice(corpus.objects())
    chosen = generator.choice(
        (
            (("fly-link", "in.o", "-o", OUT),),
            (("fly-link", "in.o", "sound.o", "-o", OUT),),
            (("cat", "in.o"), ("fly-link",), ("fly-run", "--inspect")),
        )
    )
    return Command(chosen, (("in.o", data), ("sound.o", sound)))


def _of_hsaco(data: bytes, generator: random.Random) -> Command:
    """All that a damaged code object may be asked. Its arguments are those of the sound one that
    has the same name of an entry: else they don't fit, and that is refused."""
    programs = [corpus.program_of(one) for one in corpus.hsacos()]
    found = next((one for one in programs if one.entry.encode() in data), programs[0])
    limit = ("--max-instructions", str(INSTRUCTIONS))
    given = _arguments(found)
    kernel = ("--kernel", found.launches[0].kernel, "--block", "64", "zeros(64,f32)")
    chosen = generator.choice(
        (
            (("fly-run", "in.hsaco", *limit, *given),),
            (("fly-run", "in.hsaco", *limit, "--strict", *given, f"{_last(found)}={OUT}.npy"),),
            (("fly-run", "in.hsaco", *limit, "--trace", "trace.txt", "--stats", *given),),
            (("fly-run", "in.hsaco", *limit, *kernel),),
            (("cat", "in.hsaco"), ("fly-run", "--inspect", "--json")),
            (("cat", "in.hsaco"), ("fly-run", *limit, *given)),
        )
    )
    return Command(chosen, (("in.hsaco", data),))


def _last(program: Program) -> str:
    return [one.name for one in program.parameters if isinstance(one, Tensor)][-1]


def _arguments(program: Program) -> list[str]:
    made = []
    for one in program.parameters:
        if isinstance(one, Scalar):
            made.append(f"{one.name}=1")
        if not isinstance(one, Tensor):
            continue
        extents = [e if isinstance(e, int) else EXTENT for e in one.shape]
        shape = "".join(f"{extent}," for extent in extents)
        made.append(f"{one.name}=zeros(({shape}),{one.dtype})")
    return made


def _of_program(data: bytes, generator: random.Random) -> Command:
    """A code object whose program's text is exchanged within its room."""
    hsacos = [one for one in corpus.hsacos() if corpus.program_of(one).entry.encode() in data]
    sound = generator.choice(hsacos or corpus.hsacos())
    from fly_image.elf import Elf

    section = Elf.parse(sound).section(SECTION)
    assert section is not None
    text = data[: section.size].ljust(section.size, b"\0")
    made = sound[: section.offset] + text + sound[section.offset + section.size :]
    return _of_hsaco(made, generator)


def _of_array(data: bytes, generator: random.Random) -> Command:
    example = str(corpus.ROOT / "examples" / "vector_add.py")
    sound = corpus.hsacos()[0]
    rest = ("B=zeros(64,f32)", f"C={OUT}.npy")
    like = ("--like", "A=in.npy")
    chosen = generator.choice(
        (
            (("fly-run", "sound.hsaco", "A=in.npy", *rest),),
            (("cat", "sound.hsaco"), ("fly-run", "A=in.npy", *rest)),
            (("fly-trace", example, *like),),
            (("fly-trace", example, *like, "--static", "-o", OUT),),
        )
    )
    return Command(chosen, (("in.npy", data), ("sound.hsaco", sound)))


def _of_cache(data: bytes, generator: random.Random) -> Command:
    """Runs a chain with one damaged file in its store: the result must be the valid one."""
    from fuzz.damage import damaged

    folder = Path(tempfile.mkdtemp(prefix="fly-fuzz-store-"))
    shutil.copytree(_store(), folder, dirs_exist_ok=True, symlinks=True)
    files = sorted(path for path in (folder / "store").rglob("*") if path.is_file())
    kept = [path for path in files if path.parent.name in ("keys", "objects")]
    chosen = generator.choice(kept)
    chosen.write_bytes(damaged(generator, chosen.read_bytes(), [data], text=False))
    words = (str(BIN / "python"), "-c", STORE_SCRIPT, "in.mlir")
    return Command((words,), (("in.mlir", corpus.mlir()[0]),), _expected(), folder)


_made: list[tuple[Path, bytes]] = []
_making = threading.Lock()


def _store() -> Path:
    """Returns a cache folder with a store that contains all of a chain."""
    with _making:
        if not _made:
            folder = Path(tempfile.mkdtemp(prefix="fly-fuzz-cache-"))
            link_handlers(folder)
            source = folder / "in.mlir"
            source.write_bytes(corpus.mlir()[0])
            done = subprocess.run(
                [BIN / "python", "-c", STORE_SCRIPT, source],
                capture_output=True,
                check=True,
                env=os.environ | {"FLY_CACHE_DIR": str(folder)},
            )
            _made.append((folder, done.stdout))
        return _made[0][0]


def _expected() -> bytes:
    return _made[0][1]


def link_handlers(folder: Path) -> None:
    """Links the user's library of the emulator into a cache folder: it takes 12 s to build."""
    from fly_run.emulator.engine import library

    handlers = library.load().path
    (folder / handlers.name).symlink_to(handlers)


COMMANDS: dict[str, Callable[[bytes, random.Random], Command]] = {
    "mlir": _of_mlir,
    "llvm-ir": _of_llvm("in.ll"),
    "bitcode": _of_llvm("in.bc"),
    "mir": _of_mir,
    "object": _of_object,
    "hsaco": _of_hsaco,
    "program": _of_program,
    "npy": _of_array,
    "cache": _of_cache,
}


# -- running and checking -------------------------------------------------------------------------
def command_of(case: Case) -> Command:
    data, generator = case.made(KINDS[case.kind].seeds())
    return COMMANDS[case.kind](data, generator)


def judge(command: Command, cache: Path) -> tuple[bool, str | None]:
    """Runs a command in its own folder; returns whether all of it succeeded, and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="fly-fuzz-") as name:
        folder = Path(name)
        for file, data in command.files:
            (folder / file).write_bytes(data)
        before = set(os.listdir(folder))
        ended = _run(command, folder, command.cache or cache)
        if isinstance(ended, str):
            return False, ended
        codes, errors, output = ended
        left = set(os.listdir(folder)) - before
    for words, code, text in zip(command.words, codes, errors, strict=True):
        if wrong := _judge_stage(words[0], code, text):
            return False, f"{words[0]}: {wrong}"
    failed = codes[-1] != 0
    if failed and (output or left - {"trace.txt"}):
        return False, f"a failing stage left {sorted(left) or len(output)} behind"
    if odd := {one for one in left if one.removesuffix(".npy") not in WRITTEN}:
        return False, f"left behind: {sorted(odd)}"
    if command.expected is not None and (failed or output != command.expected):
        return False, f"the result is another: {output[:80]!r} {errors[-1][:200]}"
    return not any(codes), None


def _run(command: Command, folder: Path, cache: Path) -> tuple[list[int], list[str], bytes] | str:
    """Returns exit codes, standard error of each, and the last one's output; or that it hung."""
    surroundings = {**os.environ, "FLY_CACHE_DIR": str(cache)}
    surroundings.pop("FLY_DEBUG", None)
    running: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as opened:
        errors = [opened.enter_context(tempfile.TemporaryFile()) for _ in command.words]
        output = opened.enter_context(tempfile.TemporaryFile())
        source: int | None = subprocess.DEVNULL
        for number, words in enumerate(command.words):
            last = number == len(command.words) - 1
            program = BIN / words[0] if words[0].startswith("fly-") else words[0]
            one = subprocess.Popen(
                [program, *words[1:]],
                stdin=source,
                stdout=output if last else subprocess.PIPE,
                stderr=errors[number],
                cwd=folder,
                env=surroundings,
                process_group=running[0].pid if running and running[0].poll() is None else 0,
            )
            if running and running[-1].stdout:
                running[-1].stdout.close()
            running.append(one)
            source = one.stdout.fileno() if one.stdout else None
        hung = _wait(running)
        if hung is not None:
            return f"{command.words[hung][0]} took more than {SLOW:.0f} s"
        texts = []
        for file in (*errors, output):
            file.seek(0)
            texts.append(file.read())
    said = [text.decode(errors="replace") for text in texts[:-1]]
    return [one.returncode for one in running], said, texts[-1]


def _wait(running: list[subprocess.Popen[bytes]]) -> int | None:
    """Waits for all; returns the number of one that hung, after killing all."""
    import time

    deadline = time.monotonic() + SLOW
    for number, one in enumerate(running):
        try:
            one.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            for other in running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(other.pid, signal.SIGKILL)
                other.kill()
                other.wait()
            return number
    return None


def _judge_stage(tool: str, code: int, text: str) -> str | None:
    if "Traceback (most recent call last)" in text:
        return "a traceback"
    if tool == "cat" or not tool.startswith("fly-"):
        return f"exit code {code}" if code < 0 and code != -signal.SIGPIPE else None
    if code < 0:
        return f"ended by signal {-code}"
    if code not in CODES:
        return f"exit code {code}"
    if code == 0:
        return None
    # Dumps, timings and warnings may precede the error.
    lines = text.splitlines()
    found = [index for index, line in enumerate(lines) if line.startswith(f"{tool}: error: ")]
    if not found:
        return f"exit code {code} without an error line"
    return judge_line("\n".join(lines[found[0] :]), tool)


def run(seed: int, kind: str, count: int, jobs: int, found: Callable[[Finding], None]) -> Tally:
    """Runs all cases of a kind as processes."""
    tally = Tally()
    lock = threading.Lock()
    with _cache() as cache:
        KINDS[kind].seeds()

        def one(number: int) -> None:
            case = Case(seed, kind, number)
            command = command_of(case)
            try:
                good, wrong = judge(command, cache)
            finally:
                if command.cache:
                    shutil.rmtree(command.cache, ignore_errors=True)
            with lock:
                tally.cases += 1
                tally.taken += good and not wrong
                tally.refused += not good and not wrong
                if wrong:
                    finding = Finding(case, wrong)
                    tally.findings.append(finding)
                    found(finding)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, range(count)))
    return tally


@contextlib.contextmanager
def _cache() -> Iterator[Path]:
    """Returns a temporary cache folder, because rejected inputs are saved there."""
    with tempfile.TemporaryDirectory(prefix="fly-fuzz-cache-") as name:
        link_handlers(Path(name))
        yield Path(name)
        for folder, _ in _made:
            shutil.rmtree(folder, ignore_errors=True)
        _made.clear()
