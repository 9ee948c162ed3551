"""The readers of host programs, by the names that users choose them by.

    interp     the interpreter: the slowest, and what the others are held against
    py         Python that is generated for the program
    jit        native code

Native code serves repeated calls of a function (`fly_run.launch.native`). Here, where a program
runs once, generated Python stands in for it.
"""

from __future__ import annotations

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_host import interpreter

from fly_run.launch.execution import Reader

AUTO, JIT, PYTHON, INTERPRETER = "auto", "jit", "py", "interp"
NAMES = (JIT, PYTHON, INTERPRETER)


def check(option: str, name: str) -> None:
    """UsageError for a reader that there is not."""
    if name not in (AUTO, *NAMES):
        raise UsageError(f"{option} {quoted(name)}: one of {', '.join(NAMES)} is wanted")


def choose(name: str) -> Reader:
    """The reader called `name`. Native code is no reader on a machine but goes before one
    (`fly_run.launch.native`); what it leaves, generated Python does."""
    if name == INTERPRETER:
        return interpreter.run
    from fly_host import python_code

    return python_code.run
