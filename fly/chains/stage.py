"""A stage of the chain: a function from bytes to bytes, and its fingerprint.

The store relies on this: stages with equal fingerprints give equal results for equal inputs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fly_common.errors import InputError, MissingError, UsageError
from fly_common.programs import prefetch, process, toolchain
from fly_common.programs.prefetch import Command
from fly_common.record import record
from fly_plugin import requested
from fly_store import file_digests, identity

# These are looked up in the LLVM that all tools use, not on PATH.
LLVM_PROGRAMS = frozenset({"opt", "llc", "ld.lld", "llvm-link", "llvm-mc", "llvm-objcopy"})
# The packages that each of our programs consists of. Its console script does not name them.
OWN_PROGRAMS = {
    "fly-opt-py": ("fly_opt", "fly_dialect", *identity.SHARED),
    "fly-llc": ("fly_llc", *identity.SHARED),
    "fly-link": ("fly_link", *identity.SHARED),
}


@record
class Stage:
    """`run` turns the artifact before this stage into the one after it.

    `fingerprint` is a text that identifies everything the result depends on besides the input. If
    it is a function, it is called each time, because a program's file may change between two calls.
    `suffix` is the file suffix of the result (".opt.ll"). `words` is the equivalent shell command,
    for messages. `with_lines` returns the same stage with source lines in its output, if the stage
    omits them by default. `ahead` returns the program that `run` will most likely run, so that it
    can be started before the input exists. `settled` means that the fingerprint depends on nothing
    that may change except LLVM's own files: `@fly.jit` then checks it once a second, not at each
    call.
    """

    name: str
    run: Callable[[bytes], bytes]
    fingerprint: str | Callable[[], str]
    suffix: str
    words: tuple[str, ...] = ()
    with_lines: Callable[[], Stage] | None = None
    ahead: Callable[[], Command | None] | None = None
    settled: bool = False

    def identity(self) -> str:
        """Returns the stage's name and its current fingerprint."""
        text = self.fingerprint if isinstance(self.fingerprint, str) else self.fingerprint()
        return f"{self.name}\n{text}"

    @staticmethod
    def command(
        words: Sequence[str],
        *,
        suffix: str,
        name: str | None = None,
        depends: Iterable[str | os.PathLike[str]] = (),
    ) -> Stage:
        """Returns a stage that runs an external command.

        The command reads its standard input and writes its standard output. For a program that
        needs files, `{input}` and `{output}` in `words` stand for their names. It runs in the
        folder that is current now. LLVM's programs are found by `fly_common.programs.toolchain`.

        The fingerprint covers the words, the contents of the program, of every existing file that
        the words name, and of the files in `depends`. List there what else the command reads or
        imports. Shared libraries that the program loads are not included, except LLVM's own.
        """
        if not words or not all(isinstance(word, str) for word in words):
            raise UsageError("a stage's command is a list of at least one word")
        command = _Command(
            tuple(words), os.getcwd(), suffix, tuple(os.path.abspath(path) for path in depends)
        )
        label = name or os.path.basename(words[0])
        return Stage(
            label,
            command.run,
            command.fingerprint,
            suffix,
            command.words,
            ahead=command.ahead,
            settled=command.settled,
        )


