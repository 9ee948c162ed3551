"""The built-in stages. The library runs them in process, through the tools' functions.

Creating a stage imports nothing of its tool. Looking up its result imports only the module that
computes its fingerprint.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

from fly_common import options as options_table
from fly_common import toolchain
from fly_common.errors import UsageError
from fly_common.prefetch import Command
from fly_common.quoting import quoted
from fly_store import identity

from fly.chains.stage import Stage

DEFAULT_TARGET = "gfx942"


def default_target() -> str:
    """Returns the default target: `FLY_TARGET`, or gfx942."""
    return os.environ.get("FLY_TARGET") or DEFAULT_TARGET


def opt_py(target: str, options: Mapping[str, Any] | None = None) -> Stage:
    """MLIR → LLVM IR. `options` are fields of `fly_opt.pipeline.options.Options`."""
    from fly_opt.pipeline.options import Options

    chosen = _options(Options, {"target": target, **(options or {})}, "fly-opt-py")

    def run(data: bytes) -> bytes:
        from fly_opt.pipeline import stage

        return stage.compile(data, chosen)

    def fingerprint() -> str:
        from fly_opt.identity import fingerprint

        return fingerprint(chosen)

    def with_lines() -> Stage:
        return opt_py(target, {**(options or {}), "debug_info": True})

    words = ("fly-opt-py", "--target", target, *options_table.words("opt-py", options or {}))
    again = None if chosen.debug_info else with_lines
    return Stage("opt-py", run, functools.cache(fingerprint), ".ll", words, again, settled=True)


def llc(options: Mapping[str, Any] | None = None, target: str | None = None) -> Stage:
    """LLVM IR → object. `options` are fields of `fly_llc.codegen.options.Options`. `target` is the
    likely target of the IR. It only selects the program to start ahead."""
    from fly_llc.codegen.options import Options

    chosen = _options(Options, options or {}, "fly-llc")

    def run(data: bytes) -> bytes:
        from fly_llc import stage

        return stage.compile(data, chosen)

    def fingerprint() -> str:
        from fly_llc import stage

        return f"{stage.fingerprint(chosen)} {identity.sources('fly_llc', *identity.SHARED)}"

    def ahead() -> Command | None:
        from fly_llc.codegen import llc

        words = llc.expected(target, chosen) if target else None
        return None if words is None else (toolchain.find_program("llc"), words)

    words = ("fly-llc", *options_table.words("llc", options or {}))
    # The user may change the file of a filter or a plugin at any time.
    settled = not (chosen.insert or chosen.replace or any(os.sep in one for one in chosen.flags))
    return Stage("llc", run, fingerprint, ".o", words, ahead=ahead, settled=settled)


def link() -> Stage:
    """Object → HSACO."""

    def run(data: bytes) -> bytes:
        from fly_link import linker

        return linker.link([data])

    def fingerprint() -> str:
        from fly_link import linker

        return f"{linker.fingerprint()} {identity.sources('fly_link', *identity.SHARED)}"

    def ahead() -> Command:
        from fly_link import linker

        return toolchain.find_program("ld.lld"), linker.ARGUMENTS

    return Stage("link", run, fingerprint, ".hsaco", ("fly-link",), ahead=ahead, settled=True)


def _options(kind: type, values: Mapping[str, Any], tool: str) -> Any:
    """Returns `kind(**values)`. Raises UsageError, which lists the options, for an unknown name."""
    names = list(kind.__annotations__)
    for name in values:
        if name not in names:
            raise UsageError(
                f"{tool} has no option {quoted(name)}", hint=f"its options are {', '.join(names)}"
            )
    return kind(**values)
