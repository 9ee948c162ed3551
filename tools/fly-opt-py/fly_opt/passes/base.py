"""The base class of passes written in Python.

A pass is a record (`fly_common.record`) or a frozen dataclass. Its fields *are* its options, its
docstring *is* its help (the first line is what `--list-passes` prints), and `name` is its name in
the pipeline text:

    @record
    class LayoutLowering(Pass):
        \"\"\"Lowers layout algebra to integer arithmetic.\"\"\"

        name: ClassVar[str] = "fly-layout-lowering"
        anchor: ClassVar[str] = "builtin.module"

        max_rank: int = 8                      # the option max-rank=8

        def run(self, op): ...

`run` gets one operation whose name is `anchor` and changes it in place; it is called inside the
operation's context with an unknown default location. It rejects input by raising the error that
`refuse(op, message)` returns. The runner verifies the module after each pass, as MLIR does, unless
`run` returns False: it has changed nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from fly_common.errors import InputError, UsageError
from fly_common.quoting import quoted
from fly_common.record import fields_of, record

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


@record
class Pass:
    """A transformation of one operation in place. `builds` are MLIR's dialects whose operations it
    builds, if no backend and no module has them loaded: as dependent dialects in MLIR. `only_with`
    are parts of names: where a backend's pipeline gets a text that contains none of them, the pass
    changes nothing and rejects nothing, since no pass before it makes what has such a name. Empty
    if there are no such names."""

    name: ClassVar[str]
    anchor: ClassVar[str] = "builtin.module"
    builds: ClassVar[tuple[str, ...]] = ()
    only_with: ClassVar[tuple[str, ...]] = ()

    def run(self, op: ir.Operation) -> bool | None:
        """Transforms `op` (an `ir.Operation` named `anchor`). InputError if it can't. May return
        whether it changed anything."""
        raise NotImplementedError

    @classmethod
    def help(cls) -> str:
        """The docstring's first line."""
        return (cls.__doc__ or "").strip().splitlines()[0]


def refuse(op: ir.Operation, message: str, hint: str | None = None) -> InputError:
    """Returns the error of a pass that can't handle `op`, located at that operation."""
    from fly_dialect.dialect import PARSED_TEXT, place_of

    return InputError(message, place=place_of(op.location, name=PARSED_TEXT), hint=hint)


def make(kind: type[Pass], options: str) -> Pass:
    """Builds a pass from MLIR's option text, `chip=gfx942 fast=true`. UsageError if it is invalid.

    The type of a field's default determines how its value is parsed: bool, int, otherwise text. A
    bool without a value is true, as in MLIR. A text with spaces is in quotation marks.
    """
    fields = {name.replace("_", "-"): (name, one) for name, one in fields_of(kind).items()}
    values: dict[str, Any] = {}
    for match in _WORD.finditer(options):
        key, equals, text = match[0].partition("=")
        if len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1]
        if key not in fields:
            known = f"its options: {', '.join(fields)}" if fields else "it has no options"
            raise UsageError(f"pass {kind.name}: unknown option {quoted(key)}", hint=known)
        name, field = fields[key]
        values[name] = _value(kind, key, text if equals else "true", field.default)
    try:
        return kind(**values)
    except TypeError:
        needed = [
            key for key, (name, field) in fields.items() if field.is_required and name not in values
        ]
        raise UsageError(f"pass {kind.name} needs the option {', '.join(needed)}") from None


def _value(kind: type[Pass], key: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        if text not in ("true", "false", "1", "0"):
            raise UsageError(
                f"pass {kind.name}: option {key} must be true or false, not {quoted(text)}"
            )
        return text in ("true", "1")
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise UsageError(
                f"pass {kind.name}: option {key} must be an integer, not {quoted(text)}"
            ) from None
    return text
