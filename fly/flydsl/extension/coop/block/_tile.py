"""`Algorithm[dtype, block size, number, policy]`: classes of algorithms of a block's tile."""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import DType

from fly.flydsl.expr.gpu import num_warp_threads
from fly.flydsl.expr.struct import Array, Struct
from fly.flydsl.extension.coop._common import linear_thread_id, require_power_of_two
from fly.flydsl.extension.coop.block._spec import _sizes

# (class, what it is specialized for) → the class for that case.
_MADE: dict[Any, Any] = {}


class TileMeta(type):
    """The metaclass of an algorithm. `_number` names what follows the block's size in brackets, or
    is empty. `_policies` is an enum, whose first member is the default."""

    _number = "items_per_thread"
    _policies: Any = None
    _pairs = False  # whether the type may be (key type, value type)
    _second: Any = None  # the value type where none is given

    def __getitem__(cls: Any, given: Any) -> Any:
        if cls.block_threads is not None:
            raise TypeError(f"{cls.__name__} is already specialized")
        words = list(given) if isinstance(given, tuple) else [given]
        least = 3 if cls._number else 2
        form = f"{cls.__name__}[dtype, block_size{', ' + cls._number if cls._number else ''}"
        if len(words) not in (least, least + 1):
            raise TypeError(f"{form}, algorithm=...]")
        types = words[0] if isinstance(words[0], tuple) else (words[0], cls._second)
        if (isinstance(words[0], tuple) and not cls._pairs) or len(types) != 2:
            raise TypeError(f"{cls.__name__} takes one element type, got {words[0]!r}")
        for one in types:
            if one is not None and not isinstance(one, DType):
                raise TypeError(f"the elements of {cls.__name__} are numbers here, not {one!r}")
        count = words[2] if cls._number else 1
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise TypeError(f"{cls._number} must be a positive Python int, got {count!r}")
        policy = words[least] if len(words) > least else next(iter(cls._policies))
        if not isinstance(policy, cls._policies):
            raise TypeError(f"expected a {cls._policies.__name__}, got {policy!r}")
        sizes = _sizes(words[1])
        threads = sizes[0] * sizes[1] * sizes[2]
        lanes = num_warp_threads()
        if threads < lanes:
            require_power_of_two(threads, "a block of less than a wave")
            lanes = threads
        elif threads % lanes:
            raise ValueError(f"a block of {threads} threads is not a multiple of {lanes} lanes")
        key = cls, types, sizes, count, policy, lanes
        if key not in _MADE:
            body = {
                "dtype": types[0],
                "value_dtype": types[1],
                "block_size": sizes,
                "block_threads": threads,
                "algorithm": policy,
                "warp_threads": lanes,
                "count": count,
                "tile": threads * count,
            }
            if cls._number:
                body[cls._number] = count
            made = type(cls)(f"{cls.__name__}[{types[0].__name__}, {threads}]", (cls,), body)
            made.SharedStorage = made._storage()
            _MADE[key] = made
        return _MADE[key]


class Tile:
    """What a class for one case has."""

    dtype: Any = None
    value_dtype: Any = None
    block_size: Any = None
    block_threads: Any = None
    algorithm: Any = None
    warp_threads: Any = None
    count: int = 1
    tile: int = 1
    SharedStorage: Any = None

    @classmethod
    def _storage(cls) -> Any:
        raise NotImplementedError(f"{cls.__name__} must implement _storage")

    @classmethod
    def thread(cls) -> Any:
        """The number of the thread in its block."""
        if cls.block_threads is None:
            raise TypeError(f"specialize first, e.g. {cls.__name__}[fx.Int32, 256, …]")
        return linear_thread_id(cls.block_size)


def struct_of(**arrays: tuple[Any, int]) -> Any:
    """A struct of arrays: name=(element type, size)."""
    return Struct[tuple(slice(name, Array[one, size]) for name, (one, size) in arrays.items())]
