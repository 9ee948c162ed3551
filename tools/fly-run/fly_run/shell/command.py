"""One call of fly-run from the shell: reads the code object and arguments, runs, prints a table.

Outputs are written after everything has run, so that a failure leaves none behind.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fly_image
from fly_backend.command import named_backend
from fly_common import diagnostics, filter
from fly_common.command_line.isolation import isolate
from fly_common.errors import InputError, MissingError, UsageError
from fly_host.program import Program
from fly_image.image import Image
from fly_plugin import active

from fly_run.devices.options import MFMA, Options
from fly_run.devices.protocol import Device
from fly_run.devices.registry import of_backend, open_device
from fly_run.launch import launch, readers
from fly_run.launch.execution import Outcome
from fly_run.launch.runtime import Opened
from fly_run.shell import argument_text, argument_values, kernel_lines, npy, observing, report

if TYPE_CHECKING:
    from fly_run.shell import bench
    from fly_run.shell.summaries import Launched

TOOL = "fly-run"


@dataclass(frozen=True)
class Call:
    """The parsed command line. `words` holds the file, if one is named, and the arguments."""

    words: tuple[str, ...]
    device: str = "auto"
    backend: str | None = None
    inspect: bool = False
    json: bool = False
    kernel: str | None = None
    grid: str | None = None
    cluster: str | None = None
    block: str | None = None
    lds: int | None = None
    margin: int = 0
    max_instructions: int | None = None
    threads: int | None = None
    strict: bool = False
    sanitize: str | None = None
    stats: bool = False
    mfma: str = "exact"
    host: str = "auto"
    trace: str | None = None
    trace_only: tuple[str, ...] = ()
    trace_limit: int | None = None
    quiet: bool = False
    bench: bool = False
    repeat: int | None = None
    warm_up: int | None = None
    flops: str | None = None


def version() -> str:
    from fly_common import __version__
    from fly_target import registry

    lines = [
        f"{TOOL} {__version__}",
        "devices: hip (not yet run on AMD hardware), cuda, exec:COMMAND, emulator, cpu",
        f"emulator: {', '.join(registry.EMULATED)}; its results have not been compared with"
        " hardware",
        "sums of matrix instructions:",
    ]
    notes: dict[str, list[str]] = {}
    for name, row in registry.EMULATED.items():
        if row.amd is not None and row.matrix:
            notes.setdefault(row.amd.sums_note, []).append(name)
    lines += [f"  {', '.join(names)}: {note}" for note, names in notes.items()]
    return "\n".join(lines) + "\n"


def call(call: Call) -> None:
    """Executes a command line."""
    path, words = split(call.words)
    given = argument_text.parse_all(words)
    _check_options(call)
    sanitized = _sanitized(call)
    data = filter.read_input(path)
    name = filter.input_name(path)
    with _kept(call, path, data):
        # LLVM's disassembler and the emulator process untrusted bytes of the file.
        # AddressSanitizer reports a crash itself.
        if not sanitized:
            isolate(TOOL, name)
        images = _images(data, name)
    if call.inspect:
        from fly_run.shell import inspect

        text = inspect.as_json(images) if call.json else inspect.text(images, name)
        filter.write_output(text.encode(), None)
        return
    image = images[0]
    if len(images) > 1:
        from fly_run.devices.choosing import choose

        image = choose(images, call.device)
    held, work = _work(call, image, given)
    _check_destinations(held.destinations)
    watch = observing.Watching.of(call)
    # What kernels print must not be in a document.
    printing = contextlib.redirect_stdout(sys.stderr if call.json else sys.stdout)
    with _kept(call, path, data), kernel_lines.located(image), watch.tracing(), printing:
        outcome, name, remarks, measured, launched = _run(call, image, work, watch, held)
    ran = outcome.ran
    if call.kernel is None and image.program is not None:
        held = held.with_results(image.program, outcome.results)
    for result, destination in held.destinations.items():
        filter.write_atomically(Path(destination), npy.dump(held.values[result]))
    if not call.quiet:
        report.report(held, ran if measured is None else [], name, remarks)
    watch.report()
    if measured is not None and call.json:
        filter.write_output(measured.json().encode(), None)
    elif measured is not None:
        report.table(measured.rows(), measured.lines())
    if launched is not None:
        from fly_run.shell import summaries

        documents = watch.statistics.documents if watch.statistics else ()
        summaries.show(image, name, launched, documents, measured)


def _images(data: bytes, name: str) -> list[Image]:
    """The image of a file, or those of a library."""
    from fly_image import library, registry

    if registry.is_library(data):
        return library.images(data, name)
    return [fly_image.read(data, name)]


@contextlib.contextmanager
def _kept(call: Call, path: str | None, data: bytes) -> Iterator[None]:
    """Saves a code object that is rejected, or fails as it runs, if it came through a pipe, and
    prints the command that reproduces the failure."""
    try:
        yield
    except InputError as error:
        if path in (None, filter.STDIN) and data:
            kept = filter.save_failed_input(TOOL, data, ".hsaco")
            if kept is not None:
                reproduce = f"reproduce: {shlex.join([TOOL, str(kept), *_reproducing_words(call)])}"
                error.hint = "\n  ".join(line for line in (error.hint, reproduce) if line)
        raise


def split(words: tuple[str, ...]) -> tuple[str | None, list[str]]:
    """Separates the code object's path from the arguments. UsageError if two words could be the
    path."""
    paths = [word for word in words if word == filter.STDIN or not argument_text.is_argument(word)]
    if len(paths) > 1:
        raise UsageError(
            f"two files are given, {paths[0]} and {paths[1]}",
            hint="fly-run runs one code object; arguments have the form NAME=VALUE",
        )
    return (paths[0] if paths else None), [word for word in words if word not in paths]


def _check_options(call: Call) -> None:
    """Raises UsageError for options that contradict each other."""
    if call.kernel is None:
        for option in ("grid", "block", "cluster", "lds"):
            if getattr(call, option) is not None:
                raise UsageError(
                    f"--{option} requires --kernel: a host program defines its own sizes"
                )
    elif call.block is None and not call.inspect:
        raise UsageError("--kernel needs --block", hint="for example, add --block 256 --grid 4")
    if call.lds is not None and call.lds < 0:
        raise UsageError("--lds must be a number of bytes, at least 0")
    if call.margin < 0:
        raise UsageError("--margin must be a number of bytes, at least 0")
    if call.max_instructions is not None and call.max_instructions < 1:
        raise UsageError("--max-instructions must be at least 1")
    if call.threads is not None and call.threads < 1:
        raise UsageError("--threads must be at least 1")
    if call.mfma not in MFMA:
        raise UsageError(f"--mfma {call.mfma}: expected exact or fast")
    if call.sanitize is not None:
        from fly_run.cpu import sanitizer

        sanitizer.check_kind(call.sanitize, f"--sanitize {call.sanitize}")
        if call.device != "cpu":
            raise UsageError("--sanitize requires --device cpu", hint="add --device cpu")
    readers.check("--host", call.host)
    if not call.bench:
        for option in ("repeat", "warm_up", "flops"):
            if getattr(call, option) is not None:
                raise UsageError(f"--{option.replace('_', '-')} requires --bench")
    elif call.stats or call.trace or call.strict or call.inspect:
        raise UsageError("--bench measures what nothing else observes: run it by itself")
    else:
        _bench_options(call)


def _sanitized(call: Call) -> bool:
    """Whether AddressSanitizer watches the launch. This process then has its run-time library: it
    starts again if necessary."""
    if call.device != "cpu" or call.inspect:
        return False
    from fly_run.cpu import sanitizer

    if not (call.sanitize or sanitizer.asked()):
        return False
    os.environ[sanitizer.VARIABLE] = sanitizer.KINDS[0]
    if filter.is_process:
        sanitizer.restart()
    return True


def _reproducing_words(call: Call) -> list[str]:
    """Returns the options and arguments of a call, without its file."""
    options = [
        (f"--{name.replace('_', '-')}", getattr(call, name))
        for name in ("kernel", "grid", "block", "cluster", "lds", "max_instructions", "threads")
    ]
    told = [word for option, value in options if value is not None for word in (option, str(value))]
    told += ["--device", call.device] if call.device != "auto" else []
    told += [] if call.backend is None else ["--backend", call.backend]
    told += ["--mfma", call.mfma] if call.mfma != "exact" else []
    told += ["--host", call.host] if call.host != "auto" else []
    told += ["--margin", str(call.margin)] if call.margin else []
    told += ["--strict"] if call.strict else []
    told += ["--sanitize", call.sanitize] if call.sanitize else []
    told += ["--inspect"] if call.inspect else []
    told += ["--bench"] if call.bench else []
    return [*told, *split(call.words)[1]]


def _work(
    call: Call, image: Image, given: list[argument_text.Argument]
) -> tuple[argument_values.Given, Callable[[Opened], Outcome]]:
    """The arguments' values, and what a device is to do with them."""
    if call.kernel is not None:
        kernel = image.kernel(call.kernel)
        held = _between_margins(call, argument_values.for_kernel(kernel, given))
        launched = launch.bind_arguments(
            image,
            kernel.name,
            _sizes("--grid", call.grid or "1"),
            _sizes("--block", call.block or "1"),
            held.arguments,
            call.lds or 0,
            list(held.values),
            _sizes("--cluster", call.cluster) if call.cluster is not None else None,
        )
        return held, lambda opened: Outcome(None, opened.run_kernel(launched, image))
    program = image.program
    if program is None:
        raise UsageError(
            "the code object has no host program: it was not made by fly-opt-py",
            hint=f"specify what to launch: --kernel {next(iter(image.kernels))} --grid 4 --block"
            " 256,"
            " and the arguments in order",
        )
    held = _between_margins(call, argument_values.for_program(program, given))

    def work(opened: Opened) -> Outcome:
        from fly_run.shell import placement

        arrays = {name: held.values[name] for name in held.addressed}
        with placement.addresses(opened.device, arrays) as found:
            values = {**held.values, **found}
            return readers.run(
                call.host, program, image, values, opened, lambda why: _tell(program, why)
            )

    return held, work


