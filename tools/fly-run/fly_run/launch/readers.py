"""The readers of host programs, by the names that users choose them by.

    interp     the interpreter: the slowest, and what the others are held against
    py         Python that is generated for the program
    jit        native code

"auto" is native code where a function is called repeatedly (`fly.call`), generated Python where a
program runs once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted

if TYPE_CHECKING:
    from fly_host.program import Program
    from fly_image.image import Image

    from fly_run.launch.execution import Outcome, Reader
    from fly_run.launch.runtime import Opened

AUTO, JIT, PYTHON, INTERPRETER = "auto", "jit", "py", "interp"
NAMES = (JIT, PYTHON, INTERPRETER)


def check(option: str, name: str) -> None:
    """UsageError for a reader that there is not."""
    if name not in (AUTO, *NAMES):
        raise UsageError(f"{option} {quoted(name)}: one of {', '.join(NAMES)} is wanted")


def run(
    name: str,
    program: Program,
    image: Image,
    values: Mapping[str, Any],
    opened: Opened,
    tell: Callable[[str], None],
) -> Outcome:
    """Runs a program once by the reader called `name`; see `fly_run.launch.execution.run`. Where
    there is no native code, generated Python runs it; `tell` then gets the reason, but not for
    arguments that are wrong in any case."""
    reason = None
    if name == JIT:
        from fly_host.native.unavailable import Unavailable

        from fly_run.launch import native

        try:
            return native.run(program, image, values, opened)
        except Unavailable as why:
            reason = str(why)
    outcome = opened.run(program, image, values, reader=choose(name))
    if reason is not None:
        tell(reason)
    return outcome


def choose(name: str) -> Reader:
    """The reader called `name`. Native code is no reader on a machine but goes before one
    (`fly_run.launch.native`); what it leaves, generated Python does."""
    if name == INTERPRETER:
        from fly_host.readers import interpreter

        return interpreter.run
    from fly_host.readers import python_code

    return python_code.run
