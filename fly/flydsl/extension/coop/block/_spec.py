"""`Algorithm[dtype, block size, policy]`: classes of algorithms of a block, for one case each."""

from __future__ import annotations

from typing import Any

from fly.flydsl.compiler.backends import current_target
from fly.flydsl.expr.gpu import num_warp_threads
from fly.flydsl.extension.coop._common import require_power_of_two

# (class, dtype, block size, policy, lanes) → the class for that case.
_MADE: dict[Any, Any] = {}


def _sizes(block_size: Any) -> tuple[int, int, int]:
    sizes = tuple(block_size) if isinstance(block_size, (tuple, list)) else (block_size, 1, 1)
    if len(sizes) != 3:
        raise TypeError(f"block_size must be an int or a 3-tuple, got {block_size!r}")
    for axis, size in zip("xyz", sizes, strict=True):
        if not isinstance(size, int) or size < 1:
            raise TypeError(f"block_dim_{axis} must be a positive Python int, got {size!r}")
    x, y, z = sizes
    return x, y, z


class BlockAlgorithmMeta(type):
    """The metaclass of an algorithm. Its own metaclass says which policies there are, what shared
    memory each needs, and which one is a target's default."""

    _algorithms: Any = None  # an enum
    _shared_storage: Any = None  # policy → function of dtype, threads, lanes: a struct

    def _default_algorithm_for(cls, target: Any) -> Any:
        raise NotImplementedError(f"{cls.__name__} must implement _default_algorithm_for")

    def __getitem__(cls: Any, given: Any) -> Any:
        if cls.block_threads is not None:
            raise TypeError(f"{cls.__name__} is already specialized")
        words: tuple[Any, ...] = given if isinstance(given, tuple) else (given,)
        if len(words) not in (2, 3):
            raise TypeError(f"{cls.__name__}[dtype, block_size, algorithm=...]")
        dtype, sizes = words[0], _sizes(words[1])
        policy = words[2] if len(words) == 3 else cls._default_algorithm_for(current_target())
        if not isinstance(policy, cls._algorithms):
            raise TypeError(f"expected a {cls._algorithms.__name__}, got {policy!r}")
        threads = sizes[0] * sizes[1] * sizes[2]
        require_power_of_two(threads, "block_dim_x * block_dim_y * block_dim_z")
        # A block of less than a wave is one group of its own lanes: the others are not there.
        lanes = min(num_warp_threads(), threads)
        key = cls, dtype, sizes, policy, lanes
        if key not in _MADE:
            _MADE[key] = cls._specialized(dtype, sizes, policy, threads, lanes)
        return _MADE[key]

    def _specialized(
        cls: Any, dtype: Any, sizes: Any, policy: Any, threads: int, lanes: int
    ) -> Any:
        storage = cls._shared_storage.get(policy)
        if storage is None:
            raise NotImplementedError(
                f"{cls._algorithms.__name__}.{policy.name} is not implemented; there are "
                + ", ".join(one.name for one in cls._shared_storage)
            )
        body = {
            "dtype": dtype,
            "block_size": sizes,
            "block_threads": threads,
            "algorithm": policy,
            "warp_threads": lanes,
            "num_warps": threads // lanes,
            "SharedStorage": storage(dtype, threads, lanes),
        }
        return type(cls)(
            f"{cls.__name__}[{dtype.__name__}, {threads}, {policy.name}]", (cls,), body
        )


class BlockAlgorithm:
    """What a class for one case has."""

    dtype: Any = None
    block_size: Any = None
    block_threads: Any = None
    algorithm: Any = None
    warp_threads: Any = None
    num_warps: Any = None
    SharedStorage: Any = None
