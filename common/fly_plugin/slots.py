"""The slots: the places where plugins run, on both sides of each stage boundary and phase.

A slot has the IR of its place (`holds`), and what is true of it there (`invariant`). `allows`
are the operations that a module may have at an MLIR slot, by the beginnings of their names;
`verify` (--verify-slots) checks them. A plugin must leave what it found: the invariant holds before
and after each plugin.

Besides these, each named point of a machine pipeline is a slot, `llc.POINT`, for filters of MIR.
"""

from __future__ import annotations

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MLIR = "MLIR"
LLVM = "LLVM IR"
MIR = "MIR"
OBJECT = "object"
IMAGE = "image"

# What a trace is made of: the language's dialects, and those of backends and plugins.
TRACED = (
    *("builtin.", "gpu.", "func.", "arith.", "math.", "scf.", "vector.", "ub.", "cf.", "index."),
    *("memref.", "llvm.", "fly.", "fly_"),
)
KERNELS = tuple(name for name in TRACED if name != "func.")
# Layout algebra is arithmetic now. What is left of the dialect are pointers and atoms, and tuples,
# layouts and views that ops of another dialect use.
LOWERED_LAYOUTS = (
    *(name for name in KERNELS if name != "fly."),
    *("fly.static", "fly.make_int_tuple", "fly.make_shape", "fly.make_stride", "fly.make_coord"),
    *("fly.make_layout", "fly.make_composed_layout", "fly.make_view", "fly.get_iter"),
    *("fly.make_ptr", "fly.add_offset", "fly.apply_swizzle", "fly.recast_iter", "fly.ptrtoint"),
    *("fly.inttoptr", "fly.to_llvm_ptr", "fly.get_dyn_shared", "fly.ptr.", "fly.print"),
    *("fly.make_copy_atom", "fly.make_mma_atom", "fly.atom.", "fly.get_copy_atom"),
    *("fly.get_mma_atom", "fly.copy_atom_call", "fly.mma_atom_call", "fly.assume"),
    *("fly.extract_aligned_pointer_as_index", "fly.make_tile"),
)
NO_FLY = tuple(name for name in KERNELS if name not in ("fly.", "fly_"))
# Besides these, the dialects that the backend's translation to LLVM IR accepts.
LLVM_DIALECT = ("builtin.", "gpu.module", "llvm.")


@record
class Slot:
    """`stage` is the tool whose part of the chain it is in. `plugins_dialects` says whether ops of
    plugins' dialects may be there."""

    name: str
    stage: str
    holds: str
    invariant: str
    allows: tuple[str, ...] = ()
    plugins_dialects: bool = False

    @property
    def is_mlir(self) -> bool:
        return self.holds == MLIR


TRACE, OPT, LLC, LINK = "fly-trace", "fly-opt-py", "fly-llc", "fly-link"

SLOTS = (
    Slot(
        *("trace.end", TRACE, MLIR),
        "the module as traced: kernels in a gpu.module, the host function a func.func; no target",
        *(TRACED, True),
    ),
    Slot(
        *("opt.begin", OPT, MLIR),
        "the module as traced, with its target",
        *(TRACED, True),
    ),
    Slot(
        *("host.begin", OPT, MLIR),
        "as opt.begin: the last place where the host function is an operation",
        *(TRACED, True),
    ),
    Slot(
        *("host.end", OPT, MLIR),
        "the host program is the attribute fly.host_program; kernels take whole tensors",
        *(KERNELS, True),
    ),
    Slot(
        *("opt.before-layout-lowering", OPT, MLIR),
        "kernels take pointers and dynamic extents; layouts are canonical, wave sizes constant",
        *(KERNELS, True),
    ),
    Slot(
        *("opt.after-layout-lowering", OPT, MLIR),
        "layout algebra is integer arithmetic; pointers, registers and atoms are still fly's",
        LOWERED_LAYOUTS,
    ),
    Slot(
        *("opt.before-atoms", OPT, MLIR),
        "atoms take registers as vectors; register memory is values where it can be",
        LOWERED_LAYOUTS,
    ),
    Slot(
        *("opt.before-gpu-lowering", OPT, MLIR),
        "no fly operation: LLVM pointers, the target's instructions, gpu, scf, arith",
        NO_FLY,
    ),
    Slot(
        *("opt.end", OPT, MLIR),
        "the LLVM dialect and the target's intrinsics, with the functions' attributes",
        LLVM_DIALECT,
    ),
    Slot(
        *("llvm.begin", OPT, LLVM),
        "one module for the target as LLVM IR text, before LLVM's opt",
    ),
    Slot(
        *("llvm.end", LLC, LLVM),
        "the module as LLVM's opt left it: text or bitcode",
    ),
    Slot(
        *("llc.begin", LLC, LLVM),
        "the module that code generation reads, after llvm.end",
    ),
    Slot(
        *("llc.end", LLC, OBJECT),
        "the object, or the target's assembly where that is what is linked",
    ),
    Slot(
        *("link.begin", LINK, OBJECT),
        "each object or assembly that is linked",
    ),
    Slot(
        *("link.end", LINK, IMAGE),
        "the linked image, with its host program",
    ),
)
_BY_NAME = {slot.name: slot for slot in SLOTS}

# The machine pipelines' named points. The reference keeps tools out of this package's imports.
MACHINE = "llc."
_MACHINE_POINTS = "fly_llc.codegen.points:every_name"


def machine_slots() -> Mapping[str, Slot]:
    """Returns the slots at the named points of the machine pipelines of the backends in use."""
    from fly_common.resolve import resolve

    found = resolve(_MACHINE_POINTS)()
    made = (Slot(f"{MACHINE}{name}", LLC, MIR, holds) for name, holds in found.items())
    return {slot.name: slot for slot in made}


def find(name: str) -> Slot | None:
    """Returns the slot `name`, or None."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    return machine_slots().get(name) if name.startswith(MACHINE) else None


def every() -> tuple[Slot, ...]:
    """Returns all slots, in the order in which a kernel passes them."""
    at = next(n for n, slot in enumerate(SLOTS) if slot.name == "llc.end")
    return (*SLOTS[:at], *machine_slots().values(), *SLOTS[at:])


def unknown(name: str) -> UsageError:
    """The error for a slot that does not exist."""
    import difflib

    near = difflib.get_close_matches(name, [slot.name for slot in every()], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "--list-slots lists the slots"
    return UsageError(f"there is no slot {quoted(name)}", hint=hint)
