"""Compiler plugins: what other packages add to the tools, and where it runs.

Only this module is imported while no plugin is asked for. It says whether one is (`requested`),
and which are active (`active`).

manifest      `Plugin`, the record that a package exports; `Command`, an external filter
slots         the places where plugins run, each with what holds there
discovery     the plugins that are available, by entry point or by reference
activation    the requests of the environment and of a call → the active plugins
options       a plugin's options, from flags and environment variables
contents      what a plugin puts into a slot, and how filters run
verification  --verify-slots, for slots of bytes
stamps        the plugins that a module was made with
identity      what results depend on because of plugins, for cache keys
listing       --list-plugins and --list-slots
built_in      what this project has itself, as records
command       the flags of the tools
"""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fly_common.command_line.command import Command

    from fly_plugin.activation import Active

VARIABLE = "FLY_PLUGINS"
VERIFY = "FLY_VERIFY_SLOTS"
FLAGS = ("--plugin", "--list-plugins", "--list-slots", "--verify-slots")

# Each thread has its own, because functions with different plugins may be compiled at one time.
_here = _thread._local()  # `threading.local`, which nothing has to be imported for


def active() -> tuple[Active, ...]:
    """Returns the plugins that are active in this thread, in the order of their activation."""
    return getattr(_here, "plugins", ())


class activated:
    """A context in which `plugins` are the active ones of this thread."""

    # Not a generator: `contextlib` would be imported by every run of a tool.
    def __init__(self, plugins: tuple[Active, ...]):
        self.plugins = plugins

    def __enter__(self) -> None:
        self.before = active()
        _here.plugins = self.plugins

    def __exit__(self, *_: object) -> None:
        _here.plugins = self.before


def flags() -> list[str]:
    """Returns the flags that activate the active plugins, for a command that repeats a failure."""
    return [word for one in active() for word in one.flags]


def requested(words: Sequence[str] = ()) -> bool:
    """Returns whether the environment or a command line says anything about plugins."""
    if os.environ.get(VARIABLE):
        return True
    return any(word.startswith("--") and word.partition("=")[0] in FLAGS for word in words)


def with_plugins(command: Command) -> Callable[[str, Sequence[str]], int]:
    """Returns a tool's command that takes the flags of plugins too. The tool's own command never
    sees them."""

    def call(tool: str, words: Sequence[str]) -> int:
        if not requested(words) and "--help" not in words:
            return command(tool, words)
        from fly_plugin.command import run

        return run(command, tool, words)

    return call
