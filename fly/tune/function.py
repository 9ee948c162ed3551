"""The result of `@fly.autotune`: a function that selects a configuration for each kind of call."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fly_backend import choice
from fly_common.environment import Snapshot, watcher
from fly_common.errors import FlyError, MissingError, UsageError
from fly_common.quoting import quoted
from fly_common.record import record, replace
from fly_trace.core import tracing
from fly_trace.session.decorators import HostFunction
from fly_trace.signatures.signature import Constant, parameters_of, parse

from fly.call import arguments as reading
from fly.call.compiled import Compiled
from fly.call.function import JitFunction
from fly.call.host_options import CompileOptions
from fly.call.tracebacks import hide_frames
from fly.tune import winners
from fly.tune.config import Config, Setting
from fly.tune.devices import device_name
from fly.tune.key import Case, KeyReader, signature_text
from fly.tune.measurement import Arguments
from fly.tune.sweep import Candidate, Swept, none_usable, sweep

VARIABLE = "FLY_AUTOTUNE"
OFF, ON, REPORT = "off", "on", "report"
_MODES = {"": OFF, "0": OFF, "1": ON, REPORT: REPORT}
# The variables that choose the target, and where winners are.
VARIABLES = (VARIABLE, choice.TARGET, choice.BACKEND, "FLY_CACHE_DIR")
MOST_KNOWN = 4096  # kinds of calls that a function remembers the configuration of

Prune = Callable[[list[Config], dict[str, Any]], Sequence[Config]]


def mode() -> str:
    """What FLY_AUTOTUNE asks for. UsageError for a value that it can't have."""
    text = os.environ.get(VARIABLE, "")
    if text not in _MODES:
        raise UsageError(f"{VARIABLE}={text}: must be 0, 1 or {REPORT}")
    return _MODES[text]


@record
class Plan:
    """What the decorator was given. `file` is a path, relative to the function's file."""

    jit: JitFunction
    settings: tuple[Setting, ...]
    default: Setting | None = None
    key: tuple[str, ...] = ()
    prune: Prune | None = None
    reset: tuple[str, ...] = ()
    file: str | None = None

    @property
    def configured(self) -> frozenset[str]:
        """The parameters that configurations set."""
        every = (*self.settings, *((self.default,) if self.default else ()))
        return frozenset(name for one in every for name in one.constants)


class _State:
    """What changes between calls: in slots, because the attributes of a function that another one
    calls are part of that one's dependencies."""

    __slots__ = (
        *("plan", "_reader", "_quick", "_known", "_files", "_variants", "_callers", "_busy"),
        *("_environment", "_seen"),
    )


