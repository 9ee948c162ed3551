"""`Plugin`: the record that a package of plugins exports, and `Command`, an external filter.

    from fly_plugin.manifest import Plugin

    PLUGIN = Plugin(
        id="hello",
        version="0.1.0",
        options="fly_hello.options:Options",
        dialects={"hello": "fly_hello.dialect:HELLO"},
        namespaces={"hello": "fly_hello.language"},
        passes={"hello-lower": "fly_hello.lower:Lower"},
        slots={"opt.before-layout-lowering": "fly_hello.pipeline:lower"},
    )

All values are references, resolved when they are used: importing the record must import nothing
else. `pyproject.toml` advertises it:

    [project.entry-points."fly.plugins"]
    hello = "fly_hello:PLUGIN"
"""

from __future__ import annotations

import re

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

API = 1  # the version of this record and of what its references refer to

_ID = re.compile(r"[a-z][a-z0-9-]*")
# Ids whose options would have this project's own environment variables, FLY_<ID>_….
_RESERVED = (
    *("asan", "cache", "cpu", "device", "emulator", "hip", "llc", "llvm", "opt", "test", "verify"),
)
# The ids of what this project has itself (`fly_plugin.built_in`).
BUILT_IN = ("rocm", "cuda", "devices", "machine-passes", "pictures")
_NAMESPACE = re.compile(r"[a-z][a-z0-9_]*")
_ATOM = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z]\w*)+")
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_][\w.]*")
# The dialects that plugins can't define: this project's begin so, MLIR's have these names.
_OWN = re.compile(r"fly(_\w+)?")
_MLIR = frozenset(
    (
        *("acc", "affine", "amdgpu", "amx", "arith", "arm_neon", "arm_sme", "arm_sve", "async"),
        *("bufferization", "builtin", "cf", "complex", "emitc", "func", "gpu", "index", "irdl"),
        *("linalg", "llvm", "math", "memref", "ml_program", "mpi", "nvgpu", "nvvm", "omp", "pdl"),
        *("pdl_interp", "ptr", "quant", "rocdl", "scf", "shape", "shard", "smt", "sparse_tensor"),
        *("spirv", "tensor", "test", "tosa", "transform", "ub", "vcix", "vector", "wasmssa"),
        *("x86", "x86vector", "xegpu", "xevm"),
    )
)


@record
class Plugin:
    """What a package adds to the tools. `id` is its name, in lower case with digits and dashes.
    `version` is written into modules; "" is the distribution's. `api` is the version of this record
    that it is written for. `requires` are the ids of plugins that must be active as well.

    The references, each with what it refers to:

    `options`      a frozen dataclass; its fields are the flags `--<id>-<field>`
    `dialects`     by name, a fly_dialect.extension.Extension: ops, types and their rules
    `namespaces`   by the name that kernels see as `fx.NAME`, a module
    `atoms`        by type name ("hello.mma"), the class of an instruction: a
                   fly_dialect.atoms.interface.CopyOp or MmaOp
    `emitters`     by the same names, the module that registers the instruction's lowering
                   (fly_opt.atoms.emitters)
    `passes`       by name, a subclass of fly_opt.passes.base.Pass
    `filters`      by name, a function of MIR: what `fly-llc --insert POINT=NAME` runs
    `slots`        by slot (fly_plugin.slots), what runs there (fly_plugin.contents)
    `targets`      by name, a fly_target.target.Target
    `backends`     by name, a fly_backend.backend.Backend
    `devices`      by name, a factory of fly_run.devices.protocol.Device
    `summaries`    by name, a function of a fly_run.shell.summaries.Run and the options: what
                   fly-run prints about a run
    `pictures`     by name, a function of what is drawn and of fly_draw.pictures.Options
    """

    id: str
    version: str = ""
    api: int = API
    options: str = ""
    dialects: Mapping[str, str] = {}
    namespaces: Mapping[str, str] = {}
    atoms: Mapping[str, str] = {}
    emitters: Mapping[str, str] = {}
    passes: Mapping[str, str] = {}
    filters: Mapping[str, str] = {}
    slots: Mapping[str, str] = {}
    targets: Mapping[str, str] = {}
    backends: Mapping[str, str] = {}
    devices: Mapping[str, str] = {}
    summaries: Mapping[str, str] = {}
    pictures: Mapping[str, str] = {}
    requires: tuple[str, ...] = ()

    @property
    def references(self) -> tuple[str, ...]:
        """The modules and objects that the record refers to."""
        tables = (self.dialects, self.namespaces, self.atoms, self.emitters, self.passes)
        more = (self.filters, self.slots, self.targets, self.backends, self.devices)
        last = (self.summaries, self.pictures)
        named = (value for table in (*tables, *more, *last) for value in table.values())
        return tuple(filter(None, (self.options, *named)))

    @property
    def packages(self) -> tuple[str, ...]:
        """The top-level packages and modules that it refers to, sorted."""
        return tuple(sorted({one.partition(":")[0].partition(".")[0] for one in self.references}))


