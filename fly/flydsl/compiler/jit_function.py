"""`flydsl.compiler.jit_function`: host functions, and handles of compiled ones."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from fly_common.errors import FlyError, UsageError
from fly_common.record import field, record
from fly_trace.core import tracing
from fly_trace.memory.structs import Record
from fly_trace.session.raised import Raised
from fly_trace.signatures.annotations import Stream
from fly_trace.signatures.signature import Constant, ScalarType
from fly_trace.values.dtypes import I64
from fly_trace.values.scalars import Scalar

from fly.call import arguments as reading
from fly.call.arrays.views import is_array
from fly.call.compiled import Compiled
from fly.call.function import JitFunction
from fly.call.host_options import DEFAULT
from fly.call.reports.tracebacks import hide_frames
from fly.chains import tuning
from fly.flydsl.compiler import hints, variables
from fly.flydsl.compiler.artifacts import CompiledArtifact, MlirCompiler, through
from fly.flydsl.compiler.jit_argument import DynamicArray, JitArgumentRegistry, PointerArgument
from fly.flydsl.numbers.operators import NUMBERS, FlyDSLCallError, FlyDSLNumbers
from fly.flydsl.runtime.device import get_rocm_arch
from fly.flydsl.utils import env

if TYPE_CHECKING:
    from fly.chains.chain import Chain, Prefetch

__all__ = ["CompiledFunction", "MlirCompiler", "compile", "jit"]


@functools.cache
def _flydsl_key() -> str:
    """Identifies this package: a part of the key of each trace."""
    from fly_store import identity

    return identity.sources("fly.flydsl")


@record(frozen=False, eq=False)
class Variant(JitFunction):
    """A host function for one target and one set of hints."""

    rules: Any = NUMBERS
    words: str = ""
    is_method: bool = False
    last: Any = None

    @property
    def trace_words(self) -> str:
        return f" flydsl {self.words} {_flydsl_key()}"

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        from fly.call.arrays.array_kinds import arrays_for
        from fly.flydsl.runtime.addresses import accessible

        try:
            given, types, viewed, addresses = self.read(arguments, named)
        except UsageError as error:
            raise FlyDSLCallError.of(error) from None
        compiled = self.artifact(types, self._chain(None)).compiled
        if env.compile.compile_only or compiled is None:
            return None
        if not isinstance(compiled, Compiled):
            raise UsageError(
                f"MlirCompiler.compile has been replaced, and made no code of {self.name}",
                hint="set COMPILE_ONLY=1 to compile only",
            )
        from fly_run.launch import readers
        from fly_run.launch.execution import run

        program = compiled.program
        assert program is not None, "it was made here"
        arrays, reader = arrays_for(given.values()), readers.choose(self.host.reader)

        held = [one for one in viewed.values() if hasattr(one, "ctypes")]
        held += [one for one in given.values() if hasattr(one, "untyped_storage")]

        def work(opened: Any, image: Any) -> Any:
            with opened.turn, accessible(opened.device, addresses, held) as device:
                module = opened.module(image)
                return run(program, image, module, device, given, viewed, arrays, reader)

        return compiled.on_device(work, viewed.values(), self.device).results

    def read(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], list[int]]:
        """Returns arguments by name as they were given and as they are viewed, the types of those
        that annotations leave open, and addresses of memory among them."""
        parameters = reading.signature.parameters_of(self.function)
        values = reading.by_name(self.name, parameters, arguments, named)
        for name, parameter in parameters.items():
            has_value = name in values or parameter.default is not parameter.empty
            if not has_value and parameter.annotation is not Stream:
                raise UsageError(
                    f"{self.name} is missing the argument {name}",
                    hint=f"its parameters are {', '.join(parameters)}",
                )
        # Of a method, the object is known while tracing.
        owned = next(iter(parameters), None) if self.is_method else None
        pointers: dict[str, PointerArgument] = {}
        records: dict[str, Constant] = {}
        plain: dict[str, Any] = {}
        for name, value in values.items():
            value = JitArgumentRegistry.converted(value)
            if isinstance(value, Scalar) and value.number is not None:
                value = value.number
            if isinstance(value, PointerArgument):
                pointers[name] = value
                continue
            if isinstance(value, Record):
                records[name] = Constant(value)
                continue
            if name == owned and not is_array(value):
                records[name] = Constant(value)
                continue
            if is_array(value):
                value = DynamicArray(value, name)
            plain[name] = value
        types, viewed = reading.read(self.function, (), plain)
        types |= records
        given = reading.originals(self.function, parameters, (), plain, viewed)
        for name, one in pointers.items():
            types[name] = one.type
            viewed[name] = given[name] = one.address
        wide = {name: kind for name, kind in types.items() if isinstance(kind, ScalarType)}
        addresses = [one.address for one in pointers.values()]
        addresses += [
            value
            for name, value in viewed.items()
            if type(value) is int
            and value > 1 << 31
            and (name in wide or parameters[name].annotation is I64)
        ]
        return given, types, viewed, addresses

    def artifact(self, types: Mapping[str, Any], chosen: Chain) -> CompiledArtifact:
        """What is made for these types, which becomes the last one that was."""
        with variables.applied():
            made: Any = self._compiled(types, chosen)
        self.last = made[1], made[0]
        return made[0]

    def _built(self, chosen: Chain, module: bytes, prefetch: Prefetch) -> Any:
        if self._is_idle(module):
            return CompiledArtifact(None, module)
        with through(chosen, prefetch):
            made = MlirCompiler.compile(module, arch=chosen.target, func_name=self.name)
        return CompiledArtifact(made, module)

    def _is_idle(self, module: bytes) -> bool:
        """Whether a function launches nothing, calls nothing and returns nothing."""
        return not re.search(rb"\bgpu\.func\b|\bfly\.call\b|\bfly\.results\b", module)

    def _traced(
        self, given: Mapping[str, Any], chosen: Chain, what: str, working: Callable[[], None]
    ) -> bytes:
        if env.runtime.enable_cache:
            return super()._traced(given, chosen, what, working)
        working()
        return self._traced_for(given, chosen)

    def _compile(
        self, arguments: tuple[Any, ...], named: dict[str, Any], signature: str | None, chosen: Any
    ) -> Any:
        if signature is not None or (not arguments and not named):
            made: Any = super()._compile(arguments, named, signature, chosen)
            return made.compiled
        _, types, _, _ = self.read(arguments, named)
        return self.artifact(types, chosen).compiled


@record(frozen=False, eq=False)
class FlyDSLFunction(JitFunction):
    """The result of `@flyc.jit`. It is compiled for the target and the hints of each call."""

    rules: Any = NUMBERS
    compile_hints: dict[str, Any] = field(default_factory=dict)
    is_method: bool = False
    _variants: dict[Any, Variant] = field(default_factory=dict, repr=False)
    # The key and the CompiledArtifact of the last call, and all artifacts by their keys.
    _last_compiled: Any = None
    _mem_cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.is_method = True

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """As an attribute of an object: its first parameter is the object."""
        if owner is None:
            return self
        return functools.partial(self, owner)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if tracing.active() is not None:
            return super().__call__(*arguments, **named)
        try:
            chosen = self.variant()
            result = chosen.run(arguments, named)
            self._last_compiled = chosen.last
            return result
        except Raised as error:
            raise _own(error) from None
        except FlyError as error:
            hide_frames(error)
            raise error

    @property
    def _call_state_cache(self) -> dict[Any, Any]:
        """What calls are prepared with: a call of each kind reads the artifacts themselves."""
        return self._mem_cache

    @property
    def func(self) -> Any:
        """The function that was decorated."""
        return self.function

    def variant(self) -> Variant:
        """The function for the current target and hints."""
        given = hints.merged(self.compile_hints, hints.current())
        chosen, target, set_now = hints.read(given), get_rocm_arch(), variables.given()
        is_free = env.compile.compile_only
        key = chosen, target, set_now, is_free
        found = self._variants.get(key)
        if found is None:
            options = dict(self.options)
            own = {**tuning.check(variables.options(set_now)), **options["tuning"]}
            extra = {"llc_options": [*own.get("llc_options", ()), *chosen.options]}
            options["tuning"] = {**own, **tuning.check(extra)} if chosen.options else own
            options["target"] = target
            found = Variant(self.function, self.name, options)  # type: ignore[arg-type]
            found.rules = FlyDSLNumbers(
                chosen.fastmath, chosen.waves_per_eu, chosen.registers, is_free
            )
            found.words = f"{target} {chosen.text} {is_free}"
            found._kept, found.is_method = self._mem_cache, self.is_method
            self._variants[key] = found
        return found

    def compile(self, *arguments: Any, signature: str | None = None, **named: Any) -> Any:
        """The code for these arguments (`fly.call.compiled.Compiled`), without running it."""
        return self.variant().compile(*arguments, signature=signature, **named)


def _own(error: Raised) -> Raised:
    """The error of an exception of the program that has ended a trace, of the exception's class
    too: the program may catch it, and it names the line."""
    found = error.__cause__
    hide_frames(error)
    kind = None if found is None else _raised_as(type(found))
    if kind is None:
        return error
    made = kind.__new__(kind)
    made.__dict__.update({**vars(found), **vars(error)})
    made.args = error.args
    return made


@functools.cache
def _raised_as(kind: type[BaseException]) -> type[Raised] | None:
    """The class of errors that are exceptions of a class; None if there can be none."""
    if issubclass(Raised, kind):
        return None
    try:
        return type(kind.__name__, (Raised, kind), {"__module__": kind.__module__})
    except TypeError:
        return None


def jit(function: Any = None, **keywords: Any) -> Any:
    """Makes a function a host function. The keywords are those of FlyDSL's pull request 613, and of
    `fly.jit`."""

    def make(plain: Any) -> FlyDSLFunction:
        if not isinstance(plain, FunctionType):
            raise UsageError(f"@flyc.jit decorates a function, not a {type(plain).__name__}")
        options = {
            "target": None,
            "backend": None,
            "chain": None,
            "device": "auto",
            "host": DEFAULT,
            "tuning": tuned,
        }
        return FlyDSLFunction(plain, plain.__name__, options)

    tuned = tuning.check(_renamed(keywords))
    return make if function is None else make(function)


def _renamed(keywords: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in keywords.items():
        if value is None:
            continue
        keyword = variables.PASSES.get(name)
        if keyword is None:
            made[name] = value
        elif name in variables.CONVERSIONS:
            words = variables.CONVERSIONS[name](_listed(value))
            made[keyword] = [*made.get(keyword, ()), *words]
        else:
            made[keyword] = value
    return made


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)


class CompiledFunction:
    """A handle of `flyc.compile`: called with positional arguments like those it was made with."""

    def __init__(self, function: FlyDSLFunction, given: Mapping[str, Any]):
        self._function, self._hints = function, dict(given)
        self._artifact: CompiledArtifact = function._last_compiled[1]

    def __call__(self, *arguments: Any) -> Any:
        with hints.using(self._hints):
            return self._function(*arguments)

    def export_to_c(self, file_path: str, file_name: str, function_prefix: str = "") -> None:
        """Writes FILE_NAME.so, a library for C programs with this code, and its header FILE_NAME.h
        to a folder. The functions are those of docs/c-libraries.md, not FlyDSL's."""
        self._artifact.export_to_c(file_path, file_name, function_prefix)


class _Compile:
    """`flyc.compile(function, *arguments)`, `flyc.compile[{"waves_per_eu": 2}](function, …)`."""

    def __init__(self, given: Mapping[str, Any] | None = None):
        self._compile_hints = dict(given or {})

    def __getitem__(self, given: Mapping[str, Any]) -> _Compile:
        if not isinstance(given, Mapping):
            raise TypeError(
                f"flyc.compile[…] expects a dict of compile hints, not a {type(given).__name__}"
            )
        return _Compile(given)

    def __call__(self, function: Any, *arguments: Any) -> Any:
        """Compiles and runs a host function, and returns a handle of it; without arguments, the
        function with these hints."""
        if not isinstance(function, FlyDSLFunction):
            raise TypeError(
                f"flyc.compile() takes a @flyc.jit function, not a {type(function).__name__}"
            )
        if self._compile_hints:
            function.compile_hints = hints.merged(function.compile_hints, self._compile_hints)
        if not arguments:
            return function
        function(*arguments)
        if env.compile.compile_only:
            return None
        return CompiledFunction(function, hints.current())


compile = _Compile()
