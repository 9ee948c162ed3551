"""`Backend`: what a vendor's hardware adds to the language, the dialect, the passes and the tools.

A backend spans several packages that must not import each other. Its record therefore holds
references of the form `"package.module:NAME"`, and each tool resolves only those that it needs.

A backend from outside usually starts from a built-in one and replaces some of its fields:

    from fly_backend.backend import Backend
    from fly_backend.amd import ROCM
    from fly_common.record import replace

    BACKEND = replace(ROCM, name="mine", lowering="my_package.lowering:LOWERING")
"""

from __future__ import annotations

from fly_common.record import record


@record
class Backend:
    """A family of targets and references to the code that supports it.

    `name` is the name that users give, in lower case. `default_target` is the chip of a compilation
    that names none. `namespaces` are the modules that kernels see as `fx.NAME`. `namespace` is the
    name of the backend's dialect beside `fly`; `upstream` are MLIR's dialects whose ops the
    backend's passes build; `intrinsics` is the prefix of its intrinsics in LLVM. They tell the
    owner of an op or a type while nothing of the backend is loaded. `compiles` names the backends
    whose rows of `fly_target` are its targets (`Target.backend`); () is its own name.
    `cluster_attribute` is MLIR's attribute of a kernel with the size of clusters, beside
    `fly.cluster_dims`. `object_suffix` and `image_suffix` are those of the files that fly-llc and
    fly-link make for it.

    The references, each with the class of its object:

    `dialect`     fly_dialect.extension.Extension: the ops, instruction types and address spaces
    `lowering`    fly_opt.lowering.interface.Lowering: pipelines, passes, emitters, LLVM modules
    `codegen`     fly_llc.codegen.points.CodeGeneration: triples and insertion points
    `rings`       fly_trace.pipelines.mechanisms.Rings: what `fx.pipeline` has; "" for copies
                  through registers
    `linker`      fly_link.backends.interface.Linker: objects or assembly → the image
    `clusters`    what `fx.cluster` does for its targets (`fly_trace.gpu.cluster`): a module with
                  `arrive`, `wait`, `barrier`, and `remote` where blocks see others' shared memory
    `devices`     by the name that `--device` takes, factories of fly_run.devices.protocol.Device,
                  or "" for a device of fly-run itself; the first is opened for "auto"
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
    rings: str = ""
    linker: str = ""
    clusters: str = ""
    cluster_attribute: str = ""
    compiles: tuple[str, ...] = ()
    devices: dict[str, str] = {}  # noqa: RUF012  records are immutable, and so is what they hold
    object_suffix: str = ".o"
    image_suffix: str = ".hsaco"

    def __post_init__(self) -> None:
        if not self.compiles:
            vars(self)["compiles"] = (self.name,)

    @property
    def references(self) -> tuple[str, ...]:
        """The modules or objects that the record refers to."""
        named = (self.dialect, self.lowering, self.codegen, self.rings, self.linker, self.clusters)
        return tuple(filter(None, (*self.namespaces.values(), *named, *self.devices.values())))

    @property
    def packages(self) -> tuple[str, ...]:
        """The top-level packages and modules that it refers to, sorted."""
        modules = {reference.partition(":")[0] for reference in self.references}
        return tuple(sorted({module.partition(".")[0] for module in modules}))
