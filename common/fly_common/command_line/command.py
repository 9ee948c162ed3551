"""A tool's command line: one definition with two readers.

The definition is the signature of a function, with typer's annotations:

    name: Annotated[TYPE, typer.Option("--name", help="…")] = DEFAULT

Typer prints `--help` and reports errors. It takes 50 ms to import, five times in a pipe of five
tools. To save that, this module parses correct calls itself, from the same signature. Annotations
are text until they are evaluated (PEP 563): with typer itself for typer, and with stand-ins that
record their arguments for this parser. Anything it does not support is left to typer: errors, `--`,
combined flags such as `-ab`, and options with more than a name and a type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fly_common.filter import STDIN

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from typing import Any, Self

    import typer

_UNION: Any = type(int | None)  # types.UnionType, without importing types


class Command:
    """A tool's function with the command line that its signature defines.

    `settings` are those of typer's `command`. The function's module uses `typer` and `Annotated`
    only in annotations, and does not need to import them.
    """

    def __init__(self, function: Callable[..., None], **settings: Any):
        self.function = function
        self.settings = settings
        # Further sections of the help: titles, and rows of a flag and its help.
        self.sections: Sequence[tuple[str, list[tuple[str, str]]]] = ()
        self.texts = dict(function.__annotations__)
        self.texts.pop("return", None)

    @classmethod
    def of(cls, **settings: Any) -> Callable[[Callable[..., None]], Self]:
        """A decorator that converts a function to a command."""
        return lambda function: cls(function, **settings)

    def __call__(self, tool: str, words: Sequence[str]) -> int:
        """Runs the command with the arguments `words` and returns the exit status. `tool` is the
        program's name. Raises UsageError for wrong arguments."""
        values = self.read(words)
        if values is None:
            return self._by_typer(tool, words)
        self.function(**values)
        return 0

    def read(self, words: Sequence[str]) -> dict[str, Any] | None:
        """Returns the arguments as typer would parse them, or None if typer has to parse."""
        parameters = self._parameters()
        given = _sort(words, parameters, self._passes_on)
        if given is None:
            return None
        values = self._defaults()
        for parameter in parameters:
            if texts := given.get(parameter.name):
                try:
                    values[parameter.name] = parameter.value(texts)
                except ValueError:
                    return None
            elif parameter.name not in values:
                return None
        return values

    def flags(self) -> frozenset[str]:
        """Returns the flags of the command line."""
        return frozenset(flag for one in self._parameters() for flag in one.flags or ())

    def app(self) -> typer.Typer:
        """The command line as a typer application."""
        from typing import Annotated

        import typer

        app = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
        )
        self.function.__annotations__ = self._evaluate(typer, Annotated)
        settings = self.settings
        if self.sections:
            settings = {**settings, "cls": _with_sections(typer, self.sections)}
        app.command(**settings)(self.function)
        return app

    def _by_typer(self, tool: str, words: Sequence[str]) -> int:
        import typer

        from fly_common.errors import UsageError

        try:
            # Newer versions of typer bundle click. The exception must be from the copy that it
            # raises.
            from typer._click.exceptions import ClickException
        except ImportError:
            from click.exceptions import (  # type: ignore[import-not-found,no-redef]
                ClickException,
            )
        try:
            return self.app()(list(words), standalone_mode=False, prog_name=tool) or 0
        except ClickException as error:
            raise UsageError(error.format_message(), hint=f"see {tool} --help") from None
        except typer.Abort:
            raise KeyboardInterrupt from None
        except SystemExit as leaving:
            if isinstance(leaving.__context__, BrokenPipeError):  # typer's exit after a closed pipe
                raise leaving.__context__ from None
            raise

    @property
    def _passes_on(self) -> bool:
        return self.settings.get("context_settings", {}).get("ignore_unknown_options", False)

    def _evaluate(self, typer: Any, annotated: Any) -> dict[str, Any]:
        """Evaluates the parameters' annotations with these meanings of `typer` and `Annotated`."""
        names = {**self.function.__globals__, "typer": typer, "Annotated": annotated}
        return {name: eval(text, names) for name, text in self.texts.items()}

    def _parameters(self) -> list[_Parameter]:
        meant = self._evaluate(_Typer, _Annotated)
        return [_Parameter(name, kind, spec) for name, (kind, spec) in meant.items()]

    def _defaults(self) -> dict[str, Any]:
        code, values = self.function.__code__, self.function.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        return dict(zip(names[len(names) - len(values) :], values, strict=True))


