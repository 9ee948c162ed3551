"""Allocating the tensors that a program makes.

torch's by its C interface, where there is one, NumPy's by NumPy's; whatever fails is done once more
by a Python callable, which also has the words for the error. Memory is never less than what the
strides can reach; where a program allocates more than that, the tensor is a view of the whole.
NumPy gives an array without elements strides of 0, unless they are given: then it is a view too.
"""

from __future__ import annotations

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.native.emission.frame import Frame, Value
from fly_host.native.emission.guards.tensors import DATA, data_of
from fly_host.native.probing import DEVICES
from fly_host.program import Buffer

VIEW_FLAGS = 0x500  # aligned, writeable

# The number of elements from the first to the last that strides reach; 0 where there are none, -1
# where an extent or a stride is negative, or the number leaves 64 bits.
SPAN = """
define internal i64 @span(i64 %rank, ptr %shape, ptr %strides) nounwind {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %following, %body ]
  %total = phi i64 [ 1, %entry ], [ %sum, %body ]
  %none = phi i1 [ false, %entry ], [ %nothing, %body ]
  %bad = phi i1 [ false, %entry ], [ %worse, %body ]
  %negative = phi i1 [ false, %entry ], [ %under, %body ]
  %done = icmp eq i64 %i, %rank
  br i1 %done, label %end, label %body
body:
  %n.at = getelementptr i64, ptr %shape, i64 %i
  %n = load i64, ptr %n.at
  %s.at = getelementptr i64, ptr %strides, i64 %i
  %s = load i64, ptr %s.at
  %signs = or i64 %n, %s
  %sign = icmp slt i64 %signs, 0
  %under = or i1 %negative, %sign
  %zero = icmp eq i64 %n, 0
  %nothing = or i1 %none, %zero
  %rest = sub i64 %n, 1
  %product = call {i64, i1} @llvm.smul.with.overflow.i64(i64 %rest, i64 %s)
  %step = extractvalue {i64, i1} %product, 0
  %left = extractvalue {i64, i1} %product, 1
  %added = call {i64, i1} @llvm.sadd.with.overflow.i64(i64 %total, i64 %step)
  %sum = extractvalue {i64, i1} %added, 0
  %over = extractvalue {i64, i1} %added, 1
  %either = or i1 %left, %over
  %worse = or i1 %bad, %either
  %following = add i64 %i, 1
  br label %head
end:
  %reached = select i1 %bad, i64 -1, i64 %total
  %found = select i1 %none, i64 0, i64 %reached
  %result = select i1 %negative, i64 -1, i64 %found
  ret i64 %result
}
"""

# Null where a function fails, with Python's error or without one.
TORCH = """
define internal ptr @allocate_torch(ptr %table, i64 %rank, ptr %shape, ptr %strides, i64 %elements,
    i64 %span, i32 %dtype, ptr %data) nounwind noinline {{
entry:
  %handle = alloca ptr
  %flat = alloca ptr
  %count = alloca i64
  %one = alloca i64
  {empty}
  {delete}
  %padded = icmp sgt i64 %elements, %span
  br i1 %padded, label %wide, label %plain
plain:
  %status = call i32 %empty(i64 %rank, ptr %shape, ptr %strides, i32 %dtype, i32 {device},
    i32 {number}, ptr %handle)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %made, label %failed
wide:
  store i64 %elements, ptr %count
  store i64 1, ptr %one
  %all = call i32 %empty(i64 1, ptr %count, ptr %one, i32 %dtype, i32 {device}, i32 {number},
    ptr %flat)
  %there = icmp eq i32 %all, 0
  br i1 %there, label %view, label %failed
view:
  %whole = load ptr, ptr %flat
  {reinterpret}
  %seen = call i32 %reinterpret(ptr %whole, i64 %rank, ptr %shape, ptr %strides, i64 0, ptr %handle)
  call i32 %delete(ptr %whole)
  %fine = icmp eq i32 %seen, 0
  br i1 %fine, label %made, label %failed
made:
  %tensor = load ptr, ptr %handle
  {get_data}
  call i32 %get_data(ptr %tensor, ptr %data)
  {wrap}
  %object = call ptr %wrap(ptr %tensor)
  call i32 %delete(ptr %tensor)
  ret ptr %object
failed:
  ret ptr null
}}
"""

