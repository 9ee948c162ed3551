"""A plugin's options: the fields of its frozen dataclass.

The field `factor` of the plugin `hello` is the flag `--hello-factor=4` and the environment variable
FLY_HELLO_FACTOR. The flag wins. A field's help is its metadata: `field(default=2, metadata={"help":
"…"})`. Its type is bool, int, float, str, or a Literal of texts.
"""

from __future__ import annotations

import os

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record
from fly_common.resolve import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fly_plugin.manifest import Plugin

_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")
_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


@record
class Option:
    """One field. `choices` are the texts of a Literal, or ()."""

    name: str
    flag: str
    variable: str
    kind: type
    default: Any
    required: bool
    help: str
    choices: tuple[str, ...] = ()

    @property
    def metavar(self) -> str:
        if self.choices:
            return "|".join(self.choices)
        return {bool: "[BOOL]", int: "N", float: "X"}.get(self.kind, "TEXT")


def kind_of(plugin: Plugin) -> Any:
    """Returns the plugin's dataclass, or None if it has no options."""
    return resolve(plugin.options) if plugin.options else None


def of(plugin: Plugin) -> tuple[Option, ...]:
    """Returns the plugin's options. UsageError if the class is not one of options."""
    import dataclasses
    import typing

    kind = kind_of(plugin)
    if kind is None:
        return ()
    if not dataclasses.is_dataclass(kind):
        raise UsageError(f"its options, {plugin.options}, are not a dataclass")
    hints = typing.get_type_hints(kind)
    made = []
    for field in dataclasses.fields(kind):
        choices: tuple[str, ...] = ()
        type_ = hints[field.name]
        if typing.get_origin(type_) is typing.Literal:
            choices, type_ = typing.get_args(type_), str
        if type_ not in _KINDS:
            raise UsageError(
                f"its option {field.name} is of type {type_}",
                hint="options are bool, int, float, str or a Literal of texts",
            )
        dashed = f"{plugin.id}-{field.name}".replace("_", "-")
        missing = field.default is dataclasses.MISSING
        made.append(
            Option(
                field.name,
                f"--{dashed}",
                f"FLY_{dashed.upper().replace('-', '_')}",
                type_,
                None if missing else field.default,
                missing,
                field.metadata.get("help", ""),
                choices,
            )
        )
    return tuple(made)


def variables(plugin: Plugin) -> tuple[str, ...]:
    """Returns the environment variables of its options."""
    return tuple(option.variable for option in of(plugin))


def bind(plugin: Plugin, value: Any, given: Mapping[str, Sequence[str]]) -> Any:
    """Returns the plugin's options: `value`, or those of flags (`given`, by name without dashes)
    and the environment. UsageError for a wrong value."""
    kind = kind_of(plugin)
    if value is not None:
        if kind is None or not isinstance(value, kind):
            wanted = f"a {kind.__module__}.{kind.__qualname__}" if kind else "none: it has none"
            raise UsageError(f"its options are {wanted}, not {quoted(value)}")
        return value
    if kind is None:
        return None
    values: dict[str, Any] = {}
    for option in of(plugin):
        if texts := given.get(option.flag[2:]):
            values[option.name] = _read(option, option.flag, texts[-1])
        elif (text := os.environ.get(option.variable)) is not None:
            values[option.name] = _read(option, option.variable, text)
        elif option.required:
            raise UsageError(f"it needs {option.flag}=… or {option.variable}")
    try:
        return kind(**values)
    except ValueError as error:
        raise UsageError(f"its options: {error}") from None


def _read(option: Option, where: str, text: str) -> Any:
    """Converts a text to a value of the option's type."""
    wanted = f"one of {', '.join(option.choices)}" if option.choices else _KINDS[option.kind]
    wrong = UsageError(f"{where}={text}: must be {wanted}")
    if option.choices:
        if text not in option.choices:
            raise wrong
        return text
    if option.kind is bool:
        if text.lower() not in (*_TRUE, *_FALSE):
            raise wrong
        return text.lower() in _TRUE
    try:
        return option.kind(text)
    except ValueError:
        raise wrong from None


def flags(id: str, value: Any) -> list[str]:
    """Returns the flags that give these options."""
    if value is None:
        return []
    import dataclasses

    found = []
    for field in dataclasses.fields(value):
        one = getattr(value, field.name)
        if one != field.default:
            text = str(one).lower() if isinstance(one, bool) else str(one)
            found.append(f"--{id}-{field.name}={text}".replace("_", "-", field.name.count("_")))
    return found