def _between_margins(call: Call, held: argument_values.Given) -> argument_values.Given:
    from fly_run.shell import placement

    return held.between_margins(placement.whole(call.margin)) if call.margin else held


def _tell(program: Program, why: str) -> None:
    diagnostics.warner(TOOL)(f"the host side of {program.entry} runs as generated Python: {why}")


def _run(
    call: Call,
    image: Image,
    work: Callable[[Opened], Outcome],
    watch: observing.Watching,
    held: argument_values.Given,
) -> tuple[Outcome, str, tuple[str, ...], bench.Report | None, list[Launched] | None]:
    """Launches; the outcome, the device's name, its remarks, what --bench measured, and the
    launches if a plugin has a summary."""
    bar = report.ProgressBar()
    options = Options(
        max_instructions=call.max_instructions,
        threads=call.threads,
        progress=bar,
        observers=watch.observers,
        mfma=call.mfma,
        strict=call.strict,
    )
    name = of_backend(call.device, named_backend(call.backend))
    device = open_device(name, image.target, options)
    if call.margin:
        from fly_run.shell import placement

        device = placement.with_margins(device, call.margin, [held.values[n] for n in held.dtypes])
    recorder = _recorder(call, image, device) if call.bench else device
    seen = _seen(recorder)
    opened = Opened(seen or recorder, shared=False)
    try:
        outcome = work(opened)
        measured = _measured(call, image, outcome, recorder, held) if call.bench else None
        launched = None if seen is None else seen.launches
        return outcome, device.name, device.remarks, measured, launched
    finally:
        bar.close()
        opened.close()


