"""The stage: MLIR text in, MLIR or LLVM IR text out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fly_common.errors import InputError, Place
from fly_plugin import active

from fly_opt.pipeline import pipelines
from fly_opt.pipeline.options import Options
from fly_opt.pipeline.registry import EMIT_HOST, EMIT_HOST_LLVM, EMIT_LLVM
from fly_opt.pipeline.text import Nest, Step
from fly_opt.reporting.diagnostics import Source, from_mlir
from fly_opt.reporting.observer import Observer

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


def compile(source: bytes, options: Options | None = None, name: str = "<stdin>") -> bytes:
    """Compiles one module of MLIR text as `options` say.

    Equal arguments give equal bytes. InputError if the module is wrong or a pass rejects it,
    UsageError if the options contradict each other, MissingError without bindings or libraries.
    """
    options = options or Options()
    return run(source, pipelines.select(options), options, name, Observer())


def run(
    source: bytes,
    pipeline: Nest,
    options: Options,
    name: str,
    observer: Observer,
    first_line: int = 1,
) -> bytes:
    """Runs a pipeline on a text and prints the result; `first_line` is the line of the input on
    which the text starts."""
    try:
        text = source.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: byte {error.start} is not UTF-8: this is not MLIR text"
        ) from None
    if "fly.plugins" in text and _compiles(options):
        from fly_plugin import stamps

        stamps.check(stamps.in_mlir(text), name, "fly-opt-py")
    with observer.timed("import MLIR"):
        from fly_dialect import dialect, handover
        from fly_dialect import text as fly_text
        from fly_dialect.bindings import ir

        from fly_opt.pipeline import runner

        offered = handover.take(text)
        context = offered.context if offered else dialect.new_context()
    origin = Source(name, text, first_line)
    observer.show = lambda module: fly_text.write(module, locations=options.locations)
    with _plain_operations(), context, ir.Location.unknown():
        runner.check(pipeline)
        try:
            with observer.timed("parse"):
                module = fly_text.read_offered(offered, name) if offered else None
                module = module or fly_text.read(text, context, name)
                dialect.verify(module, text, name)
        except InputError as error:
            raise _moved(error, origin) from None
        except ir.MLIRError as error:
            raise from_mlir(error, origin) from None
        except (UnicodeDecodeError, RuntimeError) as error:
            raise _not_text(error, name) from None
        try:
            is_watched = observer.is_watching or bool(active())
            # MLIR's text has the same names and says each place once.
            names = offered.printed if offered else text
            if is_watched or not _is_done_quickly(pipeline, module, options, names):
                module = module if is_watched else fly_text.read(text, context, name)
                runner.run(pipeline, module, origin, observer)
            if pipeline.elements[-1:] == (Step(EMIT_LLVM),):
                from fly_opt.emission import emit

                made = emit.emit(module, origin, observer)
                made = _after_emission(made, module.operation, options)
                if offered:
                    _postpone(pipeline, options, [offered, context, module])
                return made.encode()
            if pipeline.elements[-1:] == (Step(EMIT_HOST),):
                from fly_opt.emission import emit_host

                return (emit_host.emit(module) + _made_with(module.operation)).encode()
            if pipeline.elements[-1:] == (Step(EMIT_HOST_LLVM),):
                from fly_opt.emission import emit_host

                return _stamped_host(emit_host.emit_llvm(module), module.operation).encode()
            with observer.timed("print"):
                return fly_text.write(module, locations=options.locations).encode()
        except (UnicodeDecodeError, RuntimeError) as error:
            raise _not_text(error, name) from None


def _is_done_quickly(pipeline: Nest, module: ir.Module, options: Options, text: str) -> bool:
    """Runs a pipeline; False if a pass raises something, whatever it is."""
    from fly_opt.pipeline import runner

    try:
        runner.run_quickly(pipeline, module, is_known=_compiles(options), text=text)
    except Exception:
        return False
    return True


def _postpone(pipeline: Nest, options: Options, used: list[object]) -> None:
    """Frees a module and its context later, and makes a context for the next call: while LLVM works
    on the result (`fly_common.programs.prefetch`)."""
    from fly_common.programs import prefetch
    from fly_dialect import dialect, spare_context
    from fly_dialect.bindings import ir

    from fly_opt.pipeline import runner

    def make() -> ir.Context:
        context = dialect.new_context()
        with _plain_operations(), context, ir.Location.unknown():
            runner.warm(pipeline, context)
        return context

    prefetch.postpone(used.clear)
    if options.target is not None and not active():
        target = options.target
        prefetch.postpone(lambda: spare_context.keep(target, make))


def _compiles(options: Options) -> bool:
    """Whether a backend's pipeline runs, in which plugins have slots. One that is given as text is
    complete."""
    return options.passes is None and (options.target or options.backend) is not None


def _after_emission(text: str, module: ir.Operation, options: Options) -> str:
    """Stamps LLVM IR with the plugins that later stages need, and runs the slot llvm.begin."""
    if "fly.later_plugins" in module.attributes:
        from fly_plugin import stamps

        from fly_opt.passes.plugins.set_plugins import stamps_of

        text = stamps.stamped_llvm(text, stamps_of(module, stamps.LATER))
    if active() and _compiles(options):
        from fly_plugin import contents

        text = contents.apply("llvm.begin", text.encode()).decode()
    return text


def _made_with(module: ir.Operation) -> str:
    """Returns the end of a host program's listing: the plugins that the module was made with."""
    if "fly.plugins" not in module.attributes:
        return ""
    from fly_opt.passes.plugins.set_plugins import stamps_of

    return "".join(f"{line}\n" for line in ("plugins", f"  {', '.join(stamps_of(module))}"))


