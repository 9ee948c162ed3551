"""Runs a pipeline on a module, pass by pass.

Each MLIR pass gets a pass manager of its own. This costs 0.1 ms a pass; in return, every error
names the pass, dumps are in FlyDSL's text instead of the internal one, and one table has the
timings of both kinds of passes. Where nobody watches, a module is first tried without
(`run_quickly`). Nested pipelines run each pass over all operations before the next
pass; operations under an anchor are isolated, so the result is the same.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fly_common.errors import FlyError, InputError, UsageError
from fly_plugin import active

from fly_opt.lowering import interface
from fly_opt.pipeline import registry
from fly_opt.pipeline.text import ROOT, Nest, Step
from fly_opt.reporting.diagnostics import Source, from_mlir, located
from fly_opt.reporting.observer import Observer

if TYPE_CHECKING:
    from fly_dialect.bindings import ir
    from fly_plugin.activation import Active

Placed = tuple[tuple[str, ...], Step]  # the anchors around a pass, outermost first

_NOT_REGISTERED = re.compile(r"'([^']*)' does not refer to a registered pass")
_RESTRICTED = re.compile(r"restricted to '([^']*)' on a PassManager intended to run on '([^']*)'")


def place_steps(nest: Nest, around: tuple[str, ...] = ()) -> Iterator[Placed]:
    """Yields every pass with its enclosing anchors."""
    anchors = (*around, nest.anchor)
    for element in nest.elements:
        if isinstance(element, Nest):
            yield from place_steps(element, anchors)
        else:
            yield anchors, element


def check(pipeline: Nest) -> None:
    """Raises UsageError for an unknown pass, invalid options or a wrong anchor. Needs MLIR only for
    MLIR's passes. Runs before any pass does, so that an invalid pipeline fails early. One that was
    valid remains so in this process, but with plugins."""
    if not active():
        _check_once(pipeline)
    else:
        _check_all(pipeline)


def _check_all(pipeline: Nest) -> None:
    for anchors, step in place_steps(pipeline):
        with _named(step):
            _check(anchors, step, pipeline)


_check_once = lru_cache(maxsize=64)(_check_all)


def _check(anchors: tuple[str, ...], step: Step, pipeline: Nest) -> None:
    if anchors[0] != ROOT:
        raise UsageError(f"a pipeline's outermost operation must be {ROOT}, not {anchors[0]}")
    if step.name in registry.EMISSIONS:
        if pipeline.elements[-1] is not step:
            raise UsageError(f"{step.name} must be the last pass of the pipeline")
    elif registry.is_ours(step.name):
        made = registry.load(step)
        if anchors[-1] not in (made.anchor, "any"):
            raise UsageError(
                f"pass {step.name} runs on {made.anchor}, not on {anchors[-1]}",
                hint=f"write {_around((ROOT, made.anchor), step)}",
            )
    else:
        manager(anchors, step)


@contextlib.contextmanager
def _named(step: Step) -> Iterator[None]:
    """Names the plugin that a pass belongs to in errors."""
    try:
        yield
    except FlyError as error:
        owner = step.owner or next((one.named for one in _owners(step)), "")
        if owner and not error.message.startswith(owner):
            error.message = f"{owner}: {error.message}"
        raise


def _owners(step: Step) -> Iterator[Active]:
    """Yields the active plugin that defines a pass, if one does."""
    return (one for one in active() if step.name in one.plugin.passes)


def run(pipeline: Nest, module: ir.Module, source: Source, observer: Observer) -> None:
    """Runs every pass except the emission. InputError if one of them rejects the module."""
    _load_dialects(pipeline, module.context)
    for anchors, step in place_steps(pipeline):
        if step.name in registry.EMISSIONS:
            continue
        with observer.watching(step.name, module), _named(step):
            if registry.is_ours(step.name):
                _run_ours(anchors, step, module, source)
            else:
                _run_upstream(anchors, step, module, source)


def run_quickly(
    pipeline: Nest, module: ir.Module, is_known: bool = False, text: str | None = None
) -> None:
    """Does to a module what `run` does, if no pass rejects it. Whatever is raised otherwise, `run`
    has the message for it, of the module as it was.

    MLIR's passes in a row have one pass manager. A module is verified before each of these, and at
    the end; not between passes in Python, which are not harmed by what is not valid. With
    `is_known`, a backend's own pipeline, it is not verified between MLIR's passes either, which
    takes half as long as such a pass. One that somebody writes may have passes that do not go
    together, and MLIR's may crash on what is not valid. With `text` too, the module's, passes that
    would find nothing (`Pass.only_with`) do not look: each would visit all operations.
    """
    names = text if is_known and text and _is_plain(pipeline) else None
    _load_dialects(pipeline, module.context)
    is_doubtful = is_unverified = False  # since a pass in Python; since one of MLIR's
    for ours, row in _rows(pipeline):
        if ours:
            for anchors, step in row:
                if names is None or _may_act(step, names):
                    is_doubtful |= _changes(anchors, step, module)
            continue
        if is_doubtful:
            module.operation.verify()
            is_doubtful = False
        made = _manager_of(row)
        made.enable_verifier(not is_known)
        made.run(module.operation)
        is_unverified = is_known
    if is_doubtful or is_unverified:
        module.operation.verify()


def _may_act(step: Step, text: str) -> bool:
    """Whether a pass may have something to do. A backslash may be part of any name."""
    words = registry.load(step).only_with
    return not words or "\\" in text or any(word in text for word in words)


@lru_cache(maxsize=64)
def _is_plain(pipeline: Nest) -> bool:
    """Whether all passes are this project's, or MLIR's: others may make what has any name."""
    names = (step.name for _, step in place_steps(pipeline))
    homes = (registry.home(name) for name in names if name not in registry.EMISSIONS)
    return all(home is None or home.partition(".")[0] == "fly_opt" for home in homes)


def warm(pipeline: Nest, context: ir.Context) -> None:
    """Loads the dialects into a context that a pipeline needs, and those that MLIR's passes do."""
    from fly_dialect.bindings import ir

    _load_dialects(pipeline, context)
    for ours, row in _rows(pipeline):
        if not ours:
            empty = ir.Module.parse("module { gpu.module @k { } }", context)
            _manager_of(row).run(empty.operation)