@record
class Command:
    """An external filter: a program that reads its standard input and writes its standard output.
    `words` are the program and its arguments. `depends` are files that it reads and that no word
    names."""

    words: tuple[str, ...]
    depends: tuple[str, ...] = ()


def check(plugin: Plugin) -> None:
    """Raises UsageError for a record that is not well formed, or for another `api`."""
    if plugin.api != API:
        raise UsageError(
            f"it is written for version {quoted(plugin.api)} of the plugin interface, and this is"
            f" fly-filters with version {API}",
            hint="install a version of the plugin for this interface",
        )
    if not isinstance(plugin.id, str) or not _ID.fullmatch(plugin.id):
        raise UsageError(
            f"{quoted(plugin.id)} can't be the id of a plugin",
            hint="an id is in lower case and begins with a letter; then letters, digits and '-'",
        )
    if plugin.id in _RESERVED:
        raise UsageError(
            f"{quoted(plugin.id)} can't be the id of a plugin",
            hint=f"the variables FLY_{plugin.id.upper()}_… have other meanings",
        )
    if plugin.id in BUILT_IN:
        raise UsageError(
            f"{quoted(plugin.id)} can't be the id of a plugin", hint="a part of fly-filters has it"
        )
    for name in plugin.dialects:
        if not _NAMESPACE.fullmatch(name) or _OWN.fullmatch(name) or name in _MLIR:
            taken = _OWN.fullmatch(name) or name in _MLIR
            reason = "the dialect exists" if taken else "a name has lower case, digits and '_'"
            raise UsageError(f"it can't define the dialect {quoted(name)}: {reason}")
    for name in plugin.atoms:
        dialect = name.partition(".")[0]
        if not _ATOM.fullmatch(name) or _OWN.fullmatch(dialect) or dialect in _MLIR:
            taken = _ATOM.fullmatch(name)
            reason = "the dialect exists" if taken else "a name is dialect.instruction"
            raise UsageError(f"it can't define the atom {quoted(name)}: {reason}")
        if name not in plugin.emitters:
            raise UsageError(f"its atom {name} has no emitter")
    for name in plugin.emitters:
        if name not in plugin.atoms:
            raise UsageError(f"its emitter {quoted(name)} is of no atom that it defines")
    for kind, table in (("namespace", plugin.namespaces), ("emitter", plugin.emitters)):
        for name, value in table.items():
            if not _MODULE.fullmatch(value):
                raise UsageError(f"its {kind} {name} refers to {quoted(value)}, not to a module")
    modules = {*plugin.namespaces.values(), *plugin.emitters.values()}
    for value in plugin.references:
        if value not in modules and not _REFERENCE.fullmatch(value):
            raise UsageError(f"it refers to {quoted(value)}, which is not package.module:NAME")