def _stamped_host(text: str, module: ir.Operation) -> str:
    """Stamps the LLVM IR of a host program with the plugins that it was made with. No later stage
    of this project reads it."""
    if "fly.plugins" not in module.attributes:
        return text
    from fly_plugin import stamps

    from fly_opt.passes.plugins.set_plugins import stamps_of

    return stamps.stamped_llvm(text, stamps_of(module))


_NO_STRING = "str_from_cstr_and_size"  # the bindings' function that decodes MLIR's bytes


def _not_text(error: UnicodeDecodeError | RuntimeError, name: str) -> InputError:
    """Returns the error for text that is not UTF-8: MLIR's strings hold any bytes, Python's do not.
    A RuntimeError with another cause is raised again."""
    if isinstance(error, UnicodeDecodeError):
        start = max(0, error.start - 20)
        near = bytes(error.object[start : error.start + 20]).decode("ascii", "backslashreplace")
        shown = f", near {' '.join(near.split())}"
    elif _NO_STRING in str(error):
        shown = ""
    else:
        raise error
    return InputError(
        f"a string contains bytes that are not UTF-8{shown}",
        place=Place(name),
        hint="names and attributes are text; other bytes are allowed in the values of globals",
    )


def check(pipeline: Nest) -> None:
    """Raises UsageError for a pipeline with an unknown pass or invalid options."""
    from fly_dialect import dialect
    from fly_dialect.bindings import ir

    from fly_opt.pipeline import runner

    with _plain_operations(), dialect.new_context(), ir.Location.unknown():
        runner.check(pipeline)


@contextlib.contextmanager
def _plain_operations() -> Iterator[None]:
    """Keeps the bindings from importing a dialect's Python classes when they first see one of its
    operations: gpu, llvm and rocdl take 110 ms, and no pass here needs them. Operations are then of
    class `ir.OpView`; classes that have been imported are still found.

    The table is global to the process: the first thread to enter empties it, the last one to leave
    restores it.
    """
    from fly_dialect.bindings import module

    global _inside, _search_modules
    table = module("_mlir_libs._mlir").globals
    with _lock:
        if not _inside:
            _search_modules, table.dialect_search_modules = table.dialect_search_modules, []
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                table.dialect_search_modules = _search_modules


_lock = threading.Lock()
_inside = 0
_search_modules: list[str] = []


def _moved(error: InputError, origin: Source) -> InputError:
    """Moves an error of the reader, whose lines count from the start of the text, to the input."""
    place = error.place
    if place is None or place.line is None or origin.first_line == 1:
        return error
    line = place.line + origin.first_line - 1
    moved = Place(place.file, line, place.column, place.text, place.width)
    return type(error)(error.message, place=moved, hint=error.hint)
