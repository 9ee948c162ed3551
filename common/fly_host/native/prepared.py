"""Prepared calls: handles that launch what one call would launch, and do nothing else.

`prepare` runs a launcher that keeps what it allocates, with a Python entry that records. For a
driver the records become packed arguments with addresses in them, and the handle is a builtin that
passes them to the driver's function. Library calls run again in each call: what they make is
copied to tensors that were made once. One library serves the handles of all programs:

    table       the driver's function, what raises, the result, the number of records, records
    record      its size in bytes, kernel, stream, packed bytes; grid, block, shared (i32), the
                launch's number (i32); packed arguments, to a multiple of 8
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fly_host.libraries.arrays import copy
from fly_host.native import arrays, failures, library
from fly_host.native.builtin import Held, builtin
from fly_host.native.emission.launches import HEADER
from fly_host.native.emission.objects import FAIL, INTEGERS
from fly_host.native.specialisation import (
    Batch,
    DriverEntry,
    Options,
    PythonEntry,
    Specialisation,
    streams,
)
from fly_host.program import Call

_HEADER = struct.Struct("<8q")
_RECORD = struct.Struct("<4q8i")

_TEXT = """\
@_Py_NotImplementedStruct = external global i8
declare ptr @PyByteArray_AsString(ptr) #0
declare void @Py_IncRef(ptr) #0
declare void @Py_DecRef(ptr) #0
declare ptr @PyLong_FromLongLong(i64) #0
declare ptr @PyTuple_New(i64) #0
declare i32 @PyTuple_SetItem(ptr, i64, ptr) #0
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...) #0
declare ptr @PyEval_SaveThread() #0
declare void @PyEval_RestoreThread(ptr) #0
{helpers}
define ptr @prepared(ptr %self, ptr %args, i64 %nargs) nounwind {{
entry:
  %extra = alloca [5 x i64]
  %size = alloca i64
  %code = alloca i64
  %table = call ptr @PyByteArray_AsString(ptr %self)
  %none = icmp eq i64 %nargs, 0
  br i1 %none, label %start, label %miss
miss:
  call void @Py_IncRef(ptr @_Py_NotImplementedStruct)
  ret ptr @_Py_NotImplementedStruct
start:
  %function = load ptr, ptr %table
  %count.at = getelementptr i8, ptr %table, i64 24
  %count = load i64, ptr %count.at
  %first = getelementptr i8, ptr %table, i64 32
  %size.word = ptrtoint ptr %size to i64
  store i64 1, ptr %extra
  %two.at = getelementptr i8, ptr %extra, i64 16
  store i64 2, ptr %two.at
  %size.at = getelementptr i8, ptr %extra, i64 24
  store i64 %size.word, ptr %size.at
  %end.at = getelementptr i8, ptr %extra, i64 32
  store i64 {end}, ptr %end.at
  %buffer.at = getelementptr i8, ptr %extra, i64 8
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %following, %next ]
  %record = phi ptr [ %first, %start ], [ %after, %next ]
  %done = icmp eq i64 %i, %count
  br i1 %done, label %end, label %body
body:
{loads}
  %packed = getelementptr i8, ptr %record, i64 64
  %packed.word = ptrtoint ptr %packed to i64
  store i64 %packed.word, ptr %buffer.at
  store i64 %nbytes, ptr %size
  {save}
  %status = call i32 %function(ptr %kernel, i32 %n0, i32 %n1, i32 %n2, i32 %n3, i32 %n4, i32 %n5,
    i32 %n6, ptr %stream, ptr null, ptr %extra)
  {restore}
  %good = icmp eq i32 %status, 0
  br i1 %good, label %next, label %bad
next:
  %after = getelementptr i8, ptr %record, i64 %length
  %following = add i64 %i, 1
  br label %head
bad:
  %wide = sext i32 %status to i64
  store i64 %wide, ptr %code
  %error.at = getelementptr i8, ptr %table, i64 8
  %error = load ptr, ptr %error.at
  %launch = zext i32 %n7 to i64
  call void @fail(ptr %error, i64 %launch, ptr %code, i64 1)
  ret ptr null
end:
  %result.at = getelementptr i8, ptr %table, i64 16
  %result = load ptr, ptr %result.at
  call void @Py_IncRef(ptr %result)
  ret ptr %result
}}

