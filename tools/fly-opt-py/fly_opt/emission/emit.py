"""Translates MLIR in the LLVM dialect to LLVM IR text: the pipeline element `fly-emit-llvm`.

The result is one LLVM module: the gpu.module's functions and globals, the target's triple and data
layout, the host program as module assembly, and the backend's module flags.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fly_backend import registry
from fly_common.errors import InputError
from fly_target.target import Target

from fly_opt.emission import call_scopes, external_bitcode, llvm_text
from fly_opt.ir.intrinsics import FLOAT_PARTS
from fly_opt.lowering import interface
from fly_opt.lowering.interface import Lowering
from fly_opt.passes.math.select_math import EVERY, INTRINSICS
from fly_opt.passes.target.set_target import target_of
from fly_opt.reporting.diagnostics import Source
from fly_opt.reporting.observer import Observer

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

# Ops of the LLVM dialect that MLIR's translation accepts outside of functions.
TOP_LEVEL = (
    *("llvm.func", "llvm.mlir.global", "llvm.mlir.alias", "llvm.mlir.ifunc", "llvm.comdat"),
    *("llvm.mlir.global_ctors", "llvm.mlir.global_dtors", "llvm.module_flags"),
    *("llvm.linker_options", "llvm.named_metadata"),
)
# Intrinsics that the passes here call. The translation crashes on one that does not exist.
KNOWN_INTRINSICS = (
    {f"{name}.{kind}" for name, kinds in INTRINSICS.values() for kind in kinds}
    | {f"llvm.is.fpclass.{kind}" for kind in EVERY}
    | FLOAT_PARTS
)


def emit(module: ir.Module, source: Source, observer: Observer) -> str:
    """Returns the LLVM IR of a lowered module. InputError names the first op that has none."""
    target = target_of(module.operation)
    with observer.timed("translate"):
        flat = _flatten(module, target, source)
        functions = external_bitcode.taken(module.operation, flat, source)
        doubtful = _prepare(flat, source, interface.candidates(target), target)
        if doubtful:
            _try_in_child(flat, source)
        call_scopes.complete(flat)
        text = _translate(flat)
    with observer.timed("version bridge"):
        text = llvm_text.bridge(text)
        for lowering in interface.candidates(target):
            text = lowering.bridge(text)
    if target is None:
        return text
    lowering = interface.of_target(target)
    if functions:
        with observer.timed("external bitcode"):
            text = external_bitcode.link(text, functions, target)
    if needed := lowering.needed_functions(text):
        with observer.timed("device libraries"):
            text = lowering.link(text, needed, target)
    return text


def _flatten(module: ir.Module, target: Target | None, source: Source) -> ir.Module:
    """Returns a builtin module with the contents of the gpu.module (or of the module itself, if
    there is none) and the module-level attributes that LLVM needs."""
    from fly_dialect.bindings import ir

    top = module.operation
    inner = [child.operation for child in module.body if child.operation.name == "gpu.module"]
    if len(inner) > 1:
        raise InputError(
            f"the module has {len(inner)} gpu.modules; a code object is made from one",
            place=source.place_of(inner[1].location),
            hint="put the kernels of one program into one gpu.module",
        )
    for child in module.body if inner else ():
        if child.operation.name != "gpu.module":
            raise InputError(
                f"{_called(child.operation)} is outside of the gpu.module, and would not"
                " reach the code object",
                place=source.place_of(child.operation.location),
                hint="fly-extract-host-program converts the host function to the host program",
            )
    flat = ir.Module.create(loc=top.location)
    for child in inner[0].regions[0].blocks[0] if inner else module.body:
        flat.body.append(child.operation.clone())
    attributes = flat.operation.attributes
    for name in ("llvm.module_asm",):
        if name in top.attributes:
            attributes[name] = top.attributes[name]
    if target is None:
        for name in ("llvm.target_triple", "llvm.data_layout"):
            if name in top.attributes:
                attributes[name] = top.attributes[name]
        return flat
    attributes["llvm.target_triple"] = ir.StringAttr.get(target.triple)
    attributes["llvm.data_layout"] = ir.StringAttr.get(target.data_layout)
    lines = _sections(top, target)
    if lines:
        attributes["llvm.module_asm"] = ir.ArrayAttr.get([ir.StringAttr.get(x) for x in lines])
    flags = interface.of_target(target).module_flags()
    if not any(_is_defined(child.operation) for child in flat.body):
        # Functions name the processor elsewhere; fly-llc reads this where there are none.
        flags = (*flags, f'#llvm.mlir.module_flag<error, "target-cpu", "{target.cpu}">')
    if flags:
        flat.body.append(ir.Operation.parse(f"llvm.module_flags [{', '.join(flags)}]"))
    return flat


def _sections(top: ir.Operation, target: Target) -> list[str]:
    """Returns the module assembly for the sections of the object: the host program, and the stamps
    of plugins that the link needs, in the same way."""
    write = interface.of_target(target).host_program
    lines: list[str] = []
    if "fly.host_program" in top.attributes:
        lines += write(top.attributes["fly.host_program"].value)
    if "fly.linked_plugins" in top.attributes:
        from fly_host.section import SECTION
        from fly_plugin import stamps

        from fly_opt.passes.plugins.set_plugins import stamps_of

        text = stamps.section(stamps_of(top, stamps.LINKED))
        lines += [line.replace(SECTION, stamps.SECTION, 1) for line in write(text)]
    return lines


def _is_defined(op: ir.Operation) -> bool:
    return op.name == "llvm.func" and len(op.regions[0].blocks) > 0


def _called(op: ir.Operation) -> str:
    name = op.attributes.get("sym_name")
    return f"{op.name} @{name.value}" if name is not None else op.name


def _prepare(
    flat: ir.Module, source: Source, lowerings: tuple[Lowering, ...], target: Target | None
) -> bool:
    """Replaces intrinsics that LLVM 22 lacks. InputError for an op that can't be translated: the
    bindings' translation crashes on one. Returns True if only an attempt can tell, because an
    intrinsic is called by name."""
    from fly_dialect.bindings import ir

    translated = ("llvm.", *(prefix for lowering in lowerings for prefix in lowering.translated))
    foreign: tuple[str, ...] = ()
    if target is not None:
        own = registry.find(target.backend).intrinsics
        known = (one.intrinsics for one in registry.built_in())
        foreign = tuple(prefix for prefix in known if prefix != own)
    intrinsics = KNOWN_INTRINSICS.union(*(lowering.intrinsics for lowering in lowerings))
    for child in flat.body:
        name = child.operation.name
        if name.startswith(translated) and name not in TOP_LEVEL:
            where = source.place_of(child.operation.location)
            raise InputError(f"{name} is outside of any function", place=where)
    refused: list[InputError] = []
    newer: list[tuple[Lowering, ir.Operation]] = []
    usual: set[str] = set()  # names of ops that are translated as they are
    doubtful = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal doubtful
        name = op.name
        if name not in usual:
            if not name.startswith(translated) and name != "builtin.module":
                hint = "lower it before fly-emit-llvm; --target X --print-pipeline shows a pipeline"
                where = source.place_of(op.location)
                refused.append(InputError(f"{name} has no LLVM IR", place=where, hint=hint))
                return ir.WalkResult.INTERRUPT
            if any(lowering.lacks(name) for lowering in lowerings):
                where = source.place_of(op.location)
                message = f"{name} is an intrinsic that LLVM 22 does not have"
                refused.append(InputError(message, place=where))
                return ir.WalkResult.INTERRUPT
            replacing = [one for one in lowerings if one.replaces(name)]
            newer.extend((one, op.operation) for one in replacing)
            if not replacing:
                usual.add(name)
        if name == "llvm.br" and _ANNOTATION in op.attributes:
            # convert-scf-to-cf copies a loop's attributes; the branch has another name for this.
            op.attributes["loop_annotation"] = op.attributes[_ANNOTATION]
            del op.attributes[_ANNOTATION]
        if "alignment" in op.attributes and (wrong := _wrong_alignment(op)):
            refused.append(InputError(wrong, place=source.place_of(op.location)))
            return ir.WalkResult.INTERRUPT
        if name == "llvm.func":
            for wrong in filter(None, (one.wrong_function(op) for one in lowerings)):
                refused.append(InputError(wrong, place=source.place_of(op.location)))
                return ir.WalkResult.INTERRUPT
            doubtful = doubtful or not _is_ordinary(op, lowerings)
        if name == "llvm.call_intrinsic":
            called = op.attributes["intrin"].value
            if target is not None and called.startswith(foreign):
                message = f"{called} is an intrinsic that {target.name} does not have"
                refused.append(InputError(message, place=source.place_of(op.location)))
                return ir.WalkResult.INTERRUPT
            doubtful = doubtful or called not in intrinsics
        return ir.WalkResult.ADVANCE

    flat.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if refused:
        raise refused[0]
    for lowering, op in newer:
        lowering.replace(op)
    return doubtful


def _wrong_alignment(op: ir.Operation) -> str | None:
    """Returns what is wrong with an op's alignment, which the translation does not check."""
    from fly_dialect.bindings import ir

    attribute = op.attributes["alignment"]
    if not isinstance(attribute, ir.IntegerAttr):
        return None
    value = attribute.value
    if value == 0 or (0 < value <= MOST_ALIGNED and value & (value - 1) == 0):
        return None
    return f"{op.name}: the alignment {value} is not a power of two up to 2^32"


