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
from fly_common.record import replace
from fly_trace.core import tracing
from fly_trace.session.decorators import HostFunction
from fly_trace.signatures.signature import Constant, ParameterType, parameters_of, parse

from fly.call import arguments as reading
from fly.call.compiled import Compiled
from fly.call.function import JitFunction
from fly.call.host_options import CompileOptions
from fly.call.reports.tracebacks import hide_frames
from fly.tune.callers import Callers
from fly.tune.config import Config, Setting
from fly.tune.devices import device_name
from fly.tune.key import Case, KeyReader
from fly.tune.library import Library
from fly.tune.measurement import Arguments
from fly.tune.plan import OFF, REPORT, VARIABLE, Plan, mode
from fly.tune.sweep import Candidate, Swept, none_usable, sweep

# The variables that decide about a call of a known kind, and those that say where winners are, too.
DECIDING = (VARIABLE, choice.TARGET)
VARIABLES = (*DECIDING, choice.BACKEND, "FLY_CACHE", "FLY_CACHE_DIR")
MOST_KNOWN = 4096  # kinds of calls that a function remembers the configuration of

Given = dict[str, Any]  # the arguments of a call by name


class _State:
    """What changes between calls: in slots, because the attributes of a function that another one
    calls are part of that one's dependencies."""

    __slots__ = (
        *("plan", "library", "_reader", "_quick", "_known", "_callers", "_busy"),
        *("_environment", "_seen"),
    )