def _seen(device: Any) -> Any:
    """A device that remembers launches for the summaries of plugins, or None without any."""
    if not active():
        return None
    from fly_run.shell import summaries

    return summaries.Recording(device) if summaries.wanted() else None


def _recorder(call: Call, image: Image, device: Device) -> Any:
    from fly_run.shell import bench

    if call.kernel is None:
        bench.check(image.program)
    return bench.Recorder(device)


def _measured(
    call: Call, image: Image, outcome: Outcome, recorder: Any, held: argument_values.Given
) -> bench.Report:
    """What --bench measures behind a run."""
    from fly_run.shell import bench

    program = image.program if call.kernel is None else None
    if program is not None:
        held = held.with_results(program, outcome.results)
    return bench.measure(recorder, outcome.ran, program, held, _bench_options(call))


def _bench_options(call: Call) -> bench.Options:
    from fly_run.shell import bench

    asked: dict[str, Any] = {"repetitions": call.repeat, "warm_up": call.warm_up}
    asked["flops"] = call.flops
    return bench.Options(**{name: value for name, value in asked.items() if value is not None})


def _sizes(option: str, text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = ()
    if not 1 <= len(sizes) <= 3:
        raise UsageError(f"{option} {text}: expected one to three integers, as in 4 or 16,16")
    return sizes


def _check_destinations(destinations: dict[str, str]) -> None:
    """Raises an error for unwritable destinations before an hour of work, instead of after it."""
    for name, destination in destinations.items():
        path = Path(destination)
        if path.is_dir():
            raise UsageError(f"{name}=…:{destination}: is a directory, not a file")
        folder = path.parent
        if not folder.is_dir():
            raise UsageError(f"{name}=…:{destination}: the directory {folder} does not exist")
        if not path.exists() and not os.access(folder, os.W_OK):
            raise MissingError(f"{name}=…:{destination}: no permission to write to {folder}")
