"""The decorator @fly.autotune."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_trace.signatures.annotations import TensorAnnotation
from fly_trace.signatures.signature import parameters_of
from fly_trace.values.dtypes import DType

from fly.call.arguments import is_stream
from fly.call.function import JitFunction
from fly.tune.config import Config, check_list, is_constant, setting_of, settings_of
from fly.tune.function import TunedFunction
from fly.tune.plan import Plan, Prune


def autotune(
    configs: Sequence[Config],
    key: Sequence[str] = (),
    *,
    prune: Prune | None = None,
    default: Config | None = None,
    reset: Sequence[str] = (),
    file: str | os.PathLike[str] | None = None,
) -> Callable[[JitFunction], TunedFunction]:
    """Selects one of several configurations for each kind of call. Stands above `@fly.jit`.

    `configs` are the configurations (`fly.Config`). `key` has expressions of the arguments: calls
    for which they have the same values, and whose arguments have the same types, share a winner.
    Without tuning (`FLY_AUTOTUNE`, `TunedFunction.tune`) a call uses a winner that is known, else
    `default`, else the first configuration that compiles. `prune(configs, arguments)` returns the
    configurations to measure. `reset` names tensors that each repetition of a measurement must find
    as the first one did. `file` holds the winners; a relative path is relative to the function's
    file.

    UsageError for names that the function does not have.
    """
    check_list(configs)  # also where the decorator is written without parentheses
    names = {"key": key, "reset": reset}
    for word, value in names.items():
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise UsageError(
                f"{word}={quoted(value)}: must be a list of texts", hint=f'as in {word}=["n"]'
            )
    if prune is not None and not callable(prune):
        raise UsageError(f"prune={quoted(prune)}: must be a function (configs, arguments)")
    if file is not None and not isinstance(file, str | os.PathLike):
        raise UsageError(f"file={quoted(file)}: must be a path")

    def make(function: Any) -> TunedFunction:
        if not isinstance(function, JitFunction):
            kind = type(function).__name__
            raise UsageError(
                f"@fly.autotune decorates a @fly.jit function, not a {kind}",
                hint="write @fly.autotune(…) above @fly.jit",
            )
        title, parameters = function.name, parameters_of(function.function)
        settings = settings_of(title, parameters, configs)
        chosen = None if default is None else setting_of(title, parameters, default)
        for setting in (*settings, *((chosen,) if chosen else ())):
            if setting.options:
                function.with_options(setting.options)  # refuses what the function can't have
        tensors = [
            name
            for name, one in parameters.items()
            if not is_stream(one)
            and not is_constant(one)
            and (isinstance(one.annotation, TensorAnnotation) or not _is_number(one.annotation))
        ]
        for name in reset:
            if name not in tensors:
                raise UsageError(
                    f"reset={list(reset)}: {title} has no tensor {quoted(name)}",
                    hint=f"its tensors are {', '.join(tensors) or 'none'}",
                )
        path = None if file is None else os.fspath(file)
        plan = Plan(function, settings, chosen, tuple(key), prune, tuple(reset), path)
        if chosen is not None:
            missing = sorted(
                name
                for name in plan.configured - chosen.constants.keys()
                if parameters[name].default is parameters[name].empty
            )
            if missing:
                raise UsageError(f"default={default!r} has no value for {', '.join(missing)}")
        return TunedFunction(plan)

    return make


def _is_number(annotation: Any) -> bool:
    return isinstance(annotation, DType)
