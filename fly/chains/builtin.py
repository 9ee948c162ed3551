"""The built-in stages. The library runs them in process, through the tools' functions.

Creating a stage imports nothing of its tool. Looking up its result imports only the module that
computes its fingerprint.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

from fly_backend import registry as backends
from fly_backend.choice import Choice, choose
from fly_common.command_line import options as options_table
from fly_common.errors import UsageError
from fly_common.programs import toolchain
from fly_common.programs.prefetch import Command
from fly_common.quoting import quoted
from fly_store import identity

from fly.chains.stage import Stage


def opt_py(
    target: str, options: Mapping[str, Any] | None = None, backend: str | None = None
) -> Stage:
    """MLIR → LLVM IR. `options` are fields of `fly_opt.pipeline.options.Options`."""
    from fly_opt.pipeline.options import Options

    choice = choose(target, backend)
    selected = {"target": choice.target}
    if not choice.is_own:
        selected["backend"] = choice.backend.name
    chosen = _options(Options, {**selected, **(options or {})}, "fly-opt-py")

    def run(data: bytes) -> bytes:
        from fly_opt.pipeline import stage

        return stage.compile(data, chosen)

    def fingerprint() -> str:
        from fly_opt.identity import fingerprint

        return _with_backend(fingerprint(chosen), choice)

    def with_lines() -> Stage:
        return opt_py(target, {**(options or {}), "debug_info": True}, backend)

    given = options_table.words("opt-py", {**selected, **(options or {})})
    words = ("fly-opt-py", *given)
    again = None if chosen.debug_info else with_lines
    return Stage("opt-py", run, functools.cache(fingerprint), ".ll", words, again, settled=True)


def llc(
    options: Mapping[str, Any] | None = None,
    target: str | None = None,
    backend: str | None = None,
) -> Stage:
    """LLVM IR → object or assembly. `options` are fields of `fly_llc.codegen.options.Options`.
    `target` is the likely target of the IR. It selects the program to start ahead and the suffix of
    the result."""
    from fly_llc.codegen.options import Options

    choice = choose(target, backend)
    chosen = _options(Options, options or {}, "fly-llc")

    def run(data: bytes) -> bytes:
        from fly_llc import stage

        from fly.chains import messages

        return stage.compile(data, chosen, warn=messages.warn)

    def fingerprint() -> str:
        from fly_llc import stage

        text = f"{stage.fingerprint(chosen)} {identity.sources('fly_llc', *identity.SHARED)}"
        return _with_backend(text, choice)

    def ahead() -> Command | None:
        from fly_llc.codegen import llc

        words = llc.expected(target, chosen) if target else None
        return None if words is None else (toolchain.find_program("llc"), words)

    words = ("fly-llc", *options_table.words("llc", options or {}))
    # The user may change the file of a filter or a plugin at any time.
    settled = not (chosen.insert or chosen.replace or any(os.sep in one for one in chosen.flags))
    suffix = choice.backend.object_suffix
    return Stage("llc", run, fingerprint, suffix, words, ahead=ahead, settled=settled)


def link(
    options: Mapping[str, Any] | None = None,
    target: str | None = None,
    backend: str | None = None,
) -> Stage:
    """Object or assembly → image. `options` are fields of `fly_link.options.Options`."""
    from fly_link.options import Options

    choice = choose(target, backend)
    name, chosen = choice.backend.name, _options(Options, options or {}, "fly-link")

    def run(data: bytes) -> bytes:
        from fly_link import linker

        return linker.link([data], options=chosen, backend=name)

    def fingerprint() -> str:
        from fly_link import linker

        made = linker.fingerprint(chosen, name)
        text = f"{made} {identity.sources('fly_link', *identity.SHARED)}"
        return _with_backend(text, choice)

    def ahead() -> Command | None:
        from fly_link import linker

        return linker.of_backend(name).ahead()

    suffix = choice.backend.image_suffix
    named = () if choice.is_own else ("--backend", name)
    words = ("fly-link", *named, *options_table.words("link", options or {}))
    return Stage("link", run, fingerprint, suffix, words, ahead=ahead, settled=True)


def _with_backend(fingerprint: str, choice: Choice) -> str:
    """Returns a fingerprint that includes what a backend from outside adds: its record, and the
    sources of the packages that it refers to."""
    if choice.backend.name in backends.BUILT_IN:
        return fingerprint
    return f"{fingerprint} {choice.backend} {identity.guests(*choice.backend.packages)}"


def _options(kind: type, values: Mapping[str, Any], tool: str) -> Any:
    """Returns `kind(**values)`. Raises UsageError, which lists the options, for an unknown name."""
    names = list(kind.__annotations__)
    for name in values:
        if name not in names:
            raise UsageError(
                f"{tool} has no option {quoted(name)}", hint=f"its options are {', '.join(names)}"
            )
    return kind(**values)