NUMPY = """
define internal ptr @allocate_numpy(ptr %table, i64 %rank, ptr %shape, ptr %strides, i64 %elements,
    i64 %span, i64 %itemsize, ptr %descr, ptr %data) nounwind noinline {{
entry:
  %bytes = alloca i64, i64 %rank
  %count = alloca i64
  {new}
  {kind}
  %dims = trunc i64 %rank to i32
  br label %head
head:
  %i = phi i64 [ %rank, %entry ], [ %before, %body ]
  %canonical = phi i64 [ %itemsize, %entry ], [ %wider, %body ]
  %same = phi i1 [ true, %entry ], [ %still, %body ]
  %done = icmp eq i64 %i, 0
  br i1 %done, label %looked, label %body
body:
  %before = sub i64 %i, 1
  %n.at = getelementptr i64, ptr %shape, i64 %before
  %n = load i64, ptr %n.at
  %s.at = getelementptr i64, ptr %strides, i64 %before
  %s = load i64, ptr %s.at
  %step = mul i64 %s, %itemsize
  %step.at = getelementptr i64, ptr %bytes, i64 %before
  store i64 %step, ptr %step.at
  %equal = icmp eq i64 %step, %canonical
  %still = and i1 %same, %equal
  %wider = mul i64 %canonical, %n
  br label %head
looked:
  %padded = icmp sgt i64 %elements, %span
  %some = icmp sgt i64 %span, 0
  %exact = xor i1 %padded, true
  %known = and i1 %same, %exact
  %usual = and i1 %known, %some
  call void @Py_IncRef(ptr %descr)
  br i1 %usual, label %plain, label %wide
plain:
  %array = call ptr %new(ptr %kind, ptr %descr, i32 %dims, ptr %shape, ptr null, ptr null, i32 0,
    ptr null)
  %good = icmp ne ptr %array, null
  br i1 %good, label %made, label %failed
made:
  %array.at = getelementptr i8, ptr %array, i64 {DATA}
  %place = load ptr, ptr %array.at
  store ptr %place, ptr %data
  ret ptr %array
wide:
  %most = call i64 @llvm.smax.i64(i64 %elements, i64 %span)
  store i64 %most, ptr %count
  %base = call ptr %new(ptr %kind, ptr %descr, i32 1, ptr %count, ptr null, ptr null, i32 0,
    ptr null)
  %there = icmp ne ptr %base, null
  br i1 %there, label %view, label %failed
view:
  %base.at = getelementptr i8, ptr %base, i64 {DATA}
  %memory = load ptr, ptr %base.at
  store ptr %memory, ptr %data
  call void @Py_IncRef(ptr %descr)
  %seen = call ptr %new(ptr %kind, ptr %descr, i32 %dims, ptr %shape, ptr %bytes, ptr %memory,
    i32 {VIEW_FLAGS}, ptr null)
  %fine = icmp ne ptr %seen, null
  br i1 %fine, label %tied, label %loose
loose:
  call void @Py_DecRef(ptr %base)
  ret ptr null
tied:
  {tie}
  %status = call i32 %tie(ptr %seen, ptr %base)
  %held = icmp eq i32 %status, 0
  br i1 %held, label %whole, label %untied
untied:
  call void @Py_DecRef(ptr %seen)
  ret ptr null
whole:
  ret ptr %seen
failed:
  ret ptr null
}}
"""

PYTHON = """
define internal ptr @allocate_python(ptr %callable, i64 %rank, ptr %shape, ptr %strides,
    i64 %elements) nounwind noinline {
entry:
  call void @PyErr_Clear()
  %a = call ptr @integers(ptr %shape, i64 %rank)
  %b = call ptr @integers(ptr %strides, i64 %rank)
  %c = call ptr @PyLong_FromLongLong(i64 %elements)
  %a.there = icmp ne ptr %a, null
  %b.there = icmp ne ptr %b, null
  %c.there = icmp ne ptr %c, null
  %ab = and i1 %a.there, %b.there
  %abc = and i1 %ab, %c.there
  br i1 %abc, label %call, label %drop
call:
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %callable, ptr %a, ptr %b, ptr %c,
    ptr null)
  br label %drop
drop:
  %object = phi ptr [ null, %entry ], [ %made, %call ]
  call void @Py_DecRef(ptr %a)
  call void @Py_DecRef(ptr %b)
  call void @Py_DecRef(ptr %c)
  ret ptr %object
}
"""