class TunedFunction(_State, HostFunction):
    """Call it like the function that it decorates, without the parameters that configurations set.
    Without tuning it uses a winner that is known, or else the default configuration.

    `jit` is the `@fly.jit` function itself; `configs` are the configurations.
    """

    plan: Plan

    def __init__(self, plan: Plan) -> None:
        jit = plan.jit
        super().__init__(jit.function, jit.name, jit.options)
        self.plan = plan
        self._reader = KeyReader(jit.function, self.parameters, plan.key, VARIABLES)
        self._known: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._files: dict[str, list[winners.Winner]] = {}
        self._variants: dict[Config, JitFunction] = {}
        self._callers: dict[Config, Callable[..., Any]] = {}
        self._busy = threading.RLock()
        self._quick = self._reader.quick
        self._environment: Callable[[], Snapshot] = watcher(*VARIABLES)
        self._seen: Snapshot = ()
        # For functions that call this one while they are traced: part of their dependencies.
        self.constants = dict(self._fallback.constants)

    @property
    def jit(self) -> JitFunction:
        return self.plan.jit

    @property
    def configs(self) -> tuple[Config, ...]:
        return tuple(one.config for one in self.plan.settings)

    @property
    def device(self) -> str:
        return self.jit.device

    @property
    def host(self) -> CompileOptions:
        return self.jit.host

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that a caller gives."""
        every = parameters_of(self.plan.jit.function)
        return {name: one for name, one in every.items() if name not in self.plan.configured}

    @property
    def as_helper(self) -> Any:
        """What a call from a function that is being traced runs: the default configuration."""
        return functools.partial(self.function, **self.constants)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if tracing.active() is not None:
            return HostFunction.__call__(self, *arguments, **self.constants, **named)
        if not named:
            try:
                caller = self._known[self._quick(*arguments)]
            except Exception:  # a call of a kind that is not known, or a wrong one
                pass
            else:
                return caller(*arguments)
        try:
            return self.run(arguments, named)
        except FlyError as error:
            hide_frames(error)
            raise error

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._refresh()
        given = self._bound(arguments, named)
        setting = self._select(given, tunes=mode() != OFF)
        if not named:
            self._remember(arguments, setting)
        return self._variant(setting)(**given, **setting.constants)

    def tune(self, *arguments: Any, **named: Any) -> Config:
        """Measures the configurations for a call with these arguments, keeps the winner, and
        returns it. Nothing that was measured before is measured again. The function is not called:
        the arguments stay as they are.

        InputError, with all reasons, if no configuration can be used.
        """
        return self._guarded(lambda given: self._tuned(given).config, arguments, named)

    def best(self, *arguments: Any, **named: Any) -> Config:
        """The configuration that a call with these arguments uses, without tuning."""
        return self._guarded(
            lambda given: self._select(given, tunes=False).config, arguments, named
        )

    def report(self, *arguments: Any, **named: Any) -> str:
        """A table of all configurations with their costs, the best first; `tune` makes it."""
        from fly.tune.report import text

        def made(given: dict[str, Any]) -> str:
            return text(self.name, self._swept(given))

        return self._guarded(made, arguments, named)

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes the winners that are known to `path`, or to the file beside the function's module,
        which is used wherever that module is. Returns the path."""
        self._refresh()
        made = os.fspath(path) if path is not None else self._paths()[-2]
        if made is None:
            raise UsageError(
                f"{self.name} is in no file that winners could be beside",
                hint="name one: save('…/kernel.tuned.json')",
            )
        known: dict[str, winners.Winner] = {}
        for known_path in reversed(self._paths()):
            known.update((one.case.text, one) for one in self._winners(known_path))
        if not known:
            raise UsageError(
                f"{self.name} has no winners to save", hint=f"tune it first: {self.name}.tune(…)"
            )
        winners.write(made, self.name, list(known.values()))
        self._files.clear()
        return made

    def compile(
        self,
        *arguments: Any,
        signature: str | None = None,
        target: str | None = None,
        backend: str | None = None,
        **named: Any,
    ) -> Compiled:
        """Returns the code that a call with these arguments would run, without running or tuning
        it. Without arguments, or for a `signature`, it is that of the default configuration. See
        `fly.call.function.JitFunction.compile`."""
        where = {"target": target, "backend": backend}
        try:
            if signature is not None or not (arguments or named):
                types = {} if signature is None else parse(signature)
                return self._compile_types(self._fallback, types, **where)
            self._refresh()
            given = self._bound(arguments, named)
            setting = self._select(given, tunes=False, target=target)
            return self._variant(setting).compile(**given, **setting.constants, **where)
        except FlyError as error:
            hide_frames(error)
            raise error

    def compile_types(self, types: Mapping[str, Any]) -> Compiled:
        """The code of the default configuration for arguments of these types."""
        return self._compile_types(self._fallback, types)

    def prepare(self, *arguments: Any, **named: Any) -> Callable[[], Any]:
        """See `JitFunction.prepare`, for the configuration that `best` returns."""

        def made(given: dict[str, Any]) -> Callable[[], Any]:
            setting = self._select(given, tunes=False)
            return self._variant(setting).prepare(**given, **setting.constants)

        return self._guarded(made, arguments, named)

    # -- selecting

    @property
    def _fallback(self) -> Setting:
        return self.plan.default or self.plan.settings[0]

    def _guarded(
        self,
        work: Callable[[dict[str, Any]], Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        try:
            self._refresh()
            return work(self._bound(arguments, named))
        except FlyError as error:
            hide_frames(error)
            raise error

    def _refresh(self) -> None:
        """Forgets what holds in another environment only."""
        now = self._environment()
        if now != self._seen:
            self._known.clear()
            self._files.clear()
            self._seen = now

    def _bound(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name. UsageError for a parameter that configurations set."""
        for name in named:
            if name in self.plan.configured:
                raise UsageError(
                    f"{name} is set by the configurations of {self.name}",
                    hint=f"to set it yourself, call {self.name}.jit(…, {name}=…)",
                )
        parameters = self._reader.parameters
        given = reading.by_name(self.name, parameters, arguments, named)
        needed = (
            name
            for name, one in parameters.items()
            if one.default is one.empty and not reading.is_stream(one)
        )
        if missing := [name for name in needed if name not in given]:
            raise UsageError(
                f"{self.name} needs {', '.join(missing)}",
                hint=f"its parameters are {', '.join(parameters)}",
            )
        return given

    def _select(
        self, given: dict[str, Any], tunes: bool, target: str | None = None
    ) -> Setting:
        """The configuration for a call: measured now if it `tunes`, else a known winner's, else the
        default, else the first one that compiles."""
        if tunes:
            return self._tuned(given)
        case = self._case(given)
        if target is not None:
            case = replace(case, target=target, device="")
        if (found := self._winner(case)) is not None:
            return found
        if self.plan.default is not None or len(self.plan.settings) == 1:
            return self._fallback
        return self._first_usable(given, target)

    def _winner(self, case: Case) -> Setting | None:
        for exact in (True, False):
            for path in self._paths():
                found = winners.find(self._winners(path), case, exact)
                if found is not None and path is not None:
                    setting = winners.setting_for(found, self.plan.settings, path)
                    if setting is not None:
                        return setting
        return None

    def _first_usable(self, given: dict[str, Any], target: str | None) -> Setting:
        refused: list[tuple[Config, FlyError]] = []
        for setting in self.plan.settings:
            types, _ = reading.read(self.function, (), {**given, **setting.constants})
            try:
                self._variant(setting).compile_types(types, target)
                return setting
            except MissingError:
                raise
            except FlyError as error:
                refused.append((setting.config, error))
        if len({str(error) for _, error in refused}) == 1:
            raise refused[0][1]
        raise none_usable([(config, error.message) for config, error in refused])

    def _paths(self) -> tuple[str | None, str | None, str | None]:
        """The files of winners, in the order in which they are asked: the one that the decorator
        names, the one beside the module, the one in the cache folder."""
        function = self.function
        source = function.__code__.co_filename
        named = self.plan.file
        if named is not None:
            folder = os.path.dirname(source) if os.path.isfile(source) else ""
            named = os.path.join(os.path.abspath(folder), named)
        module = os.path.splitext(os.path.basename(source))[0]
        stored = winners.stored_path(module, function.__qualname__, self.jit.digest)
        return named, winners.shipped_path(source, function.__qualname__), stored

    def _winners(self, path: str | None) -> list[winners.Winner]:
        if path is None:
            return []
        if path not in self._files:
            self._files[path] = winners.read(path, self.name)
        return self._files[path]

    def _case(self, given: dict[str, Any]) -> Case:
        constants = self._fallback.constants
        types, viewed = reading.read(self.function, (), {**given, **constants})
        types = {name: kind for name, kind in types.items() if name not in self.plan.configured}
        key, dtypes = self._reader.read(types, given, viewed)
        chain = self.jit.chain
        return Case(key, dtypes, chain.target, device_name(self.jit, chain, viewed.values()))

    # -- tuning

    def _tuned(self, given: dict[str, Any]) -> Setting:
        swept = self._swept(given)
        winner = swept.winner()
        named, _, stored = self._paths()
        path = named or stored
        winners.keep(path, self.name, [winner])
        if path is not None:
            self._files.pop(path, None)
        self._known.clear()
        if mode() == REPORT:
            from fly.tune.report import text

            print(text(self.name, swept), file=sys.stderr)
        best = swept.best
        assert best is not None
        return best[0]

    def _swept(self, given: dict[str, Any]) -> Swept:
        with self._busy:
            candidates = [self._candidate(one, given) for one in self._pruned(given)]
            return sweep(self.name, self._case(given), candidates)

    def _candidate(self, setting: Setting, given: dict[str, Any]) -> Candidate:
        named = {**given, **setting.constants}
        types, viewed = reading.read(self.function, (), named)
        originals = reading.Reader(self.function).originals((), named, viewed)
        of_call = Arguments(originals, viewed, self.plan.reset)
        return Candidate(setting, self._variant(setting), types, of_call)

    def _pruned(self, given: dict[str, Any]) -> Sequence[Setting]:
        """The configurations to measure: those that `prune=` leaves."""
        settings = self.plan.settings
        if self.plan.prune is None:
            return settings
        kept = self.plan.prune([one.config for one in settings], dict(given))
        configs = self.configs
        wrong = [one for one in kept if one not in configs] if isinstance(kept, Sequence) else []
        if not isinstance(kept, Sequence) or not kept or wrong:
            raise UsageError(
                f"prune= of {self.name} returned {quoted(wrong or kept)}",
                hint="it must return some of the configurations that it is given",
            )
        return [one for one in settings if one.config in kept]

    # -- calling

    def _variant(self, setting: Setting) -> JitFunction:
        """The function with the options of a configuration."""
        if not setting.options:
            return self.jit
        if setting.config not in self._variants:
            same = next((c for c in self._variants if _same_options(c, setting)), None)
            made = self._variants[same] if same else self.jit.with_options(setting.options)
            self._variants[setting.config] = made
        return self._variants[setting.config]

    def _compile_types(
        self, setting: Setting, types: Mapping[str, Any], **where: str | None
    ) -> Compiled:
        constants = {name: Constant(value) for name, value in setting.constants.items()}
        return self._variant(setting).compile_types({**types, **constants}, **where)

    def _remember(self, arguments: tuple[Any, ...], setting: Setting) -> None:
        """Has later calls like this one find their configuration at once."""
        try:
            key = self._quick(*arguments)
            hash(key)
        except Exception:  # no key without a closer look, as for `from_dlpack`
            return
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        if setting.config not in self._callers:
            self._callers[setting.config] = self._caller(setting)
        self._known[key] = self._callers[setting.config]

    def _caller(self, setting: Setting) -> Callable[..., Any]:
        """A function of the caller's arguments that adds the configuration's constants, by position
        where that is possible: native code takes no arguments by name."""
        namespace: dict[str, Any] = {"_call": self._variant(setting)}
        parts: list[str] = []
        for name, one in parameters_of(self.function).items():
            if name not in self.plan.configured:
                value = name
            elif name in setting.constants:
                namespace[f"_{name}_constant"] = setting.constants[name]
                value = f"_{name}_constant"
            else:
                namespace[f"_{name}_constant"] = one.default
                value = f"_{name}_constant"
            parts.append(f"{name}={value}" if one.kind is one.KEYWORD_ONLY else value)
        taken = signature_text(self._reader.parameters, namespace)
        return eval(f"lambda {taken}: _call({', '.join(parts)})", namespace)


def _same_options(config: Config, setting: Setting) -> bool:
    """Whether a configuration differs from another one in its constants only."""
    options = {n: v for n, v in config.values.items() if n not in setting.constants}
    return options == {n: setting.config.values[n] for n in setting.options}
