"""@fly.jit: a host function that compiles itself when it is called, and runs.

A call goes through these steps: arguments → signature → code object (cached in this process, in the
store, or made by tracing and running the chain) → binding of the arguments → launch on the device.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Unpack, overload

from fly_backend import choice
from fly_common import cuda_toolkit, toolchain
from fly_common.environment import Snapshot, watcher
from fly_common.errors import FlyError, UsageError
from fly_common.options import KEYWORDS
from fly_common.quoting import quoted
from fly_store.store import default_store, key_of
from fly_trace.core import tracing
from fly_trace.session.decorators import HostFunction

from fly.call.compiled import Compiled
from fly.call.host_options import VARIABLE, CompileOptions, checked
from fly.call.tracebacks import hide_frames
from fly.chains import tuning
from fly.chains.chain import Chain, Prefetch, chain, run
from fly.chains.tuning import Keywords, Tuning
from fly.dependencies.hashing import DependencyHash, dependency_hash

if TYPE_CHECKING:
    from fly_trace.signatures.signature import ParameterType

    from fly.call.arguments import Reader
    from fly.call.native_calls import NativeCalls

# Seconds between two checks of LLVM's programs and library: checking the file system would dominate
# the cost of a call. Files that the user names are checked at each call.
LOOK_AFTER = 1.0

# The maximum number of code objects kept in memory for one function; the oldest is dropped.
MOST_KEPT = 256

# The first line of a module that was traced for one target.
_TARGET_NAMED = re.compile(rb'module attributes \{[^\n]*\bfly\.target = "(\w+)"')


# What `_chain` and the search for programs read.
VARIABLES = (
    VARIABLE,
    choice.BACKEND,
    choice.TARGET,
    *(row.variable for row in KEYWORDS.values()),
    *toolchain.VARIABLES,
    cuda_toolkit.VARIABLE,
)
_environment = watcher(*VARIABLES)


@dataclass(eq=False)
class _Calls:
    """The state behind a function's fast path, valid as long as nothing that its code depends on
    changes. `dependencies` and `environment` are compared at each call. The chain's identity is
    compared every LOOK_AFTER seconds, or at each call if the chain is not settled. `made` maps keys
    of `reader` to code made by a chain of this `identity`, which is None until there is code."""

    dependencies: DependencyHash
    environment: Snapshot
    chain: Chain
    reader: Reader
    looked: float = 0.0
    identity: tuple[str, ...] | None = None
    made: dict[tuple[Any, ...], Compiled] = field(default_factory=dict)
    native: NativeCalls | None = None

    def hold(self) -> bool:
        """Returns whether nothing has changed."""
        if _environment() != self.environment or not self.dependencies.holds():
            return False
        now = time.monotonic()
        if now - self.looked < LOOK_AFTER and self.chain.settled:
            return True
        self.looked = now
        return self.identity is None or self.chain.identity() == self.identity

    def speed_up(
        self,
        key: tuple[Any, ...],
        compiled: Compiled,
        arguments: tuple[Any, ...],
        device: str,
        host: CompileOptions,
    ) -> Callable[..., Any] | None:
        """Native code for calls of this key, which is not the first; None where there is none."""
        if not self.chain.settled:
            return None  # something has to be looked at in each call
        if self.native is None:
            from fly.call.native_calls import NativeCalls

            self.native = NativeCalls(self.dependencies, self.reader, VARIABLES)
        self.native.add(key, compiled, arguments, device, host)
        self.native.renew(max(0.0, LOOK_AFTER - (time.monotonic() - self.looked)))
        dispatcher = self.native.dispatcher
        return None if dispatcher is None else dispatcher.call

    def keep(self, key: tuple[Any, ...], compiled: Compiled, identity: tuple[str, ...]) -> None:
        """Stores the code compiled for a key."""
        if self.identity is None:
            self.identity, self.looked = identity, time.monotonic()
        if identity == self.identity:
            if len(self.made) >= MOST_KEPT:
                self.made.pop(next(iter(self.made)), None)
            self.made[key] = compiled


@dataclass(eq=False)
class JitFunction(HostFunction):
    """The result of `@fly.jit`. Call it with arrays and numbers; kernels write into the arrays."""

    _kept: dict[Any, Compiled] = field(default_factory=dict, repr=False)
    _dependencies: DependencyHash = field(default=DependencyHash(None), repr=False)
    _calls: _Calls | None = field(default=None, repr=False)
    _native: Callable[..., Any] | None = field(default=None, repr=False)

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
                    if not named and self.host.is_native:
                        host = self.host
                        self._native = calls.speed_up(key, compiled, arguments, device, host)
                    return results
        from fly.call import arguments as reading

        types, viewed = reading.read(self.function, arguments, named)
        compiled, identity = self._compiled(types, calls.chain if calls else self._chain(None))
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

        types, viewed = reading.read(self.function, arguments, named)
        compiled, _ = self._compiled(types, self._chain(None))
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
    def host(self) -> CompileOptions:
        """How the host program runs, as the decorator says."""
        return self.options["host"]

    @property
    def device(self) -> str:
        """What the function runs on, as the decorator says."""
        return self.options["device"]

    def _new_calls(self) -> _Calls | None:
        """Returns None for a function that is traced at each call."""
        from fly.call.arguments import Reader

        environment = _environment()
        found = self._current_dependencies()
        if found.digest is None:
            return None
        return _Calls(found, environment, self._chain(None), Reader(self.function))

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

            given, _ = reading.read(self.function, arguments, named)
        return self._compiled(given, chosen)[0]

    def compile_types(self, types: Mapping[str, ParameterType]) -> Compiled:
        """The code for arguments of these types, where annotations don't say them; see
        `fly.call.arguments.read`."""
        return self._compiled(types, self._chain(None))[0]

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
        chosen = choice.choose(target or self.options["target"], backend or self.options["backend"])
        tuned = tuning.read(self.options["tuning"])
        return _tuned_chain(chosen.target, chosen.backend.name, tuned)

    def _compiled(
        self, given: Mapping[str, ParameterType], chosen: Chain
    ) -> tuple[Compiled, tuple[str, ...]]:
        """Returns the code for these types, and the identity of the chain that made it."""
        reached = self._current_dependencies()
        signature = _digest_of(given)
        known = reached.digest is not None and signature is not None
        module = None
        if not known:
            module = self._trace(given, chosen.target)
            signature = sha256(module).hexdigest()
        what = (reached.digest, signature, chosen.target)
        # If nothing is kept in memory, the identity is computed later, in parallel with tracing,
        # because identifying LLVM may be slow.
        if self._kept:
            identity = chosen.identity()
            if (kept := self._kept.get((*what, identity))) is not None:
                return kept, identity
        with Prefetch(chosen) as prefetch:
            if module is None:
                traced = f"{reached.digest} {signature}"
                module = self._traced(given, chosen.target, traced, prefetch.start)
            identity = chosen.identity()
            data = run(chosen, module, prefetch=prefetch)
        compiled = Compiled(data, module=module, chain=chosen)
        if len(self._kept) >= MOST_KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[*what, identity] = compiled
        return compiled, identity

    def _traced(
        self,
        given: Mapping[str, ParameterType],
        target: str,
        what: str,
        working: Callable[[], None],
    ) -> bytes:
        """Returns the module from the store, or calls `working` and traces it. The module is not
        stored if a dependency changed in the meantime, such as the function's file."""
        from fly_trace import fingerprint

        digest = self._dependencies.digest

        def trace() -> bytes:
            working()
            return self._trace(given, target)

        def obtain(what: str) -> bytes:
            return default_store().obtain(
                key_of(f"trace {fingerprint()}", what.encode()),
                trace,
                label="trace",
                suffix=".mlir",
                valid=lambda: dependency_hash(self.function).digest == digest,
            )

        # One trace serves all targets unless the program queries its target. Then the module names
        # the target, and each further target has its own trace.
        module = obtain(what)
        named = _TARGET_NAMED.match(module)
        if named and named[1].decode() != target:
            module = obtain(f"{what} {target}")
        return module

    def _trace(self, given: Mapping[str, ParameterType], target: str) -> bytes:
        from fly_trace.session.trace import trace_function

        return trace_function(self, given, target=target).encode()


