"""A configuration: values of a function's compile-time constants, and options of its compilation.

    fly.Config(BLOCK=256, opt_level=2)

A name that is a parameter of the function sets that parameter; any other name is an option of
`@fly.jit` for LLVM (`fly.chains.tuning.Tuning`).
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fly_common.command_line.options import KEYWORDS
from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record
from fly_trace.signatures.annotations import TensorAnnotation
from fly_trace.values.dtypes import DType

from fly.call.arguments import is_constexpr, is_stream
from fly.call.arrays.views import is_numpy_scalar
from fly.chains import tuning


class Config:
    """`fly.Config(**values)`. Immutable; two are equal if they are written the same in JSON."""

    __slots__ = ("values",)
    values: Mapping[str, Any]

    def __init__(self, **values: Any) -> None:
        object.__setattr__(self, "values", MappingProxyType(values))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Config can't be changed: make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Config can't be changed: make another one")

    @property
    def as_json(self) -> dict[str, Any]:
        """The values as JSON has them. UsageError for one that other processes can't recognise."""
        return {name: portable(value, name) for name, value in sorted(self.values.items())}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and as_text(self.as_json) == as_text(other.as_json)

    def __hash__(self) -> int:
        return hash(as_text(self.as_json))

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values.items()) or "(nothing set)"

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


@record
class Setting:
    """What a Config sets of one function: `constants` by parameter, `options` of `@fly.jit`."""

    config: Config
    constants: dict[str, Any]
    options: dict[str, Any]


def as_text(value: Any) -> str:
    """JSON on one line, the same for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def portable(value: Any, name: str) -> Any:
    """A constant as JSON has it: numbers, strings, None and lists as they are, anything else by its
    text. UsageError if the text tells an address, which is another in each process, or is the name
    of any lambda."""
    if is_numpy_scalar(value):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [portable(part, name) for part in value]
    if isinstance(value, Mapping):
        return {str(key): portable(part, name) for key, part in value.items()}
    if isinstance(value, DType):
        return value.name
    module, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    text = f"{module}.{qualified}" if module and qualified else repr(value)
    if " at 0x" in text or "<lambda>" in text:
        raise UsageError(
            f"{name}={quoted(text)}: has no text that another process would recognise",
            hint="use a number, a string, or a function with a name",
        )
    return text


def check_list(configs: Any) -> None:
    """UsageError unless `configs` is a list with something in it."""
    if isinstance(configs, str | bytes) or not isinstance(configs, Sequence) or not configs:
        raise UsageError(
            f"configs={quoted(configs)}: must be a list of configurations",
            hint="as in @fly.autotune(configs=[fly.Config(BLOCK=128), fly.Config(BLOCK=256)])",
        )


def settings_of(
    title: str, parameters: Mapping[str, inspect.Parameter], configs: Sequence[Any]
) -> tuple[Setting, ...]:
    """Reads the `configs` of a decorated function. UsageError for names that the function and
    `@fly.jit` don't have, and for two that are the same."""
    made = tuple(setting_of(title, parameters, config) for config in configs)
    configured = {name for one in made for name in one.constants}
    for number, one in enumerate(made):
        if one.config in configs[:number]:
            raise UsageError(f"{one.config!r} is given twice in the configs of {title}")
        for name in sorted(configured - one.constants.keys()):
            if parameters[name].default is inspect.Parameter.empty:
                raise UsageError(
                    f"{one.config!r} has no value for {name}, which other configs of {title} set",
                    hint=f"add one, or give {name} a default value in the function",
                )
    return made


def setting_of(title: str, parameters: Mapping[str, inspect.Parameter], config: Any) -> Setting:
    """Reads one Config."""
    if not isinstance(config, Config):
        raise UsageError(
            f"{quoted(config)} is no configuration of {title}",
            hint="configurations are made by fly.Config(NAME=value, …)",
        )
    constants: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, value in config.values.items():
        if name in parameters:
            if not is_constant(parameters[name]):
                raise UsageError(
                    f"{config!r}: {name} is an argument of {title}, not a compile-time constant",
                    hint=f"annotate it: {name}: fx.Constexpr",
                )
            constants[name] = value
        elif name in KEYWORDS:
            options[name] = value
        else:
            known = [name for name, one in parameters.items() if is_constant(one)]
            raise UsageError(
                f"{config!r}: {title} has no parameter {name!r}, and @fly.jit no such option",
                hint=f"constants of {title}: {', '.join(known) or 'none'};"
                f" options: {', '.join(KEYWORDS)}",
            )
    _ = config.as_json  # what can't be written down is refused here
    return Setting(config, constants, tuning.check(options))


def is_constant(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is a compile-time constant: by its annotation, or because it has a
    default value and no annotation."""
    annotation = parameter.annotation
    if is_constexpr(annotation):
        return True
    if is_stream(parameter) or isinstance(annotation, TensorAnnotation | DType):
        return False
    empty = inspect.Parameter.empty
    return annotation is empty and parameter.default is not empty
