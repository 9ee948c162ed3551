"""`fx.Empty`: a type whose one value takes no memory, for what a configuration leaves out."""

from __future__ import annotations

from typing import Any


class Empty:
    """The value of no bytes, with alignment 1. Allocating it takes no memory: `peek()` gives
    `Empty()`, and `poke(Empty())` does nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: Any) -> Any:
        return True if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(type(self))

    def __extract_to_ir_values__(self) -> list[Any]:
        return []

    @classmethod
    def __construct_from_ir_values__(cls, values: list[Any], exemplar: Any = None) -> Any:
        if values:
            raise ValueError(f"{cls.__name__} expected 0 ir.Values, got {len(values)}")
        return cls()

    @classmethod
    def __get_ir_types__(cls) -> list[Any]:
        return []

    @classmethod
    def __cache_signature__(cls) -> Any:
        return cls.__module__, cls.__qualname__

    def __c_abi_spec__(self) -> list[Any]:
        return []

    @classmethod
    def __dsl_size_of__(cls) -> int:
        return 0

    @classmethod
    def __dsl_align_of__(cls) -> int:
        return 1

    @classmethod
    def __peek_from_ptr__(cls, ptr: Any) -> Any:
        return cls()

    @classmethod
    def __poke_into_ptr__(cls, ptr: Any, value: Any) -> None:
        if not isinstance(value, cls):
            raise TypeError(f"{cls.__name__} is stored here, not {type(value).__name__}")
