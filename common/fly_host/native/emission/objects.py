"""Python objects out of a launcher: results, and the operands of library calls.

Each function returns a new reference; null is an error that Python knows.
"""

from __future__ import annotations

from fly_host.native.emission.frame import Frame, Value
from fly_host.native.emission.guards.tensors import data_of
from fly_host.program import Buffer, Call, Operand, Result, View, needs

# A tuple of 64-bit integers.
INTEGERS = """
define internal ptr @integers(ptr %values, i64 %count) nounwind noinline {
entry:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %there = icmp ne ptr %tuple, null
  br i1 %there, label %head, label %failed
head:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %done = icmp eq i64 %i, %count
  br i1 %done, label %end, label %body
body:
  %at = getelementptr i64, ptr %values, i64 %i
  %value = load i64, ptr %at
  %item = call ptr @PyLong_FromLongLong(i64 %value)
  %made = icmp ne ptr %item, null
  br i1 %made, label %next, label %drop
next:
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %i, ptr %item)
  %following = add i64 %i, 1
  br label %head
end:
  ret ptr %tuple
drop:
  call void @Py_DecRef(ptr %tuple)
  br label %failed
failed:
  ret ptr null
}
"""

# Calls what raises for a site.
FAIL = """
define internal void @fail(ptr %callable, i64 %site, ptr %values,
    i64 %count) nounwind noinline cold {
entry:
  %number = call ptr @PyLong_FromLongLong(i64 %site)
  %numbers = call ptr @integers(ptr %values, i64 %count)
  %a = icmp ne ptr %number, null
  %b = icmp ne ptr %numbers, null
  %both = and i1 %a, %b
  br i1 %both, label %call, label %drop
call:
  %result = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %callable, ptr %number,
    ptr %numbers, ptr null)
  call void @Py_DecRef(ptr %result)
  br label %drop
drop:
  call void @Py_DecRef(ptr %number)
  call void @Py_DecRef(ptr %numbers)
  ret void
}
"""


def operand(frame: Frame, value: Operand) -> str:
    """An operand as an object. It is kept until the launcher ends."""
    if value.kind == "tensor":
        return frame.tensors[value.value].object
    if value.kind == "constant":
        return frame.slot("constant", frame.slots.constant(value.value))
    if value.kind == "scalar" and frame.scalars[value.value].double is None:
        return frame.scalars[value.value].object
    return frame.temporary(_new(frame, value))


def _new(frame: Frame, value: Operand) -> str:
    """A new object, or a new reference to one."""
    code = frame.code
    if value.kind == "integer":
        number = frame.need(value.value)
        return frame.succeed(code.value(f"call ptr @PyLong_FromLongLong(i64 {number})"))
    if value.kind == "scalar":
        scalar = frame.scalars[value.value]
        if scalar.double is not None:  # an int that is given for a float is one behind the guard
            made = code.value(f"call ptr @PyFloat_FromDouble(double {scalar.double})")
            return frame.succeed(made)
        return frame.increased(scalar.object)
    if value.kind == "view":
        return _view(frame, value.value)
    return frame.increased(operand(frame, value))


def _view(frame: Frame, view: View) -> str:
    """Elements of a tensor, by a Python callable: (tensor, shape, strides, offset)."""
    code = frame.code
    shape, strides = (
        frame.temporary(_tuple(frame, [frame.need(index) for index in indices]))
        for indices in (view.shape, view.strides)
    )
    number = f"call ptr @PyLong_FromLongLong(i64 {frame.need(view.offset)})"
    offset = frame.temporary(frame.succeed(code.value(number)))
    made = code.value(
        f"call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr {frame.slot('view')},"
        f" ptr {frame.tensors[view.tensor].object}, ptr {shape}, ptr {strides}, ptr {offset},"
        " ptr null)"
    )
    return frame.succeed(made)


def _tuple(frame: Frame, values: list[str]) -> str:
    room = frame.code.integers(values)
    made = frame.code.value(f"call ptr @integers(ptr {room}, i64 {len(values)})")
    return frame.succeed(made)


def result(frame: Frame, value: Result) -> str:
    """What the program returns."""
    if value is None:
        return frame.increased("@_Py_NoneStruct")
    if not isinstance(value, tuple):
        return _new(frame, value)
    code = frame.code
    # The tuple owns its items from the moment they are in it; until it is full it is kept.
    made = frame.succeed(code.value(f"call ptr @PyTuple_New(i64 {len(value)})"))
    frame.temporary(made)
    for position, part in enumerate(value):
        item = result(frame, part)
        code.do(f"call i32 @PyTuple_SetItem(ptr {made}, i64 {position}, ptr {item})")
    return frame.increased(made)


def call(frame: Frame, number: int, step: Call) -> None:
    """A Call step. The callable gets the operands, those of keywords too, then for each result the
    extents and strides that it must have, as one tuple; it returns the tuple of what was made and
    checked."""
    code = frame.code
    operands = (*step.arguments, *(value for _, value in step.keywords))
    for index in needs(step):
        frame.need(index)
    objects = [operand(frame, value) for value in operands]
    tensors = {tensor.name: tensor for tensor in frame.program.tensors}
    layouts: list[tuple[Buffer, tuple[str, ...], tuple[str, ...]]] = []
    for name in step.results:
        buffer = tensors[name]
        assert isinstance(buffer, Buffer)
        shape = tuple(frame.need(index) for index in buffer.shape)
        strides = tuple(frame.need(index) for index in buffer.strides)
        frame.need(buffer.elements)
        layouts.append((buffer, shape, strides))
        objects.append(frame.temporary(_tuple(frame, [*shape, *strides])))
    made = frame.succeed(code.value(_vectorcall(frame, ("call", number), objects)))
    frame.temporary(made)
    for position, (buffer, shape, strides) in enumerate(layouts):
        item = code.value(f"call ptr @PyTuple_GetItem(ptr {made}, i64 {position})")
        frame.succeed(item)
        frame.own(buffer.name, frame.increased(item))
        data = data_of(frame, frame.specialisation.made, item)
        frame.tensors[buffer.name] = Value(item, data, shape, strides, buffer.dtype)


def _vectorcall(frame: Frame, slot: tuple[object, ...], objects: list[str]) -> str:
    room = frame.code.room(f"[{max(len(objects), 1)} x ptr]")
    for position, object in enumerate(objects):
        frame.code.store("ptr", object, room, 8 * position)
    callable = frame.slot(*slot)
    return (
        f"call ptr @PyObject_Vectorcall(ptr {callable}, ptr {room}, i64 {len(objects)}, ptr null)"
    )
