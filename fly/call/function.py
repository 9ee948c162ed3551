"""@fly.jit: a host function that compiles itself when it is called, and runs.

A call goes through these steps: arguments → signature → code object (cached in this process, in the
store, or made by tracing and running the chain) → binding of the arguments → launch on the device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from fly_backend import choice
from fly_common import collector
from fly_common.environment import watcher
from fly_common.errors import FlyError, UsageError
from fly_common.programs.prefetch import postpone, postponing
from fly_common.quoting import quoted
from fly_common.record import field, record
from fly_dialect.handover import between_stages
from fly_plugin import activated, requested
from fly_store.store import default_store, key_of
from fly_trace.core import tracing
from fly_trace.session.decorators import HostFunction

from fly.call.compiled import Compiled
from fly.call.host_options import CompileOptions
from fly.call.known_calls import MOST_KEPT, VARIABLES, KnownCalls, environment_now
from fly.call.reports import compile_reports
from fly.call.reports.tracebacks import hide_frames
from fly.call.specialisation import Shapes
from fly.chains import tuning
from fly.chains.chain import Chain, Prefetch, kept_tuned_chain, tuned_chain
from fly.chains.tuning import Tuning
from fly.dependencies.hashing import DependencyHash, dependency_hash

if TYPE_CHECKING:
    from fly_trace.signatures.signature import ParameterType


# The first line of a module that was traced for one target.
_TARGET_NAMED = re.compile(rb'module attributes \{[^\n]*\bfly\.target = "(\w+)"')


class _Fast:
    """What each call reads first, in a slot: a dictionary of attributes costs 50 ns of 400."""

    __slots__ = ("_native",)


@record(frozen=False, eq=False)
class JitFunction(_Fast, HostFunction):
    """The result of `@fly.jit`. Call it with arrays and numbers; kernels write into the arrays."""

    _kept: dict[Any, Compiled] = field(default_factory=dict, repr=False)
    _dependencies: DependencyHash = field(default=DependencyHash(None), repr=False)
    _calls: KnownCalls | None = field(default=None, repr=False)
    # With a default value there would be an attribute of the class in the slot's place.
    _native: Callable[..., Any] | None = field(default_factory=lambda: None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = self.options.get("specialize")
        self._shapes = None if wanted is None else Shapes(wanted)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        native = self._native
        if native is not None and not named:
            try:
                result = native(*arguments)
            except FlyError as error:
                hide_frames(error)
                raise error
            if result is not NotImplemented:
                return result
        if tracing.active() is not None:
            return super().__call__(*arguments, **named)
        try:
            return self.run(arguments, named)
        except FlyError as error:
            hide_frames(error)
            raise error

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        calls = self._calls
        if calls is None or not calls.hold():
            self._native = None
            calls = self._calls = self._new_calls()
        key = None
        if calls is not None:
            found = calls.reader.read(arguments, named)
            if found is not None:
                key, viewed = found
                compiled = calls.made.get(key)
                if compiled is not None:
                    given, device = calls.reader.originals(arguments, named, viewed), self.device
                    results = compiled.run_viewed(given, viewed, device, None, self.host).results
                    if not named and self.host.is_native and calls.reader.is_settled(key):
                        host = self.host
                        self._native = calls.speed_up(key, compiled, arguments, device, host)
                    return results
        from fly.call import arguments as reading

        chosen = calls.chain if calls is not None else self._chain(None)
        compiled, identity, viewed = self._compiled_for(arguments, named, chosen)
        # What was compiled while the function changed is not what `calls` stands for.
        if key is not None and calls is not None and calls.dependencies is self._dependencies:
            calls.keep(key, compiled, identity)
        reader = calls.reader if calls is not None else reading.Reader(self.function)
        given = reader.originals(arguments, named, viewed)
        return compiled.run_viewed(given, viewed, self.device, None, self.host).results

    def prepare(self, *arguments: Any, **named: Any) -> Callable[[], Any]:
        """A callable that launches what this call would launch, with the same arguments each time:
        it checks and computes nothing any more. It returns what the call would return; tensors that
        the host function creates are created once, here.

        For loops that repeat one step on the same memory, as CUDA graphs are used. What the arrays
        hold may change between the calls, their shapes may not.
        """
        try:
            return self._prepare(arguments, named)
        except FlyError as error:
            hide_frames(error)
            raise error

    def _prepare(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Callable[[], Any]:
        from fly_host.native.unavailable import Unavailable

        from fly.call import arguments as reading

        compiled, _, viewed = self._compiled_for(arguments, named, self._chain(None))
        given = reading.Reader(self.function).originals(arguments, named, viewed)
        compiled.check(given, viewed)
        try:
            names = [name for name in compiled.parameter_names if name in given]
            some = [given[name] for name in names]
            handle = compiled.native(some, self.device, self.host).prepare(*some)
        except Unavailable:
            handle = NotImplemented
        if handle is not NotImplemented:
            return handle
        return lambda: compiled.run_viewed(given, viewed, self.device, None, self.host).results

    @property
    def trace_words(self) -> str:
        """What the trace depends on besides the function and its arguments' types."""
        return ""

    @property
    def host(self) -> CompileOptions:
        """How the host program runs, as the decorator says."""
        return self.options["host"]

    @property
    def device(self) -> str:
        """What the function runs on, as the decorator says."""
        return self.options["device"]

    def _new_calls(self) -> KnownCalls | None:
        """Returns None for a function that is traced at each call."""
        from fly.call.arguments import Reader

        environment = environment_now()
        found = self._current_dependencies()
        if found.digest is None:
            return None
        chosen = self._chain(None)
        if variables := chosen.variables():
            # Read before the chain is made, as the others.
            environment = watcher(*VARIABLES, *variables)()
            chosen = self._chain(None)
        reader = Reader(self.function, self._shapes_for(chosen))
        return KnownCalls(found, environment, chosen, reader, variables=variables)

    def _compiled_for(
        self, arguments: tuple[Any, ...], named: dict[str, Any], chosen: Chain
    ) -> tuple[Compiled, tuple[str, ...], dict[str, Any]]:
        """A call's code, the identity of the chain that made it, and the arguments' values."""
        from fly.call import arguments as reading

        reading.check_missing(self.function, arguments, named)
        types, viewed = reading.read(self.function, arguments, named, self._shapes_for(chosen))
        return *self._compiled(types, chosen), viewed

    def _shapes_for(self, chosen: Chain) -> Shapes | None:
        """What code that this chain makes is specialized for."""
        shapes = self._shapes
        return shapes if shapes is not None and shapes.active(chosen.target) else None

    def _current_dependencies(self) -> DependencyHash:
        """Returns the function's dependencies, hashed again if they changed."""
        if not self._dependencies.holds():
            self._dependencies = dependency_hash(self.function)
        return self._dependencies

    def compile(
        self,
        *arguments: Any,
        signature: str | None = None,
        target: str | None = None,
        backend: str | None = None,
        **named: Any,
    ) -> Compiled:
        """Returns the code for these arguments, without running it. Arguments that annotations
        fully describe may be omitted. `signature` describes others as `fly-trace --sig` does, for
        example "A: f32[?,?], n: i32"."""
        try:
            return self._compile(arguments, named, signature, self._chain(target, backend))
        except FlyError as error:
            hide_frames(error)
            raise error

    def _compile(
        self,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        signature: str | None,
        chosen: Chain,
    ) -> Compiled:
        given: Mapping[str, ParameterType] = {}
        if signature is not None:
            from fly_trace.signatures.signature import parse

            if arguments or named:
                raise UsageError(f"{self.name}.compile takes arguments or a signature, not both")
            given = parse(signature)
        elif arguments or named:
            from fly.call import arguments as reading

            given, _ = reading.read(self.function, arguments, named, self._shapes_for(chosen))
        return self._compiled(given, chosen)[0]

    def compile_types(
        self,
        types: Mapping[str, ParameterType],
        target: str | None = None,
        backend: str | None = None,
    ) -> Compiled:
        """The code for arguments of these types, where annotations don't say them; see
        `fly.call.arguments.read`."""
        return self._compiled(types, self._chain(target, backend))[0]

    def traced(self, types: Mapping[str, ParameterType]) -> tuple[bytes, Chain]:
        """The module for arguments of these types, and the chain that compiles it."""
        chosen = self._chain(None)
        from fly.call.arguments import digest_of

        reached, signature = self._current_dependencies(), digest_of(types)
        if reached.digest is None or signature is None:
            return self._traced_for(types, chosen), chosen
        what = f"{reached.digest} {signature}"
        return self._traced(types, chosen, what, lambda: None), chosen

    @property
    def chain(self) -> Chain:
        """The chain that compiles the function now."""
        return self._chain(None)

    @property
    def digest(self) -> str | None:
        """The digest of all that the function depends on; None if something can't be followed."""
        return self._current_dependencies().digest

    def with_options(self, changed: Mapping[str, Any]) -> JitFunction:
        """The same function with other options of LLVM: those that are given replace its own."""
        own: Chain | None = self.options["chain"]
        if own is not None and changed:
            raise UsageError(
                f"{self.name} has its own chain, so {', '.join(changed)} can't be set",
                hint="set these options in the chain's stages: fly.chain(opt=…, llc=…)",
            )
        tuned = {**self.options["tuning"], **tuning.check(changed)}
        plain: Any = self.function
        return JitFunction(plain, self.name, {**self.options, "tuning": tuned})

    def recipe(self) -> dict[str, Any] | None:
        """The arguments of `fly.chain` that make the function's chain in another process; None if
        only this process can make it."""
        if self.options["chain"] is not None or self.options.get("plugins"):
            return None
        target, backend, chosen = self._choice(None, None)
        return {
            "target": target,
            "backend": backend,
            "opt": chosen.opt_words(),
            "opt_py": chosen.opt_py_fields(),
            "llc": chosen.llc_fields(),
        }

    def _chain(self, target: str | None, backend: str | None = None) -> Chain:
        own: Chain | None = self.options["chain"]
        if own is not None:
            if target not in (None, own.target):
                raise UsageError(
                    f"{self.name} has its own chain, for {own.target}, and can't be compiled for"
                    f" {target}",
                    hint=f"give it chain=fly.chain(target={quoted(target)})",
                )
            return own
        plugins = self.options.get("plugins", ())
        if not plugins and not requested():
            return kept_tuned_chain(*self._choice(target, backend))
        from fly.chains.plugins import with_plugins

        return with_plugins(plugins, lambda: tuned_chain(*self._choice(target, backend)))

    def _choice(self, target: str | None, backend: str | None) -> tuple[str, str, Tuning]:
        """Returns the target, the backend and the tuning."""
        chosen = choice.choose(target or self.options["target"], backend or self.options["backend"])
        return chosen.target, chosen.backend.name, tuning.read(self.options["tuning"])

    def _compiled(
        self, given: Mapping[str, ParameterType], chosen: Chain
    ) -> tuple[Compiled, tuple[str, ...]]:
        """Returns the code for these types, and the identity of the chain that made it."""
        from fly.call.arguments import digest_of

        reached = self._current_dependencies()
        signature = digest_of(given)
        known = reached.digest is not None and signature is not None
        module = None
        if not known:
            module = self._traced_for(given, chosen)
            signature = sha256(module).hexdigest()
        what = (reached.digest, signature, chosen.target, chosen.trace_identity(), self.trace_words)
        # If nothing is kept in memory, the identity is computed later, in parallel with tracing,
        # because identifying LLVM may be slow.
        if self._kept:
            identity = chosen.identity()
            if (kept := self._kept.get((*what, identity))) is not None:
                return kept, identity
        with collector.paused(), postponing(), between_stages(), Prefetch(chosen) as prefetch:
            if module is None:
                traced = f"{reached.digest} {signature}{self.trace_words}"
                module = self._traced(given, chosen, traced, prefetch.start)
            identity = chosen.identity()
            postpone(collector.collect_young)
            compiled = self._built(chosen, module, prefetch)
        if len(self._kept) >= MOST_KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[*what, identity] = compiled
        return compiled, identity

    def _built(self, chosen: Chain, module: bytes, prefetch: Prefetch) -> Compiled:
        """The code of a traced module."""
        data = compile_reports.compile(chosen, module, prefetch)
        return Compiled(data, module=module, chain=chosen)

    def _traced(
        self,
        given: Mapping[str, ParameterType],
        chosen: Chain,
        what: str,
        working: Callable[[], None],
    ) -> bytes:
        """Returns the module from the store, or calls `working` and traces it. The module is not
        stored if a dependency changed in the meantime, such as the function's file."""
        from fly_trace import fingerprint

        reached = self._dependencies

        def trace() -> bytes:
            working()
            return self._traced_for(given, chosen)

        made_by = f"trace {fingerprint()}{chosen.trace_identity()}"

        def obtain(what: str) -> bytes:
            return default_store().obtain(
                key_of(made_by, what.encode()),
                trace,
                label="trace",
                suffix=".mlir",
                valid=reached.holds_on_disk,
            )

        # One trace serves all targets unless the program queries its target. Then the module names
        # the target, and each further target has its own trace.
        module = obtain(what)
        named = _TARGET_NAMED.match(module)
        if named and named[1].decode() != chosen.target:
            module = obtain(f"{what} {chosen.target}")
        return module

    def _traced_for(self, given: Mapping[str, ParameterType], chosen: Chain) -> bytes:
        with activated(chosen.plugins):
            return self._trace(given, chosen.target)

    def _trace(self, given: Mapping[str, ParameterType], target: str) -> bytes:
        from fly_trace.session.trace import trace_function

        return trace_function(self, given, target=target).encode()
