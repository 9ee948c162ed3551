"""`Algorithm[dtype, width, items_per_thread, policy]`: classes of algorithms of a wave."""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import DType

from fly.flydsl.expr.struct import Empty
from fly.flydsl.extension.coop._common import resolve_warp_width
from fly.flydsl.extension.coop._items import converted, is_sequence, items_of, shaped

# (class, what it is specialized for) → the class for that case.
_MADE: dict[Any, Any] = {}


class WarpMeta(type):
    """The metaclass of an algorithm. `_least` is the smallest number of items of a lane, None for
    an algorithm without such a number. `_policies` is an enum, and `_policy` its default."""

    _least: int | None = 1
    _policies: Any = None
    _policy: Any = None
    _pairs = False  # whether the type may be (key type, value type)

    def __getitem__(cls: Any, given: Any) -> Any:
        if cls.warp_threads is not None:
            raise TypeError(f"{cls.__name__} is already specialized")
        words = list(given) if isinstance(given, tuple) else [given]
        form = f"{cls.__name__}[dtype, width"
        form += ", items_per_thread" if cls._least is not None else ""
        form += ", algorithm=...]" if cls._policies is not None else "]"
        first, last = (1, 2) if cls._least is None else (3, 3 + (cls._policies is not None))
        if not first <= len(words) <= last:
            raise TypeError(form)
        types = words[0] if isinstance(words[0], tuple) else (words[0], None)
        if isinstance(words[0], tuple) and (not cls._pairs or len(types) != 2):
            raise TypeError(f"{cls.__name__} takes one element type, got {words[0]!r}")
        for one in types if isinstance(words[0], tuple) else types[:1]:
            if not isinstance(one, DType):
                raise TypeError(f"the elements of {cls.__name__} are numbers here, not {one!r}")
        width = words[1] if len(words) > 1 else None
        if isinstance(width, bool):
            raise TypeError("the width is a Python int, or None for the wave's lanes")
        width = resolve_warp_width(width, f"{cls.__name__} width")
        count = words[2] if cls._least is not None else None
        if cls._least is not None and (type(count) is not int or count < cls._least):
            raise ValueError(f"items_per_thread must be a Python int >= {cls._least}")
        policy = words[3] if len(words) == 4 else cls._policy
        if cls._policies is not None and not isinstance(policy, cls._policies):
            raise TypeError(f"expected a {cls._policies.__name__}, got {policy!r}")
        key = cls, types, width, count, policy
        if key not in _MADE:
            _MADE[key] = cls._specialized(types, width, count, policy)
        return _MADE[key]

    def _specialized(
        cls: Any, types: tuple[Any, Any], width: int, count: int | None, policy: Any
    ) -> Any:
        shown = [types[0].__name__, str(width)]
        shown += [] if count is None else [str(count)]
        shown += [] if policy is None else [policy.name]
        body = {
            "dtype": types[0],
            "key_dtype": types[0],
            "value_dtype": types[1],
            "warp_threads": width,
            "items_per_thread": count,
            "algorithm": policy,
        }
        made = type(cls)(f"{cls.__name__}[{', '.join(shown)}]", (cls,), body)
        made.SharedStorage = made._storage()
        return made

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{cls.__name__} has no instances: call its methods, specialized")


class WarpTile:
    """What a class for one case has. `SharedStorage` is for one group of lanes: allocate
    `fx.Array[SharedStorage, groups]` and index it. Algorithms that need none have `fx.Empty`."""

    dtype: Any = None
    key_dtype: Any = None
    value_dtype: Any = None
    warp_threads: Any = None
    items_per_thread: Any = None
    algorithm: Any = None
    SharedStorage: Any = None

    @classmethod
    def _storage(cls) -> Any:
        return Empty

    @classmethod
    def _check(cls, storage: Any = None) -> None:
        if cls.warp_threads is None:
            raise TypeError(f"specialize {cls.__name__} first")
        if storage is not None and not isinstance(storage, cls.SharedStorage):
            raise TypeError(f"storage must be an instance of {cls.__name__}.SharedStorage")

    @classmethod
    def _prepared(cls, value: Any, dtype: Any = None) -> Any:
        """The value, or each of its items, in the element type."""
        dtype = cls.dtype if dtype is None else dtype
        if cls.items_per_thread is None and not is_sequence(value):
            return converted(value, dtype)
        if cls.items_per_thread == 0 and is_sequence(value) and not len(value):
            return ()
        return shaped(items_of(value, dtype, cls.items_per_thread, cls.__name__), value)
