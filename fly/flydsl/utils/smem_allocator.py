"""`flydsl.utils.smem_allocator`: how much shared memory a workgroup has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fly_common.errors import InputError
from fly_target import registry


class _Capacities(Mapping[str, int]):
    """Bytes of a workgroup's shared memory, by chip."""

    def __getitem__(self, chip: str) -> int:
        row = registry.get(chip)
        if row is None:
            raise KeyError(chip)
        return row.lds

    def __iter__(self) -> Iterator[str]:
        return iter(registry.BUILT_IN)

    def __len__(self) -> int:
        return len(registry.BUILT_IN)


SMEM_CAPACITY_MAP = _Capacities()


def check_smem_capacity(allocated_bytes: int, arch: str | None = None) -> None:
    """Raises InputError if a chip has less shared memory for a workgroup."""
    most = SMEM_CAPACITY_MAP.get(arch) if arch is not None else None
    if most is not None and allocated_bytes > most:
        raise InputError(
            f"{allocated_bytes} bytes of shared memory, but a workgroup of {arch} has at most"
            f" {most}"
        )
