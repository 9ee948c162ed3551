"""Copy and matrix instructions as types, behind two interfaces. Imports no MLIR.

interface       CopyOp, MmaOp, StateField
registry        the instructions by name
universal       copies, atomics and a multiply-add for any hardware
mfma            matrix instructions of CDNA
wmma            matrix instructions of RDNA and gfx1250
buffer          copies through buffer descriptors, and to LDS
lds_transpose   transposing LDS reads
tdm             the tensor data mover
specs           !fly.copy_atom, !fly.mma_atom, !fly.tiled_copy, !fly.tiled_mma
"""

from fly_dialect.atoms.interface import AtomOp, CopyOp, MmaOp, StateField
from fly_dialect.atoms.registry import families
from fly_dialect.atoms.specs import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec

__all__ = [
    "AtomOp",
    "CopyAtomSpec",
    "CopyOp",
    "MmaAtomSpec",
    "MmaOp",
    "StateField",
    "TiledCopySpec",
    "TiledMmaSpec",
    "families",
]
