"""A chip as data: `Target`.

What every vendor's chips have is a field of `Target`; what only one vendor's have is in a record of
that vendor's, as `Target.amd`, which is None for the others.
"""

from __future__ import annotations

from fly_common.record import record

TYPE_CHECKING = False  # typing's own costs 5 ms
if TYPE_CHECKING:
    from fly_target.amd.facts import AmdFacts

# The 8-bit floats of a chip's conversions and matrix instructions, by their kind; MLIR's names.
FNUZ = "fnuz"  # a NaN where -0 would be, no infinity
OCP = "ocp"  # of the Open Compute Project's specification
FLOAT8: dict[str, tuple[str, ...]] = {
    "": (),
    FNUZ: ("f8E4M3FNUZ", "f8E5M2FNUZ"),
    OCP: ("f8E4M3FN", "f8E5M2"),
}


@record
class LdsBanks:
    """How LDS (shared memory) serves a wave; `fly_target.bank_conflicts` computes conflicts from
    it.

    `count` banks of 4 bytes. `crossed`: the lanes that a 12- or 16-byte load serves together are
    not consecutive. `doubled` has the (kind, bytes a lane) of accesses that twice as many banks
    serve, for twice as many lanes.
    """

    count: int = 32
    crossed: bool = False
    doubled: tuple[tuple[str, int], ...] = ()


@record
class Target:
    """A chip. Sizes are in bytes.

    `name` is what users say, `cpu` what LLVM calls it (-mcpu). `backend` names the pipeline that
    lowers to it, `family` its architecture. `wave_sizes` has the sizes that waves may have, first
    the one that LLVM takes where a function asks for none. `lds` is the most that one workgroup may
    have, `cache_line` a line of the vector memory's first cache. `float8` is FNUZ, OCP or "".
    `block_floats` are the formats of 6 and 4 bits that it converts. `matrix` names its set of
    matrix instructions, "" where it has none.
    """

    name: str
    backend: str
    family: str
    products: str
    cpu: str
    triple: str
    data_layout: str
    wave_sizes: tuple[int, ...]
    max_workgroup: int  # work items
    lds: int
    lds_banks: LdsBanks
    cache_line: int
    float8: str = ""
    block_floats: tuple[str, ...] = ()
    matrix: str = ""
    emulated: bool = False  # whether fly-run's emulator runs its code
    amd: AmdFacts | None = None

    @property
    def wave_size(self) -> int:
        """The lanes of a wave where a function asks for no other number."""
        return self.wave_sizes[0]

    @property
    def narrow_floats(self) -> tuple[str, ...]:
        """The formats of 8 bits and less that it converts from and to f32; MLIR's names."""
        return FLOAT8[self.float8] + self.block_floats

    @property
    def traits(self) -> frozenset[str]:
        """The words by which tables of instructions say which chips have a row: the family, the set
        of matrix instructions, the kind of 8-bit floats, and what the vendor's record adds."""
        words = {self.family, self.matrix, self.float8}
        if self.amd is not None:
            words |= self.amd.traits
        return frozenset(words - {""})