def _with_sections(typer: Any, sections: Sequence[tuple[str, list[tuple[str, str]]]]) -> Any:
    """Returns the class of commands whose help has these sections after the options."""

    class WithSections(typer.core.TyperCommand):
        def format_options(self, ctx: Any, formatter: Any) -> None:
            super().format_options(ctx, formatter)
            for title, rows in sections:
                with formatter.section(title):
                    formatter.write_dl(rows)

    return WithSections


class _Annotated:
    """Stands in for typing's Annotated."""

    def __class_getitem__(cls, pair: tuple[Any, _Spec]) -> tuple[Any, _Spec]:
        return pair


class _Spec:
    """The content of a parameter's annotation: its flags, or None for an argument, and whether
    there is `more` than this parser supports."""

    def __init__(self, flags: tuple[str, ...] | None, more: bool):
        self.flags = flags
        self.more = more


class _Typer:
    """Stands in for typer. Ignores how an option is shown in the help."""

    @staticmethod
    def Option(*flags: str, metavar: str = "", help: str = "", **more: Any) -> _Spec:
        return _Spec(flags, bool(more))

    @staticmethod
    def Argument(*, metavar: str = "", help: str = "", **more: Any) -> _Spec:
        return _Spec(None, bool(more))


class _Parameter:
    """An option, or an argument if `flags` is None. If `many`, all values are kept in a list;
    otherwise the last one is used. `simple` says whether this parser supports it."""

    def __init__(self, name: str, annotation: Any, spec: _Spec):
        kind = annotation.__args__[0] if isinstance(annotation, _UNION) else annotation
        self.many = getattr(kind, "__origin__", None) is list
        self.kind: type = kind.__args__[0] if self.many else kind
        self.name = name
        self.flags = spec.flags if spec.flags != () else (f"--{name.replace('_', '-')}",)
        self.is_switch = self.kind is bool
        # For a switch without explicit names, typer adds a second one, `--no-…`.
        known = self.kind in (str, int, float) or (self.is_switch and spec.flags and not self.many)
        self.simple = bool(known) and not spec.more

    def value(self, texts: list[str]) -> Any:
        """Converts the arguments to a value. Raises ValueError if they are invalid or too many."""
        if self.is_switch:
            return True
        if self.flags is None and not self.many and len(texts) > 1:
            raise ValueError
        values = [self.kind(text) for text in texts]
        return values if self.many else values[-1]


def _split(word: str) -> tuple[str, str]:
    """Splits `--flag=text` or `-ftext`."""
    if word.startswith("--"):
        flag, _, text = word.partition("=")
        return flag, text
    return word[:2], word[2:]


_TYPERS = _Parameter("", bool, _Spec((), more=True))


def _sort(
    words: Sequence[str], parameters: list[_Parameter], passes_on: bool
) -> dict[str, list[str]] | None:
    """Maps the words to their parameters. Returns None if one is not supported.

    With `passes_on`, an unknown `--flag` is an argument.
    """
    options = dict.fromkeys(("--help", "--"), _TYPERS)
    options |= {flag: one for one in parameters for flag in one.flags or ()}
    argument = next((one for one in parameters if one.flags is None), None)
    given: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        text: str | None = word
        if word == STDIN or not word.startswith("-"):
            parameter = argument
        elif word in options:
            parameter = options[word]
            text = "" if parameter.is_switch else next(rest, None)
        else:
            flag, text = _split(word)
            parameter = options.get(flag)
            if parameter is None and passes_on and word.startswith("--"):
                parameter, text = argument, word
            elif parameter is not None and parameter.is_switch:
                return None
        if parameter is None or not parameter.simple or text is None:
            return None
        given.setdefault(parameter.name, []).append(text)
    return given
