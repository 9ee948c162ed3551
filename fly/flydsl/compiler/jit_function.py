"""`flydsl.compiler.jit_function`: host functions, and handles of compiled ones."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from fly_common.errors import FlyError, UsageError
from fly_common.record import field, record
from fly_trace.core import tracing
from fly_trace.memory.structs import Record
from fly_trace.signatures.signature import Constant, ScalarType
from fly_trace.values.dtypes import I64
from fly_trace.values.scalars import Scalar

from fly.call import arguments as reading
from fly.call.arrays import is_array
from fly.call.function import JitFunction
from fly.call.host_options import DEFAULT
from fly.call.tracebacks import hide_frames
from fly.chains import tuning
from fly.flydsl.compiler import hints
from fly.flydsl.compiler.jit_argument import DynamicArray, JitArgumentRegistry, PointerArgument
from fly.flydsl.numbers.operators import NUMBERS, FlyDSLNumbers
from fly.flydsl.runtime.device import get_rocm_arch
from fly.flydsl.utils import env

__all__ = ["CompiledFunction", "compile", "jit"]


@functools.cache
def _fingerprint() -> str:
    from fly_store import identity

    return identity.sources("fly.flydsl")


@record(frozen=False, eq=False)
class Variant(JitFunction):
    """A host function for one target and one set of hints."""

    rules: Any = NUMBERS
    words: str = ""

    @property
    def trace_words(self) -> str:
        return f" flydsl {self.words} {_fingerprint()}"

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        from fly.call.array_kinds import arrays_for
        from fly.flydsl.runtime.addresses import accessible

        given, types, viewed, addresses = self.read(arguments, named)
        compiled, _ = self._compiled(types, self._chain(None))
        if env.compile.compile_only:
            return None
        from fly_run.launch import readers
        from fly_run.launch.execution import run

        program = compiled.program
        assert program is not None, "it was made here"
        arrays, reader = arrays_for(given.values()), readers.choose(self.host.reader)

        held = [one.ctypes.data for one in viewed.values() if hasattr(one, "ctypes")]

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

    def _compile(
        self, arguments: tuple[Any, ...], named: dict[str, Any], signature: str | None, chosen: Any
    ) -> Any:
        if signature is not None or (not arguments and not named):
            return super()._compile(arguments, named, signature, chosen)
        _, types, _, _ = self.read(arguments, named)
        return self._compiled(types, chosen)[0]


@record(frozen=False, eq=False)
class FlyDSLFunction(JitFunction):
    """The result of `@flyc.jit`. It is compiled for the target and the hints of each call."""

    rules: Any = NUMBERS
    compile_hints: dict[str, Any] = field(default_factory=dict)
    owner: Any = None
    _variants: dict[Any, Variant] = field(default_factory=dict, repr=False)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """As an attribute of an object: its first parameter is the object."""
        if owner is None:
            return self
        return functools.partial(_called_as_method, self, owner)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if tracing.active() is not None:
            return super().__call__(*arguments, **named)
        try:
            return self.variant().run(arguments, named)
        except FlyError as error:
            hide_frames(error)
            raise error

    @property
    def func(self) -> Any:
        """The function that was decorated."""
        return self.function

    def variant(self) -> Variant:
        """The function for the current target and hints."""
        given = hints.merged(self.compile_hints, hints.current())
        chosen, target = hints.read(given), get_rocm_arch()
        key = chosen, target
        found = self._variants.get(key)
        if found is None:
            options = dict(self.options)
            own = options["tuning"]
            extra = {"llc_options": [*own.get("llc_options", ()), *chosen.options]}
            options["tuning"] = {**own, **tuning.check(extra)} if chosen.options else own
            options["target"] = target
            found = Variant(self.function, self.name, options)  # type: ignore[arg-type]
            found.rules = FlyDSLNumbers(chosen.fastmath, chosen.waves_per_eu)
            found.words = f"{target} {chosen.text}"
            self._variants[key] = found
        return found

    def compile(self, *arguments: Any, signature: str | None = None, **named: Any) -> Any:
        """The code for these arguments (`fly.call.compiled.Compiled`), without running it."""
        return self.variant().compile(*arguments, signature=signature, **named)


def _called_as_method(function: FlyDSLFunction, owner: Any, *arguments: Any, **named: Any) -> Any:
    if tracing.active() is not None:
        return function(owner, *arguments, **named)
    return function(owner, *arguments, **named)


# The names of FlyDSL's pull request 613 → this project's.
PASSES = {
    "llvm_pass_pipeline": "opt_pipeline",
    "llvm_pass_plugins": "opt_plugins",
    "llvm_codegen_passes": "insert",
    "llvm_codegen_plugins": "llc_options",
}


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
        if name == "llvm_codegen_plugins":
            made["llc_options"] = [f"-load={os.fspath(one)}" for one in _listed(value)]
        elif name in PASSES:
            made[PASSES[name]] = value if name == "llvm_pass_pipeline" else _listed(value)
        else:
            made[name] = value
    return made


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)


class CompiledFunction:
    """A handle of `flyc.compile`: called with positional arguments like those it was made with."""

    def __init__(self, function: FlyDSLFunction, given: Mapping[str, Any]):
        self._function, self._hints = function, dict(given)

    def __call__(self, *arguments: Any) -> Any:
        with hints.using(self._hints):
            return self._function(*arguments)


class _Compile:
    """`flyc.compile(function, *arguments)`, `flyc.compile[{"waves_per_eu": 2}](function, …)`."""

    def __init__(self, given: Mapping[str, Any] | None = None):
        self._hints = dict(given or {})

    def __getitem__(self, given: Mapping[str, Any]) -> _Compile:
        if not isinstance(given, Mapping):
            raise TypeError(
                f"flyc.compile[…] takes a dict of compile hints, not a {type(given).__name__}"
            )
        return _Compile(given)

    def __call__(self, function: Any, *arguments: Any) -> Any:
        """Compiles and runs a host function, and returns a handle of it; without arguments, the
        function with these hints."""
        if not isinstance(function, FlyDSLFunction):
            raise TypeError(
                f"flyc.compile() takes a @flyc.jit function, not a {type(function).__name__}"
            )
        if self._hints:
            function.compile_hints = hints.merged(function.compile_hints, self._hints)
        if not arguments:
            return function
        function(*arguments)
        if env.compile.compile_only:
            return None
        return CompiledFunction(function, hints.current())


compile = _Compile()