def _rows(pipeline: Nest) -> Iterator[tuple[bool, list[Placed]]]:
    """Yields the passes in a row that are this project's, or are not; without the emission."""
    steps = (one for one in place_steps(pipeline) if one[1].name not in registry.EMISSIONS)
    for ours, row in groupby(steps, lambda one: registry.is_ours(one[1].name)):
        yield ours, list(row)


def _load_dialects(pipeline: Nest, context: ir.Context) -> None:
    """Loads the dialects of the backends that have a pipeline's passes."""
    from fly_dialect import dialect

    names = {step.name for _, step in place_steps(pipeline)}
    dialect.load_upstream(context, interface.upstream_of(interface.owners(names)))


def _manager_of(row: list[Placed]) -> Any:
    """One pass manager for several of MLIR's passes."""
    from fly_dialect.bindings import passmanager

    text = ",".join(_around(anchors[1:], step) for anchors, step in row)
    return passmanager.PassManager.parse(f"{ROOT}({text})")


def manager(anchors: tuple[str, ...], step: Step) -> Any:
    """Returns MLIR's pass manager for one pass. UsageError has MLIR's objection to it."""
    from fly_dialect.bindings import ir, passmanager

    try:
        return passmanager.PassManager.parse(_around(anchors, step))
    except (ValueError, ir.MLIRError) as error:
        text = str(error)
    if match := _NOT_REGISTERED.search(text):
        raise registry.unknown(match[1])
    if match := _RESTRICTED.search(text):
        raise UsageError(
            f"pass {step.name} runs on {match[1]}, not on {match[2]}",
            hint=f"write {_around((ROOT, match[1]) if match[1] != ROOT else (ROOT,), step)}",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = lines[0].removeprefix("<Pass-Options-Parser>: ") if lines else "rejected by MLIR"
    raise UsageError(f"pass {step}: {reason}")


def implicit_nest(step: Step) -> Step | Nest:
    """Wraps a pass given as a flag in the anchor it needs: `--convert-gpu-to-rocdl` means
    `gpu.module(convert-gpu-to-rocdl)`, as in mlir-opt."""
    if step.name in registry.EMISSIONS:
        return step
    if registry.is_ours(step.name):
        anchor = registry.load(step).anchor
        return step if anchor == ROOT else Nest(anchor, (step,))
    from fly_dialect.bindings import ir, passmanager

    try:
        with ir.Context():
            passmanager.PassManager.parse(_around((ROOT,), step))
    except ValueError as error:
        if match := _RESTRICTED.search(str(error)):
            return Nest(match[1], (step,))
    return step


def _around(anchors: tuple[str, ...], step: Step) -> str:
    return "(".join([*anchors, str(step)]) + ")" * len(anchors)


def _run_ours(anchors: tuple[str, ...], step: Step, module: ir.Module, source: Source) -> None:
    from fly_dialect.bindings import ir

    try:
        with _expecting(step):
            changed = _changes(anchors, step, module)
    except InputError as error:
        raise located(error, source, f"pass {step.name}") from None
    except ir.MLIRError as error:
        raise from_mlir(error, source, f"pass {step.name}") from None
    if not changed:
        return
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise from_mlir(error, source, f"pass {step.name} produced invalid IR") from None


def _changes(anchors: tuple[str, ...], step: Step, module: ir.Module) -> bool:
    """Runs one of our passes. Returns whether it may have changed the module."""
    made = registry.load(step)
    if made.builds:
        from fly_dialect import dialect

        dialect.load_upstream(module.context, made.builds)
    operations = [module.operation]
    for anchor in anchors[1:]:
        operations = [
            child.operation
            for operation in operations
            for region in operation.regions
            for block in region
            for child in block
            if anchor in (child.operation.name, "any")
        ]
    changed = False
    for operation in operations:
        if operation.name == made.anchor and made.run(operation) is not False:
            changed = True
    return changed


@contextlib.contextmanager
def _expecting(step: Step) -> Iterator[None]:
    """Converts exceptions of a plugin's pass, which are its bugs and not this program's."""
    from fly_dialect.bindings import ir

    try:
        yield
    except (FlyError, ir.MLIRError):
        raise
    except Exception as error:
        if ":" not in step.name and not any(_owners(step)):
            raise
        from fly_plugin.contents import unexpected

        raise unexpected(error) from error


def _run_upstream(anchors: tuple[str, ...], step: Step, module: ir.Module, source: Source) -> None:
    from fly_dialect.bindings import ir

    try:
        manager(anchors, step).run(module.operation)
    except ir.MLIRError as error:
        raise from_mlir(error, source, f"pass {step.name}") from None
