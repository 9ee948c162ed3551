"""Runs a user's Python file and finds its host functions."""

from __future__ import annotations

import difflib
import os
import sys
from types import ModuleType

from fly_common.errors import FlyError, InputError, Place, UsageError
from fly_common.quoting import quoted

from fly_trace.core import locations
from fly_trace.session.decorators import HostFunction, KernelFunction

# The module name of a traced file. Code under `if __name__ == "__main__"` does not run.
_MODULE = "__fly_file__"


def load_file(path: str) -> ModuleType:
    """Loads a Python file as a module. Raises InputError at the line where it fails, UsageError if
    the file cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except IsADirectoryError:
        raise UsageError(f"{path}: is a directory, not a Python file") from None
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    # Tracebacks and locations show the file's name as given by the user.
    code = _compile(path, data)
    module = ModuleType(_MODULE)
    module.__file__ = path
    # dataclasses and others look their module up.
    sys.modules[_MODULE] = module
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        exec(code, module.__dict__)
    except FlyError:
        raise
    except SyntaxError as error:
        raise _syntax_error(path, error) from None
    except SystemExit as error:
        message = f"the file exits the process (SystemExit: {error.code})"
        raise InputError(message, place=Place(path)) from None
    except Exception as error:
        at = locations.of_traceback(error.__traceback__)
        message = f"{type(error).__name__}: {error}"
        raise InputError(message, place=locations.place(at) or Place(path)) from error
    return module


def _compile(path: str, data: bytes):
    try:
        return compile(data, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _syntax_error(path, error) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"is not Python: {error}", place=Place(path)) from None
    except (RecursionError, MemoryError):
        raise InputError("is nested too deeply", place=Place(path)) from None


def _syntax_error(path: str, error: SyntaxError) -> InputError:
    if error.lineno is None:
        return InputError(f"is not Python: {error.msg}", place=Place(path))
    text = error.text.rstrip("\n") if error.text else None
    width = 1
    if error.end_offset and error.offset and error.end_lineno == error.lineno:
        width = max(1, error.end_offset - error.offset)
    column = max(1, error.offset) if error.offset is not None else None
    place = Place(error.filename or path, error.lineno, column, text, width)
    return InputError(f"{type(error).__name__}: {error.msg}", place=place)


def find_entry(module: ModuleType, path: str, entry: str | None) -> HostFunction:
    """The host function `entry`, or the only one in the file. Raises UsageError, which lists
    them."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, HostFunction)}
    own = [
        name
        for name, value in found.items()
        if value.function.__code__.co_filename == module.__file__
    ]
    if entry is not None:
        if entry in found:
            return found[entry]
        value = getattr(module, entry, None)
        if isinstance(value, KernelFunction):
            raise UsageError(
                f"{path}: {entry} is a kernel; an entry must be a host function, with @fly.jit",
                hint=_listed(own),
            )
        near = difflib.get_close_matches(entry, own, n=1)
        hint = f"did you mean {near[0]}?  {_listed(own)}" if near else _listed(own)
        raise UsageError(f"{path}: has no host function {quoted(entry)}", hint=hint)
    if len(own) == 1:
        return found[own[0]]
    if not own:
        raise UsageError(
            f"{path}: has no host function",
            hint="decorate the function that launches with @fly.jit",
        )
    raise UsageError(f"{path}: has {len(own)} host functions", hint=_listed(own, path))


def _listed(names: list[str], path: str | None = None) -> str:
    if not names:
        return "the file has no @fly.jit function"
    if path:
        return "select one: " + ", ".join(f"{path}:{name}" for name in names)
    return f"its host functions: {', '.join(names)}"
