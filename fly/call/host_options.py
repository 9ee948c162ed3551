"""How the host side of a compiled function runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record
from fly_run.launch import readers

if TYPE_CHECKING:
    from fly_host.native.specialisation import Options
    from fly_host.program import Program

VARIABLE = "FLY_HOST"


@record
class CompileOptions:
    """`fly.CompileOptions`: how the host program of a function is run.

    `host` is "jit" for native code, "py" for generated Python, "interp" for the interpreter;
    "auto", the default, is what FLY_HOST says, else native code from the second call of a kind on.
    What can't be compiled runs the next way in this order; the reason is told once. `num_threads`
    is how many launchers are compiled at a time, `opt_level` (0 to 3) LLVM's level for them. `dump`
    is a folder for the LLVM IR of launchers, before and after optimisation (`.ll`, `.opt.ll`).

    UsageError for values that make no sense.
    """

    host: str = readers.AUTO
    num_threads: int = 2
    opt_level: int = 1
    dump: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        readers.check("host=", self.host)
        if type(self.num_threads) is not int or self.num_threads < 1:
            raise UsageError(
                f"num_threads={quoted(self.num_threads)}: a number from 1 on is wanted"
            )
        if type(self.opt_level) is not int or not 0 <= self.opt_level <= 3:
            raise UsageError(f"opt_level={quoted(self.opt_level)}: 0, 1, 2 or 3 is wanted")

    @property
    def reader(self) -> str:
        """The name of the reader, by the option or else by the environment."""
        if self.host != readers.AUTO:
            return self.host
        chosen = os.environ.get(VARIABLE, "") or readers.AUTO
        readers.check(f"{VARIABLE}=", chosen)
        return chosen

    @property
    def is_native(self) -> bool:
        return self.reader in (readers.AUTO, readers.JIT)

    def for_native(self) -> Options:
        from fly_host.native.specialisation import Options

        return Options(opt_level=self.opt_level, num_threads=self.num_threads)

    def write(self, program: Program, suffix: str, text: str) -> None:
        """Writes a dump, where one is asked for."""
        if self.dump is None:
            return
        from pathlib import Path

        from fly_common.filter import write_atomically

        folder = Path(self.dump)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"dump={quoted(str(folder))}: {error.strerror}") from None
        name = f"{program.entry}.{program.target}{suffix}"
        write_atomically(folder / name, text.encode())


DEFAULT = CompileOptions()


def checked(options: Any) -> CompileOptions:
    """The options of a decorator. UsageError for anything else."""
    if options is None:
        return DEFAULT
    if not isinstance(options, CompileOptions):
        raise UsageError(f"options={quoted(options)}: fly.CompileOptions(…) is wanted")
    return options
