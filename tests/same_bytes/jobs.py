"""The jobs: pipelines for the examples and the inputs of the lit tests, from both revisions.

A job is a pipeline of commands whose last output is compared. An input comes from the old revision,
from the present checkout, or from both if they have the same text.
"""

from __future__ import annotations

import ast
import fnmatch
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

Step = tuple[str, ...]

CODE: tuple[Step, ...] = (("opt", "-S", "-O3"), ("fly-llc",), ("fly-link",))
UNOPTIMISED: tuple[Step, ...] = (("fly-llc", "-O0"), ("fly-link",))
LOWERING = (("-O3", CODE), ("-O0", UNOPTIMISED))

# Commands of a RUN line that make artifacts; those after them check the output.
_PRODUCERS = {"fly-trace", "fly-opt-py", "opt", "%opt", "fly-llc", "fly-link"}
_RUN = re.compile(r"\bRUN:[ \t]*(.*)")
_PART = re.compile(r"^// -----.*$", re.MULTILINE)


@dataclass(frozen=True)
class Job:
    """`steps` in a pipe; the first reads `source` as its standard input if that is set."""

    name: str
    steps: tuple[Step, ...]
    origin: str  # "both", "before" or "now": which revision has this input
    source: str | None = None

    @property
    def group(self) -> str:
        """The name of the input; jobs of one input share their first steps."""
        return self.name.split(" ")[0]


def collect(before: Path, now: Path, folder: Path, targets: list[str]) -> list[Job]:
    """Returns every job, with its inputs copied into `folder`, where both revisions read them."""
    found: list[Job] = []
    for kind, pattern, make in (
        ("examples", "*.py", _example),
        ("test/lit", "**/*", _lit),
    ):
        for name, path, origin in _inputs(kind, pattern, before, now, folder):
            found += make(name, path, origin, targets, (now if origin == "now" else before))
    return found


def chosen(jobs: list[Job], patterns: list[str]) -> list[Job]:
    """Returns the jobs whose names contain or match a pattern; all if there are no patterns."""
    if not patterns:
        return jobs
    return [job for job in jobs if any(matches(job.name, pattern) for pattern in patterns)]


def matches(name: str, pattern: str) -> bool:
    return pattern in name or fnmatch.fnmatch(name, pattern)


def _inputs(
    kind: str, pattern: str, before: Path, now: Path, folder: Path
) -> Iterator[tuple[str, Path, str]]:
    """Yields (name, a copy of the file, origin). Files are matched by name, whatever their
    folder."""
    texts: dict[tuple[str, bytes], set[str]] = {}
    for origin, root in (("before", before), ("now", now)):
        for path in sorted((root / kind).glob(pattern)):
            inside = path.relative_to(root)
            if path.is_file() and not {"Output", "__pycache__"} & set(inside.parts):
                name = f"{inside.parts[0]}/{path.name}" if kind == "examples" else _short(inside)
                texts.setdefault((name, path.read_bytes()), set()).add(origin)
    for (name, text), origins in sorted(texts.items()):
        origin = "both" if len(origins) == 2 else origins.pop()
        place = folder / sha256(text).hexdigest()[:8] / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text)
        yield (name if origin != "now" else f"{name}@now"), place, origin


def _short(inside: Path) -> str:
    """Returns lit/TOOL/NAME."""
    return str(Path("lit", *inside.parts[2:]))


def _example(name: str, path: Path, origin: str, targets: list[str], _: Path) -> Iterator[Job]:
    for entry in entries(path.read_text()):
        for signature in ((), *_static_signatures(name, entry)):
            label = f"{name} {entry}" + (" static" if signature else "")
            yield from _traced(label, (f"{path}:{entry}", *signature), origin, targets)


def _traced(label: str, words: Step, origin: str, targets: list[str]) -> Iterator[Job]:
    for target in targets:
        head = (("fly-trace", *words, "--target", target), ("fly-opt-py", "--target", target))
        for level, rest in LOWERING:
            yield Job(f"{label} {target} {level}", (*head, *rest), origin)


def entries(source: str) -> list[str]:
    """Returns the functions of a file that a decorator named `jit` makes host functions."""
    return [
        item.name
        for item in ast.parse(source).body
        if isinstance(item, ast.FunctionDef)
        and any(re.search(r"\bjit\b", ast.unparse(one)) for one in item.decorator_list)
    ]


# Dtypes in signatures, by NumPy's type codes.
_NAMES = {"f2": "f16", "f4": "f32", "f8": "f64", "u1": "u8", "u2": "u16", "i4": "i32"}


