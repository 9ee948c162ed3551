"""Launch steps: limits, packed arguments, and the device's entry.

A driver's function is called for each launch. A Python callable is called once for launches that
follow each other (`specialisation.Batch`): frees between them are put off until it has run, as the
memory has to live that long.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.native.emission.fitting import fits, word_size
from fly_host.native.emission.frame import ERROR, Frame, Value
from fly_host.native.specialisation import (
    Batch,
    KernelLimits,
    streams,
)
from fly_host.program import Launch, Word, needs
from fly_host.tiles import GROUP

HEADER = 64  # bytes before the packed arguments of a launch in a batch
BUFFER_POINTER, BUFFER_SIZE = 1, 2  # CU_LAUNCH_PARAM_*, HIP_LAUNCH_PARAM_*


@dataclass(frozen=True)
class Packed:
    """A launch that is ready: grid, block and shared memory, and where its arguments are."""

    number: int
    numbers: tuple[str, ...]  # grid, block, shared: i64
    some: str  # i1: the grid is not empty
    arguments: str
    nbytes: int


class Launches:
    """The launches of a frame. `known` are the numbers of those that were checked ahead."""

    def __init__(self, frame: Frame):
        self.frame, self.code = frame, frame.code
        self.known: set[int] = set()
        self.batches: list[Batch] = []
        self._waiting: list[tuple[int, Launch]] = []
        self._freed: list[str] = []
        self.handles: dict[str | None, str] = {}  # of streams

    # -- steps
    def launch(self, number: int, launch: Launch) -> None:
        if self.frame.way.driver:
            self.check(number, launch)
            self._driver(number, launch, self._pack(number, launch))
        else:
            if number not in self.known:
                self.flush()
                self.check(number, launch)
            self._waiting.append((number, launch))

    def free(self, name: str) -> None:
        if self._waiting:
            self._freed.append(name)
        else:
            self.frame.own(name, "null")

    def check(self, number: int, launch: Launch) -> None:
        """The conditions of a launch that could not be looked at ahead."""
        if number in self.known:
            return
        frame, together = self.frame, None
        for index in needs(launch):
            frame.need(index)
        for condition, _ in fits(frame, launch, frame.specialisation.limits[number]):
            together = self.code.both(together, condition)
        if together is not None:
            frame.demand(together, ("launch", number), needs(launch))

    def limits(self, number: int) -> KernelLimits:
        return self.frame.specialisation.limits[number]

    # -- packing
    def _pack(self, number: int, launch: Launch, room: str | None = None) -> Packed:
        """Packs a launch on the stack, or where `room` is."""
        code, frame, limits = self.code, self.frame, self.limits(number)
        numbers = [frame.need(index) for index in (*launch.grid, *launch.block, launch.shared)]
        nbytes = limits.argument_bytes
        if room is None:
            room = code.room(f"[{max(nbytes, 8)} x i8]", 16)
        code.do(f"call void @llvm.memset.p0.i64(ptr {room}, i8 0, i64 {nbytes}, i1 false)")
        for (offset, _), words in zip(limits.arguments, launch.arguments, strict=True):
            at = offset
            for word in words:
                place = code.at(room, at)
                if word.descriptor is not None:
                    self._describe(number, word, place)
                else:
                    kind, value = self._word(word)
                    code.do(f"store {kind} {value}, ptr {place}, align 1")
                at += word_size(frame, word)
        nothing = "false"
        for count in numbers[:3]:
            zero = code.value(f"icmp eq i64 {count}, 0")
            nothing = zero if nothing == "false" else code.value(f"or i1 {nothing}, {zero}")
        some = code.value(f"xor i1 {nothing}, true")
        return Packed(number, tuple(numbers), some, room, nbytes)

    def _word(self, word: Word) -> tuple[str, str]:
        """A word's LLVM type and value. A Python entry gets no addresses, only what is added."""
        frame, code = self.frame, self.code
        offset = "0" if word.expression is None else frame.need(word.expression)
        if word.kind == "pointer":
            if not frame.way.driver:
                return "i64", offset
            data = frame.tensors[str(word.name)].data
            return "ptr", code.value(f"getelementptr i8, ptr {data}, i64 {offset}")
        if word.kind == "scalar":
            scalar = frame.scalars[str(word.name)]
            return scalar.kind, scalar.bits
        if word.size == 8:
            return "i64", offset
        return f"i{8 * word.size}", code.value(f"trunc i64 {offset} to i{8 * word.size}")

    def _describe(self, number: int, word: Word, place: str) -> None:
        """Makes a tensor's descriptor, and puts it to its place among the arguments."""
        code, frame, found = self.code, self.frame, word.descriptor
        describing = frame.way.describing
        assert found is not None
        assert describing is not None
        size, rank = ELEMENT_TYPES[found.dtype].bytes, len(found.shape)
        extents = [frame.need(index) for index in found.shape]
        strides = []
        for extent, index in zip(extents[1:], found.strides, strict=True):
            stride = code.value(f"mul i64 {frame.need(index)}, {size}")
            single = code.value(f"icmp eq i64 {extent}, 1")
            # The stride of a mode with one element does not matter, but has to be a sound one.
            strides.append(code.value(f"select i1 {single}, i64 {GROUP}, i64 {stride}"))
        arrays = [code.integers(extents), code.integers(strides)]
        for numbers in (found.box, (1,) * rank):
            arrays.append(code.room(f"[{rank} x i32]"))
            for mode, count in enumerate(numbers):
                code.store("i32", str(count), arrays[-1], 4 * mode)
        room = code.room(f"[{word.size} x i8]", 64)
        kinds = describing.rounded if found.rounded else describing.elements
        kind = dict(kinds)[found.dtype]
        choices = (0, dict(describing.swizzles)[found.swizzle], describing.promotion, 0)
        given = [f"ptr {room}", f"i32 {kind}", f"i32 {rank}"]
        given += [f"ptr {one}" for one in (frame.tensors[str(word.name)].data, *arrays)]
        given += [f"i32 {choice}" for choice in choices]
        function = frame.slot("describe")
        self._succeed(number, code.value(f"call i32 {function}({', '.join(given)})"))
        for at in range(0, word.size, 8):
            value = code.load("i64", room, at)
            code.do(f"store i64 {value}, ptr {code.at(place, at)}, align 1")

    def _succeed(self, number: int, status: str) -> None:
        """Goes on where the driver's status is 0; else the launch has failed."""
        frame, code = self.frame, self.code
        bad, ready = code.name("bad"), code.name("ready")
        code.branch(code.value(f"icmp eq i32 {status}, 0"), ready, bad)
        code.begin(bad)
        room = code.integers([code.value(f"sext i32 {status} to i64")])
        error = frame.slot("error")
        code.do(f"call void @fail(ptr {error}, i64 {number}, ptr {room}, i64 1)")
        code.jump(ERROR)
        code.begin(ready)

    # -- a driver's function
    def _driver(self, number: int, launch: Launch, packed: Packed) -> None:
        frame, code, way = self.frame, self.code, self.frame.way
        extra = code.room("[5 x i64]")
        size = code.room("i64")
        code.store("i64", str(packed.nbytes), size)
        words = [
            str(BUFFER_POINTER),
            code.value(f"ptrtoint ptr {packed.arguments} to i64"),
            str(BUFFER_SIZE),
            code.value(f"ptrtoint ptr {size} to i64"),
            str(way.end),
        ]
        for position, word in enumerate(words):
            code.store("i64", word, extra, 8 * position)
        dimensions = ", ".join(
            f"i32 {code.value(f'trunc i64 {value} to i32')}" for value in packed.numbers
        )
        run, ready = code.name("run"), code.name("ready")
        code.branch(packed.some, run, ready)
        code.begin(run)
        function, kernel = frame.slot("entry"), frame.slot("kernel", number)
        thread = code.value("call ptr @PyEval_SaveThread()") if way.blocking else ""
        status = code.value(
            f"call i32 {function}(ptr {kernel}, {dimensions}, ptr {self.handles[launch.stream]},"
            f" ptr null, ptr {extra})"
        )
        if way.blocking:
            code.do(f"call void @PyEval_RestoreThread(ptr {thread})")
        bad = code.name("bad")
        code.branch(code.value(f"icmp eq i32 {status}, 0"), ready, bad)
        code.begin(bad)
        room = code.integers([code.value(f"sext i32 {status} to i64")])
        error = frame.slot("error")
        code.do(f"call void @fail(ptr {error}, i64 {number}, ptr {room}, i64 1)")
        code.jump(ERROR)
        code.begin(ready)

    # -- a Python callable
    def flush(self) -> None:
        """Hands over the launches that wait."""
        waiting, freed = self._waiting, self._freed
        self._waiting, self._freed = [], []
        if waiting:
            self._hand_over(waiting)
        for name in freed:
            self.frame.own(name, "null")

    def _hand_over(self, waiting: list[tuple[int, Launch]]) -> None:
        frame, code = self.frame, self.code
        batch = self._batch(waiting)
        total = sum(batch.sizes)
        room = code.room(f"[{total} x i8]", 16)
        at = 0
        for (number, launch), size in zip(waiting, batch.sizes, strict=True):
            start = code.at(room, at)
            packed = self._pack(number, launch, code.at(room, at + HEADER))
            for position, value in enumerate((str(number), *packed.numbers)):
                code.store("i64", value, start, 8 * position)
            end = HEADER + packed.nbytes
            if end < size:
                rest = code.at(start, end)
                code.do(
                    f"call void @llvm.memset.p0.i64(ptr {rest}, i8 0, i64 {size - end}, i1 false)"
                )
            at += size
        words = [word for name in batch.tensors for word in self.covered(frame.tensors[name])]
        buffers = self._bytes(code.integers(words), 8 * len(words))
        launches = self._bytes(room, total)
        number = frame.slot("batch", len(self.batches))
        self.batches.append(batch)
        given = [frame.streams[name] for name in streams(frame.program)]
        arguments = ", ".join(f"ptr {value}" for value in (number, buffers, launches, *given))
        made = code.value(
            f"call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr {frame.slot('entry')},"
            f" {arguments}, ptr null)"
        )
        frame.succeed(made)
        code.do(f"call void @Py_DecRef(ptr {made})")

    def _batch(self, waiting: list[tuple[int, Launch]]) -> Batch:
        names: dict[str, int] = {}
        sizes: list[int] = []
        pointers: list[tuple[tuple[int, int], ...]] = []
        for number, launch in waiting:
            limits, places = self.limits(number), list[tuple[int, int]]()
            for (offset, _), words in zip(limits.arguments, launch.arguments, strict=True):
                at = HEADER + offset
                for word in words:
                    if word.kind == "pointer":
                        position = names.setdefault(str(word.name), len(names))
                        places.append((at, position))
                    at += word_size(self.frame, word)
            sizes.append((HEADER + limits.argument_bytes + 7) // 8 * 8)
            pointers.append(tuple(places))
        numbers = tuple(number for number, _ in waiting)
        return Batch(numbers, tuple(names), tuple(sizes), tuple(pointers))

    def _bytes(self, room: str, count: int) -> str:
        made = self.code.value(f"call ptr @PyBytes_FromStringAndSize(ptr {room}, i64 {count})")
        return self.frame.temporary(self.frame.succeed(made))

    def covered(self, tensor: Value) -> tuple[str, str, str]:
        """The bytes that a tensor's elements cover, its padding too: address, size, how far in
        element zero is."""
        code, low, high = self.code, "0", "0"
        empty = "false"
        for extent, stride in zip(tensor.shape, tensor.strides, strict=True):
            rest = code.value(f"sub i64 {extent}, 1")
            step = code.value(f"mul i64 {rest}, {stride}")
            low = code.value(f"add i64 {low}, {_bounded(self, 'smin', step)}")
            high = code.value(f"add i64 {high}, {_bounded(self, 'smax', step)}")
            empty = code.value(f"or i1 {empty}, {code.value(f'icmp eq i64 {extent}, 0')}")
        size = tensor.itemsize
        before = code.value(f"mul i64 {low}, {size}")
        count = code.value(f"add i64 {code.value(f'sub i64 {high}, {low}')}, 1")
        covered = code.value(f"mul i64 {count}, {size}")
        if tensor.elements != "0":
            whole = code.value(f"mul i64 {tensor.elements}, {size}")
            covered = code.value(f"call i64 @llvm.smax.i64(i64 {covered}, i64 {whole})")
        before = code.value(f"select i1 {empty}, i64 0, i64 {before}")
        covered = code.value(f"select i1 {empty}, i64 0, i64 {covered}")
        address = code.value(f"ptrtoint ptr {tensor.data} to i64")
        first = code.value(f"add i64 {address}, {before}")
        return first, covered, code.value(f"sub i64 0, {before}")


def _bounded(launches: Launches, which: str, value: str) -> str:
    return launches.code.value(f"call i64 @llvm.{which}.i64(i64 {value}, i64 0)")
