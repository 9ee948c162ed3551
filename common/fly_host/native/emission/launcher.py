"""The launcher of a specialisation as LLVM IR: one function with the signature of a Python builtin
(METH_FASTCALL), `ptr @call(ptr self, ptr args, i64 nargs)`.

    arguments   count, types, dtypes, layouts, numbers          a guard that fails: NotImplemented
    ahead       integers and checks that are needed in any case     the same
    steps       allocate, launch, call, loop, branch            a failure: an error
    results     None, a tensor, integers, tuples of them

`self` is a bytearray with the table of slots. The text has no addresses: CPython's functions are
imported by name, whatever else differs between processes is in a slot. So the object can be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_host.native.emission import arithmetic, fitting, objects, outputs
from fly_host.native.emission.frame import ERROR, LEAVE, MISS, UNREADABLE, Frame, Site, Slots, Way
from fly_host.native.emission.guards import scalars
from fly_host.native.emission.guards.tensors import Reader
from fly_host.native.emission.steps import Steps
from fly_host.native.probing import Torch
from fly_host.native.specialisation import CPU, Batch, Specialisation
from fly_host.program import Allocate, Parameter, Scalar, Stream, Tensor, every_step

_DECLARATIONS = """\
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
@_Py_NotImplementedStruct = external global i8
@PyLong_Type = external global i8
@PyFloat_Type = external global i8
declare ptr @PyByteArray_AsString(ptr) #0
declare void @Py_IncRef(ptr) #0
declare void @Py_DecRef(ptr) #0
declare void @PyErr_Clear() #0
declare ptr @PyErr_Occurred() #0
declare i32 @PyErr_CheckSignals() #0
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr) #0
declare i64 @PyLong_AsUnsignedLongLong(ptr) #0
declare ptr @PyLong_AsVoidPtr(ptr) #0
declare ptr @PyLong_FromLongLong(i64) #0
declare double @PyFloat_AsDouble(ptr) #0
declare ptr @PyFloat_FromDouble(double) #0
declare i32 @PyFloat_Pack2(double, ptr, i32) #0
declare ptr @PyTuple_New(i64) #0
declare i32 @PyTuple_SetItem(ptr, i64, ptr) #0
declare ptr @PyTuple_GetItem(ptr, i64) #0
declare ptr @PyBytes_FromStringAndSize(ptr, i64) #0
declare ptr @PyObject_GetAttr(ptr, ptr) #0
declare ptr @PyObject_CallNoArgs(ptr) #0
declare ptr @PyObject_CallOneArg(ptr, ptr) #0
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...) #0
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr) #0
declare ptr @PyEval_SaveThread() #0
declare void @PyEval_RestoreThread(ptr) #0
declare i64 @llvm.abs.i64(i64, i1)
declare double @llvm.fabs.f64(double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
_END = "attributes #0 = { nounwind nonlazybind }\n!0 = !{}\n"


@dataclass(frozen=True)
class Text:
    """A launcher's LLVM IR, and what belongs to it: the names of its slots, the sites where it can
    fail, the batches that a Python entry gets."""

    llvm: str
    slots: Slots
    sites: tuple[Site, ...]
    batches: tuple[Batch, ...]


def write(
    specialisation: Specialisation, way: Way, torch: Torch | None, keep: bool = False
) -> Text:
    """The launcher. `keep`: it returns its result together with all tensors that it made, and
    frees none."""
    frame = Frame(specialisation, way, torch)
    code, program = frame.code, specialisation.program
    for launch, limits in zip(program.launches, specialisation.limits, strict=True):
        fitting.check_interface(frame, launch, limits)
    steps = Steps(frame, keep)
    code.do("%table = call ptr @PyByteArray_AsString(ptr %self)")
    _arguments(frame, steps)
    steps.ahead()
    steps.run(program.steps)
    room = code.room("ptr")
    result = objects.result(frame, program.results)
    if keep:
        result = _kept(frame, result)
    code.store("ptr", result, room)
    code.jump(LEAVE)
    code.begin(ERROR)
    code.store("ptr", "null", room)
    code.jump(LEAVE)
    code.begin(LEAVE)
    frame.drop_all()
    code.do(f"ret ptr {code.load('ptr', room)}")
    code.begin(UNREADABLE)
    code.do("call void @PyErr_Clear()")
    code.jump(MISS)
    code.begin(MISS)
    code.do(f"ret ptr {frame.increased('@_Py_NotImplementedStruct')}")
    body = "\n".join(["entry:", *code.allocations, *code.lines])
    helpers = _helpers(frame, body)
    llvm = "".join(
        (
            _DECLARATIONS,
            *(line + "\n" for line in arithmetic.DECLARATIONS),
            *helpers,
            "\ndefine ptr @call(ptr %self, ptr %args, i64 %nargs) nounwind {\n",
            body,
            "\n}\n\n",
            _END,
        )
    )
    return Text(llvm, frame.slots, tuple(frame.sites), tuple(steps.launches.batches))


def _helpers(frame: Frame, body: str) -> list[str]:
    """The functions that the launcher calls, and those that they call."""
    found = [text for _, text, _ in frame.guards.values()]
    if _allocates(frame):
        found += outputs.helpers(frame)
    if "@fail(" in body:
        found.insert(0, objects.FAIL)
    if "@integers(" in body + "".join(found):
        found.insert(0, objects.INTEGERS)
    return found


def _allocates(frame: Frame) -> bool:
    return any(isinstance(step, Allocate) for step in every_step(frame.program.steps))


def _arguments(frame: Frame, steps: Steps) -> None:
    """Guards the arguments, in the order of the parameters."""
    code, parameters = frame.code, frame.program.parameters
    least = sum(1 for position, _ in enumerate(parameters) if _needed(parameters[position:]))
    most = len(parameters)
    if least == most:
        code.require(code.value(f"icmp eq i64 %nargs, {most}"), MISS)
    else:
        more = code.value(f"sub i64 %nargs, {least}")
        code.require(code.value(f"icmp ule i64 {more}, {most - least}"), MISS)
    reader = Reader(frame)
    found: list[str] = []
    for position, parameter in enumerate(parameters):
        place = code.at("%args", 8 * position)
        if position >= least:
            given = code.value(f"icmp ugt i64 %nargs, {position}")
            slot = code.at("%table", 8 * frame.slots.place("default", parameter.name))
            place = code.value(f"select i1 {given}, ptr {place}, ptr {slot}")
        found.append(code.value(f"load ptr, ptr {place}"))
    for parameter, object in zip(parameters, found, strict=True):
        if isinstance(parameter, Tensor):
            reader.parameter(parameter, object)
        elif isinstance(parameter, Scalar):
            scalars.read(frame, parameter, object)
        else:
            frame.streams[parameter.name] = object
    if frame.way.driver:
        orders = _allocates(frame) and frame.specialisation.made.device != CPU
        for name in dict.fromkeys(launch.stream for launch in frame.program.launches):
            if name is None:
                steps.launches.handles[name] = scalars.current_stream(frame)
            else:
                handle = scalars.stream_handle(frame, frame.streams[name])
                steps.launches.handles[name] = handle
                if orders:
                    # torch's memory is in the order of the current stream: what is freed here is
                    # used again before another stream's launches end.
                    now = scalars.current_stream(frame)
                    code.require(code.value(f"icmp eq ptr {handle}, {now}"), MISS)


def _needed(parameters: tuple[Parameter, ...]) -> bool:
    """Whether the caller has to give the first of these parameters: one of them has no default."""
    return any(
        isinstance(parameter, Tensor)
        or (isinstance(parameter, Scalar) and parameter.default is None)
        for parameter in parameters
    )


def defaults(parameters: tuple[Parameter, ...]) -> dict[str, object]:
    """What stands for the arguments that may be left out."""
    return {
        parameter.name: None if isinstance(parameter, Stream) else parameter.default
        for position, parameter in enumerate(parameters)
        if not isinstance(parameter, Tensor) and not _needed(parameters[position:])
    }


def _kept(frame: Frame, result: str) -> str:
    """(result, tensors that were made)."""
    code = frame.code
    frame.temporary(result)
    names = [t.name for t in frame.program.tensors if t.name in frame.owners]
    both = frame.succeed(code.value("call ptr @PyTuple_New(i64 2)"))
    frame.temporary(both)
    made = frame.succeed(code.value(f"call ptr @PyTuple_New(i64 {len(names)})"))
    code.do(f"call i32 @PyTuple_SetItem(ptr {both}, i64 0, ptr {frame.increased(result)})")
    code.do(f"call i32 @PyTuple_SetItem(ptr {both}, i64 1, ptr {made})")
    for position, name in enumerate(names):
        tensor = code.load("ptr", frame.owner(name))
        empty = code.value(f"icmp eq ptr {tensor}, null")
        item = code.value(f"select i1 {empty}, ptr @_Py_NoneStruct, ptr {tensor}")
        frame.increased(item)
        code.do(f"call i32 @PyTuple_SetItem(ptr {made}, i64 {position}, ptr {item})")
    return frame.increased(both)
