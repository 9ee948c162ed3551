"""`Backend`: what a vendor's hardware adds to the language, the dialect, the passes and the tools.

A backend spans several packages that must not import each other. Its record therefore holds
references of the form `"package.module:NAME"`, and each tool resolves only those that it needs.
"""

from __future__ import annotations

from fly_common.record import record


@record
class Backend:
    """A family of targets and references to the code that supports it.

    `name` is the name that users give and that the rows of `fly_target` use. `default_target` is
    the chip of a compilation that names none. `namespaces` are the modules that kernels see as
    `fx.NAME`. `namespace` is the name of the backend's dialect beside `fly`; `upstream` are MLIR's
    dialects whose ops the backend's passes build; `intrinsics` is the prefix of its intrinsics in
    LLVM. They tell the owner of an op or a type while nothing of the backend is loaded.

    The references, each with the class of its object:

    `dialect`     fly_dialect.extension.Extension: the ops, instruction types and address spaces
    `lowering`    fly_opt.lowering.interface.Lowering: pipelines, passes, emitters, LLVM modules
    `codegen`     fly_llc.codegen.points.CodeGeneration: triples and insertion points
    """

    name: str
    default_target: str
    namespaces: dict[str, str]
    namespace: str
    upstream: tuple[str, ...]
    intrinsics: str
    dialect: str
    lowering: str
    codegen: str
