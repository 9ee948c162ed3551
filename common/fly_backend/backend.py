"""`Backend`: what one vendor's hardware adds to the language, the dialect, the passes and the
tools.

A backend spans several packages that must not import each other, so its record holds references, as
`"package.module:NAME"`, and each tool resolves the one that it needs. A tool that needs nothing of
a backend imports nothing of it.
"""

from __future__ import annotations

from fly_common.record import record


@record
class Backend:
    """A family of targets, and who knows what of it.

    `name` is what users say, and what the rows of `fly_target` name. `default_target` is the chip
    of a compilation that names none. `namespaces` are the modules that kernels see as `fx.NAME`.

    References, each to an object of the class that its tool describes:

    `dialect`     fly_dialect.extension.Extension: the ops, instruction types and address spaces
    `lowering`    fly_opt.backends.lowering.Lowering: pipelines, passes, emitters, LLVM modules
    `codegen`     fly_llc.backends.codegen.CodeGeneration: triples and insertion points
    """

    name: str
    default_target: str
    namespaces: dict[str, str]
    dialect: str
    lowering: str
    codegen: str
