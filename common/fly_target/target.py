"""`Target`: a chip as data.

The fields of `Target` apply to all vendors. Fields of one vendor are in a separate record,
`Target.amd` or `Target.nvidia`, which is None for the others.
"""

from __future__ import annotations

from fly_common.record import record

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from fly_target.amd.facts import AmdFacts
    from fly_target.nvidia.facts import NvidiaFacts

# The 8-bit floats of a chip's conversions and matrix instructions; MLIR's names.
FNUZ = "fnuz"  # -0 encodes NaN, no infinity
OCP = "ocp"  # as specified by the Open Compute Project
FLOAT8: dict[str, tuple[str, ...]] = {
    "": (),
    FNUZ: ("f8E4M3FNUZ", "f8E5M2FNUZ"),
    OCP: ("f8E4M3FN", "f8E5M2"),
}


@record
class LdsBanks:
    """The banks of LDS (shared memory); `fly_target.bank_conflicts` computes conflicts from them.

    `count` banks of 4 bytes. `crossed`: the lanes that a 12- or 16-byte load serves together are
    not consecutive. `doubled` holds the (kind, bytes per lane) of accesses that are served by twice
    as many banks, for twice as many lanes.
    """

    count: int = 32
    crossed: bool = False
    doubled: tuple[tuple[str, int], ...] = ()


@record
class Target:
    """A chip. Sizes are in bytes.

    `name` is the name that users give, `cpu` LLVM's name (-mcpu). `backend` names the pipeline that
    lowers to it, `family` its architecture. `wave_sizes` holds the supported wave sizes, first
    LLVM's default. `lds` is the maximum per workgroup, `cache_line` the line size of the first
    vector memory cache. `float8` is FNUZ, OCP or "". `block_floats` are the formats of 6 and 4 bits
    that it converts. `matrix` names its set of matrix instructions, or is "".
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
    nvidia: NvidiaFacts | None = None

    @property
    def wave_size(self) -> int:
        """The default number of lanes of a wave."""
        return self.wave_sizes[0]

    @property
    def narrow_floats(self) -> tuple[str, ...]:
        """The formats of 8 bits and less that it converts to and from f32; MLIR's names."""
        return FLOAT8[self.float8] + self.block_floats

    @property
    def traits(self) -> frozenset[str]:
        """The traits by which instruction tables select rows: the family, the set of matrix
        instructions, the kind of 8-bit floats, and those of the vendor's record."""
        words = {self.family, self.matrix, self.float8}
        for facts in (self.amd, self.nvidia):
            if facts is not None:
                words |= facts.traits
        return frozenset(words - {""})