class Outputs:
    """The allocations of a frame."""

    def __init__(self, frame: Frame):
        self.frame, self.code = frame, frame.code
        self.spans: dict[str, tuple[str, str, str]] = {}  # of those that were looked at ahead

    def ahead(self, buffer: Buffer) -> str:
        """The condition that a buffer whose layout is known before the first step can be
        allocated."""
        shape, strides, span = self._layout(buffer)
        self.spans[buffer.name] = shape, strides, span
        return self._sound(buffer, span)

    def _layout(self, buffer: Buffer) -> tuple[str, str, str]:
        frame, code = self.frame, self.code
        shape = code.integers([frame.need(index) for index in buffer.shape])
        strides = code.integers([frame.need(index) for index in buffer.strides])
        rank = len(buffer.shape)
        return shape, strides, code.value(f"call i64 @span(i64 {rank}, ptr {shape}, ptr {strides})")

    def _sound(self, buffer: Buffer, span: str) -> str:
        elements = self.frame.need(buffer.elements)
        together = self.code.value(f"or i64 {span}, {elements}")
        return self.code.value(f"icmp sge i64 {together}, 0")

    def allocate(self, buffer: Buffer) -> None:
        """An Allocate step."""
        frame, code = self.frame, self.code
        known = self.spans.get(buffer.name)
        if known is None:
            known = self._layout(buffer)
            indices = (*buffer.shape, *buffer.strides, buffer.elements)
            frame.demand(self._sound(buffer, known[2]), ("layout", buffer.name), indices)
        shape, strides, span = known
        elements, rank = frame.need(buffer.elements), len(buffer.shape)
        object, data = code.room("ptr"), code.room("ptr")
        again, ready = code.name("again"), code.name("ready")
        layout = f"i64 {rank}, ptr {shape}, ptr {strides}, i64 {elements}"
        native = self._native(buffer, layout, span, data)
        if native is None:
            code.jump(again)
        else:
            made = code.value(native)
            code.store("ptr", made, object)
            code.branch(code.value(f"icmp ne ptr {made}, null"), ready, again)
        code.begin(again)
        callable = frame.slot("allocate", buffer.dtype)
        found = code.value(f"call ptr @allocate_python(ptr {callable}, {layout})")
        frame.succeed(found)
        code.store("ptr", found, object)
        frame.own(f"{buffer.name} made", found)  # while its address is asked for
        code.store("ptr", data_of(frame, frame.specialisation.made, found), data)
        owner = frame.owner(f"{buffer.name} made")
        code.store("ptr", "null", owner)
        code.jump(ready)
        code.begin(ready)
        result = code.load("ptr", object)
        frame.own(buffer.name, result)
        shown = tuple(frame.need(index) for index in buffer.shape)
        steps = tuple(frame.need(index) for index in buffer.strides)
        value = Value(result, code.load("ptr", data), shown, steps, buffer.dtype, elements)
        frame.tensors[buffer.name] = value

    def _native(self, buffer: Buffer, layout: str, span: str, data: str) -> str | None:
        """The call of the function that allocates, if there is one."""
        frame, made = self.frame, self.frame.specialisation.made
        if made.kind == "torch":
            torch = frame.torch
            if torch is None or buffer.dtype not in torch.dtypes or not torch.allocates:
                return None
            if made.device[0] not in DEVICES:
                return None
            dtype = torch.dtypes[buffer.dtype]
            return (
                f"call ptr @allocate_torch(ptr %table, {layout}, i64 {span}, i32 {dtype},"
                f" ptr {data})"
            )
        size = ELEMENT_TYPES[buffer.dtype].bytes
        descr = frame.slot("descr", buffer.dtype)
        return (
            f"call ptr @allocate_numpy(ptr %table, {layout}, i64 {span}, i64 {size}, ptr {descr},"
            f" ptr {data})"
        )


def helpers(frame: Frame) -> list[str]:
    """The functions that allocations call."""
    made = frame.specialisation.made

    def slot(register: str, *name: str) -> str:
        place = f"getelementptr i8, ptr %table, i64 {8 * frame.slots.place(*name)}"
        return f"%{register}.slot = {place}\n  %{register} = load ptr, ptr %{register}.slot"

    if made.kind == "numpy":
        words = {
            "new": slot("new", "PyArray_NewFromDescr"),
            "tie": slot("tie", "PyArray_SetBaseObject"),
            "kind": slot("kind", "numpy.ndarray"),
        }
        return [SPAN, NUMPY.format(**words, DATA=DATA, VIEW_FLAGS=VIEW_FLAGS), PYTHON]
    if frame.torch is None or not frame.torch.allocates or made.device[0] not in DEVICES:
        return [SPAN, PYTHON]
    text = TORCH.format(
        empty=slot("empty", "aoti_torch_empty_strided"),
        delete=slot("delete", "aoti_torch_delete_tensor_object"),
        reinterpret=slot("reinterpret", "aoti_torch__reinterpret_tensor"),
        get_data=slot("get_data", "aoti_torch_get_data_ptr"),
        wrap=slot("wrap", "THPVariable_Wrap"),
        device=DEVICES[made.device[0]],
        number=made.device[1],
    )
    return [SPAN, text, PYTHON]