def _static_signatures(name: str, entry: str) -> list[Step]:
    """Returns `--sig` with the extents of the arrays that the examples' tests use, if there are
    any."""
    for case in _cases():
        if f"examples/{case.file}" == name and case.entry == entry:
            extents = []
            for argument, value in case.make().items():
                if getattr(value, "shape", None):
                    dtype = "bf16" if entry.endswith("bf16") and value.dtype.kind == "u" else None
                    dtype = dtype or _NAMES[value.dtype.str[1:]]
                    extents.append(f"{argument}: {dtype}[{','.join(map(str, value.shape))}]")
            return [("--sig", ", ".join(extents))]
    return []


def _cases() -> tuple:
    """Returns the table of the examples' tests, from the checkout that contains this module."""
    import sys

    for path in Path(__file__).parents[1].rglob("example_cases.py"):
        sys.path.insert(0, str(path.parent))
        from example_cases import CASES  # type: ignore[import-not-found]

        return CASES
    return ()


def _lit(name: str, path: Path, origin: str, targets: list[str], root: Path) -> Iterator[Job]:
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return
    yield from _run_lines(name, path, origin, text, root)
    if path.suffix == ".mlir":
        for number, part in enumerate(_PART.split(text)):
            file = path.with_suffix(f".{number}.mlir")
            file.write_text(part)
            for target in targets:
                for level, rest in LOWERING:
                    steps = (("fly-opt-py", "--target", target), *rest)
                    yield Job(f"{name} {number} {target} {level}", steps, origin, str(file))
    elif path.suffix == ".ll":
        for level, rest in LOWERING:
            yield Job(f"{name} {level}", rest, origin, str(path))
    elif path.suffix == ".py" and "import fly" in text:
        for entry in entries(text):
            yield from _traced(f"{name} {entry}", (f"{path}:{entry}",), origin, targets)


def _run_lines(name: str, path: Path, origin: str, text: str, root: Path) -> Iterator[Job]:
    """Yields the first commands of RUN lines that produce LLVM IR or later artifacts, extended to
    an HSACO."""
    for number, match in enumerate(_RUN.finditer(text), 1):
        steps = _producers(match[1], path, root)
        if steps:
            yield Job(f"{name} RUN {number}", (*steps, *_rest(steps[-1])), origin)


def _producers(line: str, path: Path, root: Path) -> tuple[Step, ...]:
    try:
        words = shlex.split(line)
    except ValueError:
        return ()
    steps: list[Step] = []
    for command in _split(words):
        if command[0] not in _PRODUCERS:
            break
        kept = _without_files(command)
        if kept is None:
            return ()
        filled = [word.replace("%examples", str(root / "examples")) for word in kept]
        filled = [word.replace("%S", str(path.parent)).replace("%s", str(path)) for word in filled]
        if any("%" in word for word in filled[1:]):
            return ()
        steps.append((filled[0].lstrip("%"), *filled[1:]))
    return tuple(steps) if steps and _makes_code(steps) else ()


def _split(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in [*words, "|"]:
        if word in ("|", "&&"):
            if command:
                yield command
            command = []
            if word == "&&":
                return
        else:
            command.append(word)


def _without_files(command: list[str]) -> list[str] | None:
    """Removes the output option; returns None for a command that reads or writes other files."""
    kept, words = [], iter(command)
    for word in words:
        if word in ("-o", ">"):
            next(words, None)
        elif word == "<":
            kept.append(next(words, ""))
        elif word.startswith(("2>", ">")):
            continue
        elif word in ("--like", "--dump-mir", "--timing") or word.startswith("%t"):
            return None
        else:
            kept.append(word)
    return kept


def _makes_code(steps: list[Step]) -> bool:
    """Whether the result is code: not MLIR, not a listing."""
    *_, last = steps
    flags = " ".join(last)
    if last[0] == "fly-opt-py":
        asked = "--target" in flags or "--emit llvm" in flags
        return asked and not re.search(r"--emit[ =]mlir|--print-pipeline|--split|--verify", flags)
    return last[0] in ("opt", "fly-llc", "fly-link") and "--list-points" not in flags


def _rest(last: Step) -> tuple[Step, ...]:
    if last[0] == "fly-opt-py":
        return CODE
    if last[0] == "opt":
        return CODE[1:]
    if last[0] == "fly-llc" and not re.search(r"--emit|--stop", " ".join(last)):
        return CODE[2:]
    return ()