@record
class _Command:
    words: tuple[str, ...]
    folder: str
    suffix: str
    depends: tuple[str, ...]

    def program(self) -> str:
        """Returns the path of the program. Raises MissingError if it is not found."""
        word = self.words[0]
        if word in LLVM_PROGRAMS:
            return toolchain.find_program(word)
        beside = os.path.join(os.path.dirname(sys.executable), word)
        if word in OWN_PROGRAMS and os.path.isfile(beside):
            return beside
        here = os.path.join(self.folder, word) if os.path.dirname(word) else word
        import shutil

        path = shutil.which(here)
        if path is None:
            raise MissingError(
                f"the program {word} of a stage was not found",
                hint="give its full path, or add its directory to PATH",
            )
        return path

    def fingerprint(self) -> str:
        word = self.words[0]
        if word in LLVM_PROGRAMS:
            parts = [identity.program(word)]
        else:
            path = self.program()
            parts = [f"{os.path.realpath(path)} {file_digests.digest_of(path)}"]
        if packages := OWN_PROGRAMS.get(word):
            parts += [identity.sources(*packages), identity.program("llc")]
            parts += _plugins(word, self.words[1:])
        for argument in self.words[1:]:
            parts += [
                file_digests.digest_of(path)
                for path in file_digests.named_in(argument, self.folder)
            ]
        parts += [file_digests.digest_of(path) for path in self.depends]
        return "\n".join(["command", *map(repr, self.words), *parts])

    @property
    def settled(self) -> bool:
        """Whether the program is LLVM's and no argument names a file, such as a plugin."""
        plain = (word.startswith("-") and os.sep not in word for word in self.words[1:])
        return self.words[0] in LLVM_PROGRAMS and not self.depends and all(plain)

    @property
    def _filters(self) -> bool:
        """Whether the command reads standard input and writes standard output, without files."""
        return not any("{input}" in word or "{output}" in word for word in self.words)

    def ahead(self) -> Command | None:
        # LLVM's programs are safe to start early: they only load until they read their input.
        if self.words[0] not in LLVM_PROGRAMS or not self._filters or self.folder != os.getcwd():
            return None
        return self.program(), self.words[1:]

    def run(self, data: bytes) -> bytes:
        if self._filters:
            return self._run(self.words[1:], data)
        import tempfile

        with tempfile.TemporaryDirectory(prefix="fly-stage-") as scratch:
            names = {
                "{input}": os.path.join(scratch, "input"),
                "{output}": os.path.join(scratch, f"output{self.suffix}"),
            }
            words = [_fill(word, names) for word in self.words[1:]]
            with open(names["{input}"], "wb") as file:
                file.write(data)
            printed = self._run(words, data)
            if not any("{output}" in word for word in self.words):
                return printed
            try:
                with open(names["{output}"], "rb") as file:
                    return file.read()
            except FileNotFoundError:
                raise InputError(f"{self.words[0]} succeeded but wrote no {{output}}") from None

    def _run(self, arguments: Sequence[str], data: bytes) -> bytes:
        program = self.program()
        try:
            done = self._done(program, arguments, data)
        except OSError as error:
            raise MissingError(f"{program} can't be run: {error.strerror}") from None
        stderr = done.stderr.decode(errors="replace").strip()
        if done.returncode:
            code = done.returncode
            how = f"was killed by signal {-code}" if code < 0 else f"failed (exit status {code})"
            lines = stderr.splitlines() or ["it said nothing"]
            # The first lines give the reason; LLVM's stack dump follows.
            raise InputError(
                f"{self.words[0]} {how}: {lines[0]}", hint="\n  ".join(lines[1:12]) or None
            )
        if stderr:
            from fly.chains import messages

            if rest := messages.said_by(self.words[0], stderr):
                print(rest, file=sys.stderr)
        return done.stdout

    def _done(self, program: str, arguments: Sequence[str], data: bytes) -> Any:
        if self.folder == os.getcwd():
            return prefetch.run(program, arguments, data)
        import subprocess

        limit = process.time_limit()
        try:
            return subprocess.run(
                [program, *arguments],
                input=data,
                capture_output=True,
                cwd=self.folder,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            raise process.TimedOut(program, limit) from None


def _plugins(tool: str, words: Sequence[str]) -> list[str]:
    """Returns the identity of the plugins that one of our programs will activate, if any."""
    if not requested(words):
        return []
    from fly_plugin import activated
    from fly_plugin.command import chosen_by
    from fly_plugin.identity import of_stage

    with activated(chosen_by(words)):
        return [of_stage(tool)]


def _fill(word: str, names: dict[str, str]) -> str:
    for placeholder, path in names.items():
        word = word.replace(placeholder, path)
    return word
