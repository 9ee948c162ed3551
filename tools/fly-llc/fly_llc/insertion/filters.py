"""Runs an insertion: a command on MIR, one of the shipped filters, or a native pass.

Each reads MIR from standard input and writes MIR to standard output. Its standard error is passed
on if it succeeds, and quoted in the error if it fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from fly_common.errors import InputError, MissingError, UsageError

from fly_llc.insertion import insertions
from fly_llc.insertion.insertions import What

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.source import Source
    from fly_llc.insertion.insertions import Cut

# Our own filters, and the modules that have them.
SHIPPED = {
    "nop-sled": "fly_llc.shipped.amd.nop_sled",
    "schedule": "fly_llc.shipped.amd.schedule",
    "peephole": "fly_llc.shipped.amd.peephole",
    "tighten-waits": "fly_llc.shipped.amd.tighten_waits",
    "pressure": "fly_llc.shipped.amd.pressure",
}
_LOADED = "Error opening"  # LLVM's message for a library that it cannot load
WHOLE = "a filter prints the whole MIR, changed or not"
SHOWN = 12  # lines shown of a failing filter's standard error


def find(what: What) -> str:
    """Returns the path of a command. Raises MissingError if it cannot be run."""
    word = what.words[0]
    if os.path.dirname(word):
        if not os.path.isfile(word):
            raise MissingError(f"the filter {word} was not found")
        if not os.access(word, os.X_OK):
            raise MissingError(f"the filter {word} is not executable", hint=f"chmod +x {word}")
        return os.path.abspath(word)
    import shutil

    path = shutil.which(word)
    if path is None:
        here = f", or write ./{word}" if os.path.isfile(word) else ""
        raise MissingError(
            f"there is no filter {word}",
            hint=f"fly-llc's own filters are {', '.join(SHIPPED)}; give the path of another one,"
            " or put it on PATH" + here,
        )
    return path


def owner(name: str) -> str | None:
    """Returns who has the filter `name`, besides plugins, for messages; None if nobody has."""
    return "fly-llc" if name in SHIPPED else None


def of_plugins() -> dict[str, str]:
    """Returns the filters of the active plugins: references to functions, by name."""
    from fly_plugin import active

    return {name: where for one in active() for name, where in one.plugin.filters.items()}


def shipped(name: str) -> Callable[[str, Sequence[str]], str]:
    """Returns the shipped filter: a function of MIR and the words after its name."""
    from importlib import import_module

    return import_module(SHIPPED[name]).main


def load(what: What) -> None:
    """Imports the modules that applying it needs."""
    if not what.plugin and what.seat is None:
        if what.words[0] in SHIPPED:
            shipped(what.words[0])
        else:
            import subprocess  # noqa: F401


def identity(what: What) -> str:
    """Identifies everything that a result may depend on: the words, and the contents of its program
    and of each file that the words name."""
    from fly_store import file_digests

    if what.plugin:
        return f"{what.text} {file_digests.digest_of(insertions.library(what))}"
    if what.words[0] in SHIPPED or what.words[0] in of_plugins():
        # The stage's fingerprint already covers the sources of these filters.
        return what.text
    folder = os.getcwd()
    named = [path for word in what.words[1:] for path in file_digests.named_in(word, folder)]
    return " ".join([what.text, *(file_digests.digest_of(path) for path in (find(what), *named))])


def identities(options: Options) -> list[str]:
    """Returns the identities of everything that runs within the pipeline."""
    texts = [(text, "--insert") for text in options.insert]
    texts += [(text, "--replace") for text in options.replace]
    return [identity(insertions.parse(*one)[2]) for one in texts]


def apply(what: What, source: Source, cut: Cut) -> bytes:
    """Applies `what` to `source` and returns the MIR. Raises InputError if anything fails."""
    where = f"{what.text} ({cut})"
    if what.seat is not None:
        from fly_plugin import contents

        made = contents.run(what.seat, source.data)
        _check_mir(made, what.seat.named)
        return made
    if what.plugin:
        return _native(what, source, where)
    if what.words[0] in SHIPPED:
        _check_target(what.words[0], source, where)
        try:
            return shipped(what.words[0])(source.data.decode(), what.words[1:]).encode()
        except InputError as error:
            error.message = f"{where}: {error.message}"
            raise
    if (reference := of_plugins().get(what.words[0])) is not None:
        return _of_plugin(reference, what, source, where)
    return _command(what, source, where)


def _of_plugin(reference: str, what: What, source: Source, where: str) -> bytes:
    """Runs a filter that a plugin adds: a function of MIR and words, as the shipped ones."""
    from fly_common.resolve import resolve
    from fly_plugin import active
    from fly_plugin.contents import owned

    owner = next(one for one in active() if what.words[0] in one.plugin.filters)
    with owned(owner, where):
        made = resolve(reference)(source.data.decode(), what.words[1:]).encode()
    _check_mir(made, f"{owner.named}: {where}")
    return made


def _check_target(name: str, source: Source, where: str) -> None:
    """Raises UsageError for a filter that does not know the target's instructions."""
    from fly_llc.codegen import points

    known = points.code_generation(source.target.cpu).filters
    if name not in known:
        raise UsageError(
            f"{where}: the filter does not know the instructions of {source.target.cpu}",
            hint=f"fly-llc's own filters for it: {', '.join(known) or 'none'}",
        )


