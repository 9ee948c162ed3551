"""Python → MLIR: runs a host function and its kernels once on symbolic values.

The library calls `trace_function`, the command `trace_file`. Both return the module's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from fly_common.errors import InputError
from fly_dialect import dialect as fly
from fly_dialect import spare_context, text
from fly_dialect.bindings import ir
from fly_plugin import active

from fly_trace.control import (
    compile_time,  # noqa: F401  # many kernels use it: a call should not wait for it
    objects,
)
from fly_trace.core.target import Target
from fly_trace.session.decorators import HostFunction
from fly_trace.session.module_trace import ModuleTrace
from fly_trace.signatures.signature import Constant, ParameterType, resolve


def trace_function(
    function: Callable[..., Any] | HostFunction,
    signature: Mapping[str, ParameterType],
    *,
    locations: bool = True,
    name: str | None = None,
    target: str | None = None,
) -> str:
    """Traces a host function, and returns a module with its kernels and itself.

    `signature` maps parameter names to types; annotations and defaults give the others. `locations`
    prints `loc(…)`. `target` is the GPU for programs that query it; only their modules name it.
    Raises InputError at the user's line, or UsageError for `signature` and `target`.
    """
    asked: tuple[str, ...] = ()
    rules = getattr(function, "rules", None)
    if isinstance(function, HostFunction):
        asked = tuple(function.options.get("asks", ()))
        name = name or function.name
        constants = {key: Constant(value) for key, value in function.constants.items()}
        signature = {**constants, **signature}
        function = function.function
    assert isinstance(function, FunctionType)
    types = resolve(function, signature, rules is None or not rules.is_free)
    chosen = Target(target)
    try:
        text = _traced(function, types, name or function.__name__, chosen, locations, asked, rules)
        return _at_end(text) if active() else text
    except objects.ChangedSomewhere as error:
        if not error.is_undone:
            raise
        from fly_trace.control.effect_location import relocate

        again = Target(target)
        name = function.__name__
        relocate(error, lambda: _traced(function, types, name, again, locations, asked, rules))


def _traced(
    function: FunctionType,
    types: Mapping[str, ParameterType],
    name: str,
    chosen: Target,
    locations: bool,
    asked: tuple[str, ...] = (),
    rules: Any = None,
) -> str:
    context = spare_context.take(chosen.chip) or fly.new_context()
    with context, ir.Location.unknown(context):
        module = ModuleTrace(context, name, chosen, rules)
        module.host(function, types)
        if chosen.asked and chosen.chip is not None:
            attributes = module.module.operation.attributes
            attributes["fly.target"] = ir.StringAttr.get(chosen.chip)
        if active() or asked:
            _stamp(module.module.operation, asked)
        try:
            module.module.operation.verify()
        except ir.MLIRError as error:
            raise _invalid(error) from None
        return text.write(module.module, locations)


def _stamp(module: ir.Operation, asked: tuple[str, ...]) -> None:
    """Records the active plugins on the module, and those that the program asks for."""
    from fly_plugin import stamps

    here = {one.id for one in active()}
    made = [*stamps.of_active(), *(name for name in asked if name not in here)]
    module.attributes[stamps.ATTRIBUTE] = ir.ArrayAttr.get(
        [ir.StringAttr.get(stamp) for stamp in made]
    )


def _at_end(text: str) -> str:
    """Runs what the active plugins have at the slot trace.end. The passes are fly-opt-py's."""
    from fly_common.resolve import resolve
    from fly_plugin import contents

    if not contents.seats("trace.end"):
        return text
    return resolve("fly_opt.pipeline.foreign_slot:run_text")(text, "trace.end", "<trace>")


def _invalid(error: ir.MLIRError) -> InputError:
    """Converts an error of MLIR's verifier. If the user's program caused it, the message uses the
    language's terms."""
    first = error.error_diagnostics[0]
    where = fly.place_of(first.location)
    if "using value defined outside the region" in first.message:
        return InputError(
            "this uses a value that was computed by another kernel or by the host function",
            place=where,
            hint="pass each value of the host function to the kernel as a separate argument,"
            " not in a list and not through a closure",
        )
    return InputError(f"the module that was traced is not valid: {first.message}", place=where)


def trace_file(
    path: str,
    entry: str | None = None,
    signature: Mapping[str, ParameterType] | None = None,
    *,
    locations: bool = True,
    target: str | None = None,
) -> str:
    """Traces the host function `entry` of a Python file, or with None its only one."""
    from fly_trace.session.load import find_entry, load_file

    function = find_entry(load_file(path), path, entry)
    try:
        return trace_function(function, signature or {}, locations=locations, target=target)
    except InputError as error:
        here = {one.id for one in active()}
        if missing := [name for name in function.options.get("asks", ()) if name not in here]:
            flags = " ".join(f"--plugin={name}" for name in missing)
            asks = f"{function.name} asks for plugins that are not active: fly-trace {flags}"
            error.hint = f"{error.hint}\n  {asks}" if error.hint else asks
        raise