@overload
def jit(function: Callable[..., Any], /) -> JitFunction: ...
@overload
def jit(
    *,
    target: str | None = None,
    backend: str | None = None,
    chain: Chain | None = None,
    device: str = "auto",
    options: CompileOptions | None = None,
    arch: str | None = None,
    chip: str | None = None,
    **keywords: Unpack[Keywords],
) -> Callable[[Callable[..., Any]], JitFunction]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    target: str | None = None,
    backend: str | None = None,
    chain: Chain | None = None,
    device: str = "auto",
    options: CompileOptions | None = None,
    arch: str | None = None,
    chip: str | None = None,
    **keywords: Unpack[Keywords],
) -> Any:
    """Compiles a host function when it is called with arrays, and launches its kernels.

    `target` is the GPU to compile for; else `FLY_TARGET`, else the backend's default. `arch` and
    `chip` are other names of it. `backend` compiles for it; else `FLY_BACKEND`, else the target's
    own. Both are looked up when the function is compiled. `device` runs it: "auto", "emulator",
    "hip", "cuda:1", … (docs/devices.md). `options` say how the host function runs. The other
    keywords are what LLVM does: see `fly.chains.tuning.Tuning`; each has an environment variable
    that says it for functions whose decorator does not. `chain` replaces all of that.
    """
    tuned = tuning.check(keywords)
    target = choice.aliased(target, arch, chip)
    if chain is not None and backend is not None:
        raise UsageError(
            "chain= and backend= contradict each other", hint="use fly.chain(backend=…)"
        )
    if chain is not None and tuned:
        raise UsageError(
            f"chain= and {', '.join(tuned)} contradict each other",
            hint="set these options in the chain's stages: fly.chain(opt=…, llc=…)",
        )
    if chain is not None and target not in (None, chain.target):
        raise UsageError(f"target={quoted(target)} contradicts the chain's target, {chain.target}")
    settings = {
        "target": target,
        "backend": backend,
        "chain": chain,
        "tuning": tuned,
        "device": device,
    }
    settings["host"] = checked(options)

    def make(plain: Any) -> JitFunction:
        from types import FunctionType

        if not isinstance(plain, FunctionType):
            raise UsageError(f"@fly.jit decorates a function, not a {type(plain).__name__}")
        return JitFunction(plain, plain.__name__, dict(settings))

    return make if function is None else make(function)


@functools.lru_cache(maxsize=64)
def _tuned_chain(target: str, backend: str, chosen: Tuning) -> Chain:
    return chain(target, backend=backend, opt=chosen.opt_words(), llc=chosen.llc_fields())


def _digest_of(given: Mapping[str, ParameterType]) -> str | None:
    """Returns the types as text, or None if a constant has no digest."""
    if not given:
        return ""
    from fly_trace.signatures.signature import Constant

    parts = []
    for name, kind in sorted(given.items()):
        # Different constants may print the same text.
        text = dependency_hash(kind.value).digest if isinstance(kind, Constant) else str(kind)
        if text is None:
            return None
        parts.append(f"{name}: {text}")
    return ", ".join(parts)