def _command(what: What, source: Source, where: str) -> bytes:
    import subprocess

    from fly_common.programs import process

    path, limit = find(what), process.time_limit()
    try:
        done = subprocess.run(
            [path, *what.words[1:]], input=source.data, capture_output=True, timeout=limit
        )
    except subprocess.TimeoutExpired as late:
        output = _quoted(late.stderr or b"")
        raise InputError(
            f"the filter {where} did not finish within {limit:g} s", hint=output
        ) from None
    except OSError as error:
        raise MissingError(
            f"the filter {where} can't be run: {error.strerror}",
            hint="a script's first line names its interpreter, as in #!/usr/bin/env python3",
        ) from None
    if done.returncode:
        code = done.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"failed (exit status {code})"
        raise InputError(f"the filter {where} {how}", hint=_quoted(done.stderr))
    if done.stderr:
        print(done.stderr.decode(errors="replace").rstrip(), file=sys.stderr)
    _check_mir(done.stdout, f"the filter {where}")
    return done.stdout


def _check_mir(printed: bytes, who: str) -> None:
    """Raises InputError for what a filter printed, if it is not the whole MIR of a module."""
    from fly_common import artifact

    if not printed.strip():
        raise InputError(f"{who} printed nothing", hint=WHOLE)
    if artifact.identify(printed) != artifact.MIR:
        first = printed.strip().partition(b"\n")[0].decode(errors="replace")
        raise InputError(f"{who} printed something that is not MIR: {first[:80]}", hint=WHOLE)
    if b"target triple" not in printed:
        raise InputError(f"{who} removed the module's IR", hint=WHOLE)


def _native(what: What, source: Source, where: str) -> bytes:
    """Runs a plugin's machine pass on its own in llc."""
    from fly_llc.codegen import llc, refusal

    target = source.target
    path, (name,) = insertions.library(what), what.words
    words = [f"-load={path}", f"-mcpu={target.cpu}", f"-O{source.level}", "-x", "mir"]
    done = llc.run([*words, f"-run-pass={name}"], source.data)
    if done.output is None:
        if f"run-pass {name} is not registered" in done.stderr and _LOADED not in done.stderr:
            raise UsageError(
                f"{what.plugin} has no pass {name}",
                hint="a machine pass gets its name from INITIALIZE_PASS or RegisterPass",
            )
        text = source.data.decode(errors="replace")
        error = refusal.explain(done.stderr, text, where, target.cpu, done.signal)
        if isinstance(error, MissingError):
            raise error
        raise InputError(f"the native pass {where} failed: {error.message}")
    return done.output


def _quoted(stderr: bytes) -> str | None:
    lines = stderr.decode(errors="replace").rstrip().splitlines()
    if len(lines) > SHOWN:
        lines = [*lines[:2], f"… {len(lines) - SHOWN} lines more", *lines[2 - SHOWN :]]
    return "\n  ".join(lines) or None


def check(what: What) -> None:
    """Raises MissingError for a filter that cannot be run. Called before any other work."""
    if what.plugin:
        insertions.library(what)
    elif what.seat is None and what.words[0] not in (*SHIPPED, *of_plugins()):
        find(what)