attributes #0 = {{ nounwind nonlazybind }}
"""


def text(end: int, blocking: bool) -> str:
    """The LLVM IR of handles."""
    loads: list[str] = []
    words = (
        ("i64", "length", 0),
        ("ptr", "kernel", 8),
        ("ptr", "stream", 16),
        ("i64", "nbytes", 24),
    )
    for kind, name, offset in (*words, *(("i32", f"n{n}", 32 + 4 * n) for n in range(8))):
        loads.append(f"  %{name}.at = getelementptr i8, ptr %record, i64 {offset}")
        loads.append(f"  %{name} = load {kind}, ptr %{name}.at")
    return _TEXT.format(
        helpers=INTEGERS + FAIL,
        end=end,
        loads="\n".join(loads),
        save="%thread = call ptr @PyEval_SaveThread()" if blocking else "",
        restore="call void @PyEval_RestoreThread(ptr %thread)" if blocking else "",
    )


class NoStream(Exception):
    """An argument for a stream is none."""


@dataclass(frozen=True)
class LibraryCall:
    """A call of a library function; `made` stands for the tensors that it makes."""

    function: Callable[..., tuple[Any, ...]]
    given: tuple[Any, ...]
    made: tuple[Any, ...]

    def __call__(self) -> None:
        for new, kept in zip(self.function(*self.given), self.made, strict=True):
            copy(new.detach() if hasattr(new, "detach") else new, kept)


@dataclass
class Recording:
    """A Python entry that remembers what it gets: the arguments of `run`, and library calls."""

    specialisation: Specialisation
    batches: tuple[Batch, ...]
    calls: list[tuple[Any, ...] | LibraryCall] = field(default_factory=list)

    def __call__(self, *call: Any) -> None:
        self.calls.append(call)

    def library(self, step: Call, function: Callable[..., tuple[Any, ...]]) -> Any:
        """What the launcher calls for a library call, which runs in the prepared calls only. The
        last arguments are the extents and strides of what it makes."""
        program = self.specialisation.program
        dtypes = [tensor.dtype for name in step.results for tensor in program.tensors
                  if tensor.name == name]  # fmt: skip
        makers = [arrays.allocator(self.specialisation, dtype) for dtype in dtypes]

        def made(*given: Any) -> tuple[Any, ...]:
            tensors = []
            for make, layout in zip(makers, given[len(given) - len(makers) :], strict=True):
                shape, strides = layout[: len(layout) // 2], layout[len(layout) // 2 :]
                tensors.append(make(shape, strides, 0))
            self.calls.append(LibraryCall(function, given, tuple(tensors)))
            return tuple(tensors)

        return made


@dataclass(frozen=True)
class Handle:
    """What a prepared call launches and returns. `kept` are the tensors it uses."""

    recording: Recording
    result: Any
    kept: tuple[Any, ...]

    def for_python(self, entry: PythonEntry, batches: tuple[Batch, ...]) -> Callable[[], Any]:
        """A handle for a Python entry. Its batches are those of the launcher, with which they agree
        but for what is freed between them."""
        assert self.recording.batches == batches
        run = entry.run
        steps = [
            call if isinstance(call, LibraryCall) else functools.partial(run, *call)
            for call in self.recording.calls
        ]
        return self._in_order(steps)

    def _in_order(self, steps: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        result = self.result

        def handle() -> Any:
            for step in steps:
                step()
            return result

        handle.__dict__["kept"] = self.kept
        return handle

    def for_driver(
        self,
        specialisation: Specialisation,
        entry: DriverEntry,
        options: Options,
    ) -> Any:
        """A handle for a driver's function: a builtin, or several between library calls.
        NotImplemented where a stream is none."""
        steps: list[Any] = []
        records: list[bytes] = []
        try:
            for call in self.recording.calls:
                if isinstance(call, LibraryCall):
                    if records:
                        steps.append(self._builtin(specialisation, entry, options, records))
                    steps.append(call)
                    records = []
                else:
                    records += self._records(specialisation, entry, call)
        except NoStream:
            return NotImplemented
        if records or not steps:
            steps.append(self._builtin(specialisation, entry, options, records))
        return self._in_order(steps) if len(steps) > 1 else steps[0]

    def _builtin(
        self,
        specialisation: Specialisation,
        entry: DriverEntry,
        options: Options,
        found: list[bytes],
    ) -> Any:
        records, count = b"".join(found), len(found)
        functions = library.load(text(entry.end, entry.blocking), options)
        words = struct.unpack(f"<{len(records) // 8}q", records)
        error = failures.raising(entry.error)
        table = [entry.function, Held(error), Held(self.result), count, *words]
        return builtin(specialisation.program.entry, functions.prepared, table, self.kept)

    def _records(
        self, specialisation: Specialisation, entry: DriverEntry, call: tuple[Any, ...]
    ) -> list[bytes]:
        """The launches of a batch."""
        program, made = specialisation.program, list[bytes]()
        number, buffers, launches, *given = call
        names = streams(program)
        batch = self.recording.batches[number]
        spans = list(struct.iter_unpack("<3q", buffers))
        at = 0
        for size, pointers in zip(batch.sizes, batch.pointers, strict=True):
            record = bytearray(launches[at : at + size])
            at += size
            launch, *numbers = _HEADER.unpack_from(record)
            for place, position in pointers:
                host, _, origin = spans[position]
                (offset,) = struct.unpack_from("<q", record, place)
                struct.pack_into("<q", record, place, host + origin + offset)
            if 0 in numbers[:3]:
                continue
            name = program.launches[launch].stream
            stream = None if name is None else given[names.index(name)]
            packed = bytes(record[HEADER:])
            made.append(
                _RECORD.pack(
                    _RECORD.size + len(packed),
                    entry.kernels[launch],
                    _stream_handle(stream, entry),
                    specialisation.limits[launch].argument_bytes,
                    *map(_signed, numbers),
                    launch,
                )
                + packed
            )
        return made


def _signed(number: int) -> int:
    """The bits of an unsigned 32-bit integer as a signed one."""
    return number - (1 << 32) if number >= 1 << 31 else number


def _stream_handle(stream: Any, entry: DriverEntry) -> int:
    if stream is None:
        return entry.stream() if entry.stream is not None else 0
    handle = stream if type(stream) is int else getattr(stream, "cuda_stream", None)
    if not isinstance(handle, int) or not -(1 << 63) <= handle < 1 << 63:
        raise NoStream
    return handle
