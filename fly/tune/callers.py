"""Calls of a function in one of its configurations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from fly_common.errors import FlyError
from fly_trace.signatures.signature import parameters_of

from fly.call.function import JitFunction
from fly.call.reports.tracebacks import hide_frames
from fly.tune.config import Setting, as_text
from fly.tune.key import signature_text
from fly.tune.plan import Plan

# What `JitFunction.__call__` does first, without a call of it. The caller's parameters have any
# names: those of the text begin with "fly_".
CALLER = """
def fly_caller({taken}):
    fly_native = fly_function._native
    if fly_native is not None:
        try:
            fly_result = fly_native({given})
        except fly_Error as fly_error:
            fly_hide(fly_error)
            raise fly_error
        if fly_result is not NotImplemented:
            return fly_result
    return fly_function({given})
"""


class Callers:
    """The functions that calls of a plan's function go to, made when they are needed."""

    def __init__(self, plan: Plan, parameters: Mapping[str, inspect.Parameter]) -> None:
        self._plan, self._parameters = plan, parameters
        self._variants: dict[str, JitFunction] = {}
        self._callers: dict[str, Callable[..., Any]] = {}

    def variant(self, setting: Setting) -> JitFunction:
        """The function with the options of a configuration; one for all with the same options."""
        if not setting.options:
            return self._plan.jit
        key = as_text(setting.options)
        if key not in self._variants:
            self._variants[key] = self._plan.jit.with_options(setting.options)
        return self._variants[key]

    def caller(self, setting: Setting) -> Callable[..., Any]:
        """A function of the caller's arguments that adds the configuration's constants."""
        key = as_text(setting.config.as_json)
        if key not in self._callers:
            self._callers[key] = self._made(setting)
        return self._callers[key]

    def _made(self, setting: Setting) -> Callable[..., Any]:
        """Constants are added by position where that is possible: the native code of a function
        takes no arguments by name."""
        namespace: dict[str, Any] = {"fly_function": self.variant(setting)}
        parts: list[str] = []
        for name, one in parameters_of(self._plan.jit.function).items():
            value = name
            if name in self._plan.configured:
                value = f"fly_constant_{name}"
                namespace[value] = setting.constants.get(name, one.default)
            parts.append(f"{name}={value}" if one.kind is one.KEYWORD_ONLY else value)
        taken = signature_text(self._parameters, namespace)
        given = ", ".join(parts)
        if any("=" in part for part in parts):
            return eval(f"lambda {taken}: fly_function({given})", namespace)
        namespace |= {"fly_Error": FlyError, "fly_hide": hide_frames}
        exec(CALLER.format(taken=taken, given=given), namespace)
        return namespace["fly_caller"]
