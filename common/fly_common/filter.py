"""The behavior of a Unix filter: input, output, and exit.

A tool is `main()` → `run(app, "fly-llc")`. Its command reads with `read_input`, calls a pure
function `bytes → bytes`, and passes the result to `write_output`. Nothing else uses the streams.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from fly_common import diagnostics
from fly_common.errors import FlyError, InputError, MissingError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, NoReturn

STDIN = "-"


def debugging() -> bool:
    """Whether tracebacks are enabled (`FLY_DEBUG=1`)."""
    return os.environ.get("FLY_DEBUG", "") not in ("", "0")


def read_input(path: str | None) -> bytes:
    """Returns the bytes of `path`, or of standard input for None or `-`.

    Raises UsageError if standard input is a terminal (instead of silently waiting for a person to
    type IR) or if `path` cannot be read.
    """
    if path in (None, STDIN):
        if sys.stdin is None:
            raise UsageError("no input: standard input is closed")
        if sys.stdin.isatty():
            raise UsageError(
                "no input: standard input is a terminal", hint="pipe in some input, or name a file"
            )
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except IsADirectoryError:
        raise UsageError(f"{path}: is a directory, not a file") from None
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def input_name(path: str | None) -> str:
    """Returns the input's name in messages."""
    return "<stdin>" if path in (None, STDIN) else str(path)


def write_output(data: bytes, path: str | None, *, binary: bool = False) -> None:
    """Writes `data` to `path` atomically, or to standard output for None or `-`.

    `binary` output is refused on a terminal (UsageError). A full disk is a MissingError.
    """
    if path in (None, STDIN):
        if sys.stdout is None:
            raise MissingError("standard output is closed")
        if binary and sys.stdout.isatty():
            raise UsageError(
                "the output is binary and standard output is a terminal",
                hint="redirect it, pipe it to another program, or use -o FILE",
            )
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            _redirect_to_null(sys.stdout)  # the reader closed the pipe, which is not an error
        except OSError as error:
            _redirect_to_null(sys.stdout)
            raise MissingError(f"standard output: {error.strerror}") from None
        return
    write_atomically(path, data)


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes `data` to `path` atomically: to a temporary file beside it, which is then renamed.

    A path that is not a regular file (`/dev/null`, a FIFO) is written directly. A symbolic link is
    kept, and its target is replaced. Raises UsageError for a folder, or a file in a missing folder;
    MissingError if the disk is full or writing is not permitted.
    """
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a directory, not a file")
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise UsageError(f"{path}: the directory {folder} does not exist")
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as file:
                file.write(data)
            return
        temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise MissingError(f"{path}: {error.strerror}") from None


def save_failed_input(tool: str, data: bytes, suffix: str) -> str | None:
    """Saves the input of a failed stage and returns its path. Returns None if it cannot be written,
    or if others could read or replace it.

    Symbolic links are not followed, neither for the folder nor for the file.
    """
    import hashlib

    from fly_common import paths

    digest = hashlib.sha256(data).hexdigest()[:16]
    name = f"{tool}-{digest}{suffix}"
    try:
        folder = os.path.join(paths.private_cache_dir(), "failed")
        paths.make_private(folder)
        within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(within).st_mode & paths.OTHERS_WRITE:
                return None
            _replace_in(within, name, data)
        finally:
            os.close(within)
    except (OSError, FlyError):
        return None
    return os.path.join(folder, name)


def _replace_in(folder: int, name: str, data: bytes) -> None:
    """Writes `data` to `name` in an open folder atomically, replacing what is there. Only the user
    can access it."""
    temporary = f".{name}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    handle = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(temporary, dir_fd=folder)
        raise


def stage(
    tool: str,
    path: str | None,
    work: Callable[[bytes, str], bytes],
    *,
    output: str | None,
    suffix: str | Callable[[bytes], str],
    flags: list[str] | None = None,
    others: list[str] | None = None,
    binary: bool | Callable[[bytes], bool] = False,
) -> None:
    """Reads the input, calls `work(data, name)`, and writes the result. If `work` refuses its
    input, the input is saved (unless it is already a file) and the command that reproduces the
    failure is printed. `suffix` is the suffix of the saved file, or a function of its content.
    `flags` and `others` (further inputs) are printed in the command before and after the input.
    `binary` may be a function of the result."""
    data = read_input(path)
    try:
        result = work(data, input_name(path))
    except InputError as error:
        kept = path
        if path in (None, STDIN) and not data:
            kept = None  # nothing to save, and easily repeated
        elif path in (None, STDIN):
            ending = suffix if isinstance(suffix, str) else suffix(data)
            kept = save_failed_input(tool, data, ending)
        if kept:
            words = [tool, *(flags or []), str(kept), *(others or [])]
            command = " ".join(_quote(word) for word in words)
            lines = [line for line in (error.hint, f"reproduce: {command}") if line]
            error.hint = "\n  ".join(lines)
        raise
    write_output(result, output, binary=binary(result) if callable(binary) else binary)


def _quote(word: str) -> str:
    import shlex

    return shlex.quote(word)


# Whether the process is a tool's, rather than an application that calls a tool's function.
is_process = False


def run(command: Callable[[str, list[str]], int], tool: str) -> NoReturn:
    """Runs a command (`command_line.command.Command`) and exits the process, with one error line
    and an exit code of `errors`."""
    global is_process
    is_process = True
    code: object = 0
    try:
        code = command(tool, diagnostics.take(sys.argv[1:]))
        if sys.stdout is not None:
            sys.stdout.flush()
    except FlyError as error:
        if debugging():
            raise
        _print(diagnostics.print_error, error, tool)
        code = error.exit_code
    except SystemExit as leaving:
        code = leaving.code
    except BrokenPipeError:
        _redirect_to_null(sys.stdout)
    except OSError as error:
        if debugging():
            raise
        _redirect_to_null(sys.stdout)
        # An error without a number has its message elsewhere, such as ctypes' for a library.
        where = error.filename or ("standard output" if error.errno else None)
        parts = [str(part) for part in (where, error.strerror or error) if part is not None]
        _print(diagnostics.print_failure, tool, ": ".join(parts))
        code = 3
    except KeyboardInterrupt:
        code = 130
    except MemoryError:
        if debugging():
            raise
        hint = "use smaller arguments, or raise the memory limit"
        _print(diagnostics.print_failure, tool, "out of memory", hint)
        code = 3
    except RecursionError:
        if debugging():
            raise
        _print(diagnostics.print_failure, tool, "the input is nested too deeply")
        code = 1
    except Exception as error:
        if debugging():
            raise
        what = f"internal: {type(error).__name__}: {error}"
        hint = f"this is a bug in {tool}; FLY_DEBUG=1 shows where"
        _print(diagnostics.print_failure, tool, what, hint)
        code = 1
    _leave(code)
    sys.exit(code)


def _leave(code: object) -> None:
    """Exits the process here if it is the isolated child of a tool (`command_line.isolation`)."""
    if isolation := sys.modules.get("fly_common.command_line.isolation"):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                try:
                    stream.flush()
                except OSError:
                    _redirect_to_null(stream)
        isolation.leave(code if isinstance(code, int) else 1 if code else 0)


def _print(work: Callable[..., None], *arguments: object) -> None:
    """Prints to standard error, which may be closed."""
    try:
        work(*arguments)
    except OSError:
        _redirect_to_null(sys.stderr)


def _redirect_to_null(stream: IO[str] | None) -> None:
    """Redirects a stream that cannot be written to /dev/null. Otherwise Python would flush it at
    exit, fail, and exit with 120."""
    if stream is None:
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