class TunedFunction(_State, HostFunction):
    """Call it like the function that it decorates, without the parameters that configurations set.
    Without tuning it uses a winner that is known, or else the default configuration.

    `jit` is the `@fly.jit` function itself; `configs` are the configurations.
    """

    constants: dict[str, Any]  # type: ignore[misc]

    def __init__(self, plan: Plan) -> None:
        jit = plan.jit
        plain: Any = jit.function
        super().__init__(plain, jit.name, jit.options)
        self.plan, self.library = plan, Library(plan)
        self._reader = KeyReader(jit.function, self.parameters, plan.key, DECIDING)
        self._quick = self._reader.quick
        self._callers = Callers(plan, self._reader.parameters)
        self._known: dict[tuple[Any, ...], Callable[..., Any]] = {}  # by keys of `_quick`
        self._busy = threading.RLock()  # held during a sweep
        self._environment: Callable[[], Snapshot] = watcher(*VARIABLES)
        self._seen: Snapshot = ()
        # For fly-trace, and for functions that call this one while they are traced: it is part of
        # their dependencies.
        self.constants = dict(plan.fallback.constants)

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
        every = parameters_of(self.jit.function)
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
        setting = self._select(given) if mode() == OFF else self._tuned(given)
        if not named:
            self._remember(arguments, setting)
        return self._callers.variant(setting)(**given, **setting.constants)

    def tune(self, *arguments: Any, **named: Any) -> Config:
        """Measures the configurations for a call with these arguments, keeps the winner, and
        returns it. Nothing that was measured before is measured again. The function is not called:
        the arguments stay as they are.

        InputError, with all reasons, if no configuration can be used.
        """
        return self._guarded(lambda given: self._tuned(given).config, arguments, named)

    def best(self, *arguments: Any, **named: Any) -> Config:
        """The configuration that a call with these arguments uses, without tuning."""
        return self._guarded(lambda given: self._select(given).config, arguments, named)

    def report(self, *arguments: Any, **named: Any) -> str:
        """A table of all configurations with their costs, the best first. Measures what is not
        known yet, as `tune` does, but keeps no winner."""
        from fly.tune.report import text

        return self._guarded(lambda given: text(self.name, self._swept(given)), arguments, named)

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes the winners that are known to `path`, or to the file beside the function's module,
        which is used wherever that module is. Returns the path.

        UsageError if there are none; MissingError if the file can't be written.
        """
        self._refresh()
        return self.library.save(None if path is None else os.fspath(path))

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

        def made(given: Given) -> Compiled:
            setting = self._select(given, target)
            variant = self._callers.variant(setting)
            return variant.compile(**given, **setting.constants, target=target, backend=backend)

        if arguments or (named and signature is None):
            return self._guarded(made, arguments, named)
        try:
            return self._compiled(parse(signature or ""), target, backend)
        except FlyError as error:
            hide_frames(error)
            raise error

    def compile_types(self, types: Mapping[str, ParameterType]) -> Compiled:
        """The code of the default configuration for arguments of these types."""
        return self._compiled(types)

    def prepare(self, *arguments: Any, **named: Any) -> Callable[[], Any]:
        """See `JitFunction.prepare`, for the configuration that `best` returns."""

        def made(given: Given) -> Callable[[], Any]:
            setting = self._select(given)
            return self._callers.variant(setting).prepare(**given, **setting.constants)

        return self._guarded(made, arguments, named)

    def _guarded(
        self, work: Callable[[Given], Any], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        try:
            self._refresh()
            return work(self._bound(arguments, named))
        except FlyError as error:
            hide_frames(error)
            raise error

    def _refresh(self) -> None:
        """Has files read again if the environment has changed, which says where they are."""
        now = self._environment()
        if now != self._seen:
            self.library.forget()
            self._seen = now

    def _bound(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Given:
        """The arguments by name. UsageError for a parameter that configurations set, and for
        missing ones."""
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

    def _case(self, given: Given) -> Case:
        types, viewed = reading.read(self.function, (), {**given, **self.plan.fallback.constants})
        types = {name: kind for name, kind in types.items() if name not in self.plan.configured}
        key, dtypes = self._reader.read(types, given, viewed)
        chain = self.jit.chain
        return Case(key, dtypes, chain.target, device_name(self.jit, chain, viewed.values()))

    # -- without measuring

    def _select(self, given: Given, target: str | None = None) -> Setting:
        """The configuration of a known winner, else the default, else the first that compiles."""
        case = self._case(given)
        if target is not None:
            case = replace(case, target=target, device="")  # the winner of any device
        if (found := self.library.find(case)) is not None:
            return found
        if self.plan.default is not None or len(self.plan.settings) == 1:
            return self.plan.fallback
        return self._first_usable(given, target)

    def _first_usable(self, given: Given, target: str | None) -> Setting:
        refused: list[tuple[Config, FlyError]] = []
        for setting in self.plan.settings:
            types, _ = reading.read(self.function, (), {**given, **setting.constants})
            try:
                self._callers.variant(setting).compile_types(types, target)
                return setting
            except MissingError:
                raise
            except FlyError as error:
                refused.append((setting.config, error))
        raise none_usable(refused)

    def _compiled(
        self,
        types: Mapping[str, ParameterType],
        target: str | None = None,
        backend: str | None = None,
    ) -> Compiled:
        """The code of the default configuration."""
        setting = self.plan.fallback
        constants = {name: Constant(value) for name, value in setting.constants.items()}
        variant = self._callers.variant(setting)
        return variant.compile_types({**types, **constants}, target, backend)

    def _remember(self, arguments: tuple[Any, ...], setting: Setting) -> None:
        """Has later calls like this one find their configuration at once."""
        try:
            key = self._quick(*arguments)
            hash(key)
        except Exception:  # it has no key without a closer look, as for `from_dlpack`
            return
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[key] = self._callers.caller(setting)

    # -- by measuring

    def _tuned(self, given: Given) -> Setting:
        swept = self._swept(given)
        setting, winner = swept.winner()
        self.library.add(winner)
        self._known.clear()
        if mode() == REPORT:
            from fly.tune.report import text

            print(text(self.name, swept), file=sys.stderr)
        return setting

    def _swept(self, given: Given) -> Swept:
        with self._busy:
            candidates = [self._candidate(one, given) for one in self._pruned(given)]
            return sweep(self.name, self._case(given), candidates)

    def _candidate(self, setting: Setting, given: Given) -> Candidate:
        named = {**given, **setting.constants}
        types, viewed = reading.read(self.function, (), named)
        originals = reading.Reader(self.function).originals((), named, viewed)
        of_call = Arguments(originals, viewed, self.plan.reset)
        return Candidate(setting, self._callers.variant(setting), types, of_call)

    def _pruned(self, given: Given) -> Sequence[Setting]:
        """The configurations to measure: those that `prune=` leaves."""
        settings = self.plan.settings
        if self.plan.prune is None:
            return settings
        configs = self.configs
        kept = self.plan.prune(list(configs), dict(given))
        wrong = [one for one in kept if one not in configs] if isinstance(kept, Sequence) else []
        if not isinstance(kept, Sequence) or not kept or wrong:
            raise UsageError(
                f"prune= of {self.name} returned {quoted(wrong or kept)}",
                hint="it must return some of the configurations that it is given",
            )
        return [one for one in settings if one.config in kept]
