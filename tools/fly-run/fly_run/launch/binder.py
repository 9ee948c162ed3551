"""Binds arguments of one plan repeatedly.

Except for addresses and the values of scalars, the checks and results of `bind` depend only on
shapes, strides and types. So they are cached for each such combination, and later calls only fill
in addresses and scalars. Any call that is not clearly of this kind goes to `bind`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fly_host.plan import Plan, Scalar, Tensor
from fly_image.image import Image

from fly_run.launch import dtypes
from fly_run.launch.binding import Bound, BoundLaunch, Buffer, Value, bind

if TYPE_CHECKING:
    import numpy as np

MOST_KEPT = 256  # combinations of shapes; the oldest is evicted
# Bits of `ndarray.flags.num` (numpy/ndarraytypes.h).
ALIGNED, WRITEABLE = 0x100, 0x400


class _Tensor(NamedTuple):
    """A tensor parameter: the NumPy type that its arrays usually have, and the flags they need."""

    name: str
    dtype: np.dtype
    flags: int
    writable: bool


class _Scalar(NamedTuple):
    """A scalar parameter. `kinds` are the Python types whose values need no conversion; `counts`
    tells that expressions of the plan use it."""

    name: str
    dtype: str
    default: Any
    kinds: tuple[type, ...]
    counts: bool


class _Known(NamedTuple):
    """The results that depend on shapes. `spans`: for each tensor, how far its memory starts before
    element zero, and its size in bytes. `scalars`: for each launch, the scalars in its arguments,
    as offset and name."""

    spans: tuple[tuple[int, int], ...]
    launches: tuple[BoundLaunch, ...]
    scalars: tuple[tuple[tuple[int, _Scalar], ...], ...]


class Binder:
    """Binds arguments for the plan of one image. Safe to share between threads."""

    def __init__(self, plan: Plan, image: Image):
        import numpy

        self._array = numpy.ndarray
        self._plan, self._image = plan, image
        used = {operands[0] for kind, *operands in plan.expressions if kind == "scalar"}
        self._tensors = tuple(
            _Tensor(
                tensor.name,
                dtypes.numpy_dtype(tensor.dtype),
                ALIGNED if tensor.access == "r" else ALIGNED | WRITEABLE,
                tensor.access != "r",
            )
            for tensor in plan.parameters
            if isinstance(tensor, Tensor)
        )
        self._scalars = tuple(
            _Scalar(s.name, s.dtype, s.default, _kinds(s.dtype), s.name in used)
            for s in plan.parameters
            if isinstance(s, Scalar)
        )
        self._known: dict[tuple[Any, ...], _Known] = {}

    def bind(self, values: Mapping[str, Value]) -> Bound:
        """See `fly_run.launch.binding.bind`: the results and the errors are the same."""
        key = self._key(values)
        if key is None:
            return bind(self._plan, self._image, values)
        known = self._known.get(key)
        if known is None:
            bound = bind(self._plan, self._image, values)
            if len(self._known) >= MOST_KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[key] = self._remembered(bound)
            return bound
        arrays, buffers = {}, []
        for (name, _, _, writable), (before, nbytes) in zip(
            self._tensors, known.spans, strict=True
        ):
            arrays[name] = array = values[name]
            start = array.ctypes.data  # type: ignore[union-attr]
            buffers.append(Buffer(name, start - before, nbytes, before, writable))
        launches = known.launches
        if any(known.scalars):
            try:
                launches = tuple(
                    _with_scalars(launch, scalars, values)
                    for launch, scalars in zip(launches, known.scalars, strict=True)
                )
            except OverflowError:
                return bind(self._plan, self._image, values)
        return Bound(tuple(buffers), launches, arrays)

    def _key(self, values: Mapping[str, Value]) -> tuple[Any, ...] | None:
        """Returns the cache key of a call; None if the call needs `bind`."""
        key: list[Any] = []
        found = 0
        for name, dtype, flags, _ in self._tensors:
            array: Any = values.get(name)
            if type(array) is not self._array:
                return None
            # The usual type is one object; an equal but different one takes the slow path.
            if array.dtype is not dtype or array.flags.num & flags != flags:
                return None
            key += (array.shape, array.strides)
            found += 1
        for name, _, default, kinds, counts in self._scalars:
            if name in values:
                found += 1
                value = values[name]
            else:
                value = default
            if type(value) not in kinds:
                return None
            if counts:
                key.append(value)
        return tuple(key) if found == len(values) else None

    def _remembered(self, bound: Bound) -> _Known:
        spans = tuple((buffer.origin, buffer.nbytes) for buffer in bound.buffers)
        varying = {scalar.name: scalar for scalar in self._scalars if not scalar.counts}
        places = []
        for launch in self._plan.launches:
            arguments = self._image.kernel(launch.kernel).arguments
            found: list[tuple[int, _Scalar]] = []
            for argument, words in zip(arguments, launch.arguments, strict=True):
                at = argument.offset
                for word in words:
                    if word.kind == "scalar":
                        if word.name in varying:
                            found.append((at, varying[word.name]))
                        at += dtypes.SIZES[self._scalar(word.name).dtype]
                    else:
                        at += 8 if word.kind == "pointer" else word.size
            places.append(tuple(found))
        return _Known(spans, bound.launches, tuple(places))

    def _scalar(self, name: str | None) -> _Scalar:
        return next(scalar for scalar in self._scalars if scalar.name == name)


def _kinds(dtype: str) -> tuple[type, ...]:
    if dtype == "bool":
        return (bool,)
    return (float, int) if dtype in dtypes.FLOATS else (int,)


def _with_scalars(
    launch: BoundLaunch, scalars: tuple[tuple[int, _Scalar], ...], values: Mapping[str, Any]
) -> BoundLaunch:
    """Returns the launch with these values of scalars. OverflowError for one that does not fit."""
    if not scalars:
        return launch
    made = bytearray(launch.kernarg)
    for at, scalar in scalars:
        content = dtypes.pack_scalar(values.get(scalar.name, scalar.default), scalar.dtype)
        made[at : at + len(content)] = content
    return launch._replace(kernarg=bytes(made))