def _is_ordinary(function: ir.Operation, lowerings: tuple[Lowering, ...]) -> bool:
    """Returns whether a function's attributes are all set by this pipeline or ignored by the
    translation (`gpu.…`). The translation crashes on others."""
    from fly_dialect.bindings import ir

    known = {"passthrough": "ArrayAttr"}
    for lowering in lowerings:
        known.update(lowering.function_attributes)
    for name in function.attributes:
        kind = known.get(name)
        if kind is None:
            if "." in name and not name.startswith("gpu."):
                return False
        elif not isinstance(function.attributes[name], getattr(ir, kind)):
            return False
    for one in function.attributes.get("passthrough", ()):
        if isinstance(one, ir.ArrayAttr):
            if len(one) != 2 or not all(isinstance(word, ir.StringAttr) for word in one):
                return False
        elif not isinstance(one, ir.StringAttr):
            return False
    return True


_ANNOTATION = "llvm.loop_annotation"
MOST_ALIGNED = 1 << 32  # bytes; LLVM's limit


def _translate(flat: ir.Module) -> str:
    from fly_dialect.bindings import module

    # Not through dialects.llvm, whose 1,500 classes take 30 ms to import.
    return module("_mlir_libs._mlirDialectsLLVM").translate_module_to_llvmir(flat.operation)


def _try_in_child(flat: ir.Module, source: Source) -> None:
    """Tries the translation in a child process. InputError with MLIR's message if that crashes."""
    import faulthandler
    import resource

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        # A crash here is expected and reported by the parent.
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        def tell(diagnostic: ir.Diagnostic) -> bool:
            place = source.place_of(diagnostic.location)
            line = place.line if place and place.line is not None else 0
            os.write(writer, f"{line} {diagnostic.message}\n".encode())
            return True

        try:
            flat.context.attach_diagnostic_handler(tell)
            _translate(flat)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode(errors="replace").splitlines()
    _, status = os.waitpid(child, 0)
    if status or said:
        line, _, message = (said or ["0 the translation to LLVM IR crashed"])[0].partition(" ")
        where = source.place(int(line) - source.first_line + 1, None) if int(line) else None
        raise InputError(message, place=where)
