"""Reading numbers and streams: whether an object is the number that a parameter asks for.

The types are Python's own, exactly: `int` for integers, `bool` for bool, `float` or `int` for
floats. A number that does not fit its dtype is a miss. f16, bf16 and f32 round to nearest, ties to
even; a finite number that would become infinite does not fit (`fly_run.launch.arrays.dtypes`).
"""

from __future__ import annotations

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.native.emission.arithmetic import NOTHING, Number
from fly_host.native.emission.frame import MISS, UNREADABLE, Frame, ScalarValue
from fly_host.native.emission.guards.function import call, guard
from fly_host.native.probing import OBJECT_TYPE
from fly_host.program import Scalar

INFINITE = "0x7FF0000000000000"


def read(frame: Frame, scalar: Scalar, object: str) -> None:
    """Guards a scalar parameter."""
    row = ELEMENT_TYPES[scalar.dtype]
    reader = {"bool": _bool, "float": _float}.get(row.kind, _integer)
    frame.scalars[scalar.name] = reader(frame, scalar.dtype, object)


def _bool(frame: Frame, dtype: str, object: str) -> ScalarValue:
    code = frame.code
    true = code.value(f"icmp eq ptr {object}, @_Py_TrueStruct")
    false = code.value(f"icmp eq ptr {object}, @_Py_FalseStruct")
    code.require(code.value(f"or i1 {true}, {false}"), MISS)
    number = Number(code.value(f"zext i1 {true} to i64"))
    return ScalarValue(object, number, "i8", code.value(f"zext i1 {true} to i8"))


def _is(frame: Frame, object: str, kind: str) -> str:
    found = frame.code.load("ptr", object, OBJECT_TYPE)
    return frame.code.value(f"icmp eq ptr {found}, @{kind}")


def _integer(frame: Frame, dtype: str, object: str) -> ScalarValue:
    code, row = frame.code, ELEMENT_TYPES[dtype]
    name, _ = guard(frame, ("integer", dtype), lambda inner: _guard_integer(inner, dtype))
    room = code.room("i64")
    call(frame, name, object, room)
    value = code.load("i64", room)
    if dtype == "u64":
        # An expression can't use what is 2^63 or more.
        ok = code.value(f"icmp sge i64 {value}, 0")
        return ScalarValue(object, Number(value, ok), "i64", value)
    if row.bits == 64:
        return ScalarValue(object, Number(value), "i64", value)
    kind = f"i{row.bits}"
    return ScalarValue(object, Number(value), kind, code.value(f"trunc i64 {value} to {kind}"))


def _guard_integer(frame: Frame, dtype: str) -> None:
    """Stores an int as a 64-bit integer."""
    code, row, object = frame.code, ELEMENT_TYPES[dtype], "%object"
    code.require(_is(frame, object, "PyLong_Type"), MISS)
    if dtype == "u64":
        value = code.value(f"call i64 @PyLong_AsUnsignedLongLong(ptr {object})")
        _unless_failed(frame, code.value(f"icmp ne i64 {value}, -1"))
        code.store("i64", value, "%out")
        return
    room = code.room("i32")
    value = code.value(f"call i64 @PyLong_AsLongLongAndOverflow(ptr {object}, ptr {room})")
    fits = code.value(f"icmp eq i32 {code.load('i32', room)}, 0")
    if row.bits < 64:
        kind = f"i{row.bits}"
        bits = code.value(f"trunc i64 {value} to {kind}")
        extend = "sext" if row.kind == "int" else "zext"
        back = code.value(f"{extend} {kind} {bits} to i64")
        fits = code.value(f"and i1 {fits}, {code.value(f'icmp eq i64 {back}, {value}')}")
    code.require(fits, MISS)
    code.store("i64", value, "%out")


def _float(frame: Frame, dtype: str, object: str) -> ScalarValue:
    code = frame.code
    name, kind = guard(frame, ("float", dtype), lambda inner: _guard_float(inner, dtype))
    room = code.room("[2 x i64]")
    call(frame, name, object, room)
    bits, value = code.load(kind, room), code.load("double", room, 8)
    return ScalarValue(object, NOTHING, kind, bits, value)


def _guard_float(frame: Frame, dtype: str) -> str:
    """Stores the bits of a float, and as a double what was given; the LLVM type of the bits."""
    code, object = frame.code, "%object"
    known = code.value(
        f"or i1 {_is(frame, object, 'PyFloat_Type')}, {_is(frame, object, 'PyLong_Type')}"
    )
    code.require(known, MISS)
    value = code.value(f"call double @PyFloat_AsDouble(ptr {object})")
    _unless_failed(frame, code.value(f"fcmp une double {value}, -1.0"))
    kind, bits = _rounded(frame, dtype, value)
    code.store(kind, bits, "%out")
    code.store("double", value, "%out", 8)
    return kind


def _rounded(frame: Frame, dtype: str, value: str) -> tuple[str, str]:
    """A double as a number of a dtype: LLVM type and value."""
    code = frame.code
    if dtype == "f64":
        return "double", value
    if dtype == "f16":
        room = code.room("i16", 2)
        status = code.value(f"call i32 @PyFloat_Pack2(double {value}, ptr {room}, i32 1)")
        code.require(code.value(f"icmp eq i32 {status}, 0"), UNREADABLE)
        return "i16", code.load("i16", room)
    single = code.value(f"fptrunc double {value} to float")
    wide = code.value(f"fpext float {single} to double")
    _unless_infinite(frame, wide, value)
    if dtype == "f32":
        return "float", single
    bits = code.value(f"bitcast float {single} to i32")
    odd = code.value(f"and i32 {code.value(f'lshr i32 {bits}, 16')}, 1")
    rounded = code.value(f"add i32 {code.value(f'add i32 {bits}, 32767')}, {odd}")
    upper = code.value(f"lshr i32 {rounded}, 16")
    quiet = code.value(f"or i32 {code.value(f'lshr i32 {bits}, 16')}, 64")
    nan = code.value(f"fcmp uno float {single}, 0.0")
    chosen = code.value(f"select i1 {nan}, i32 {quiet}, i32 {upper}")
    back = code.value(f"bitcast i32 {code.value(f'shl i32 {chosen}, 16')} to float")
    _unless_infinite(frame, code.value(f"fpext float {back} to double"), value)
    return "i16", code.value(f"trunc i32 {chosen} to i16")


def _unless_infinite(frame: Frame, rounded: str, value: str) -> None:
    """A miss where a finite number was rounded to an infinite one."""
    code = frame.code
    size = code.value(f"call double @llvm.fabs.f64(double {rounded})")
    before = code.value(f"call double @llvm.fabs.f64(double {value})")
    now = code.value(f"fcmp oeq double {size}, {INFINITE}")
    then = code.value(f"fcmp one double {before}, {INFINITE}")
    code.require(code.value(f"xor i1 {code.value(f'and i1 {now}, {then}')}, true"), MISS)


def _unless_failed(frame: Frame, differs: str) -> None:
    """Goes on where a result is not the one that may tell of an error, or tells of none."""
    code = frame.code
    asked, good = code.name("asked"), code.name("good")
    code.branch(differs, good, asked)
    code.begin(asked)
    error = code.value("call ptr @PyErr_Occurred()")
    code.branch(code.value(f"icmp eq ptr {error}, null"), good, UNREADABLE)
    code.begin(good)


def stream_handle(frame: Frame, object: str) -> str:
    """The handle of a stream: an int, None (the current stream), or what has `cuda_stream`."""
    code = frame.code
    room = code.room("ptr")
    current, given, number, other, ready = (
        code.name(hint) for hint in ("current", "given", "number", "other", "ready")
    )
    code.branch(code.value(f"icmp eq ptr {object}, @_Py_NoneStruct"), current, given)
    code.begin(current)
    code.store("ptr", current_stream(frame), room)
    code.jump(ready)
    code.begin(given)
    code.branch(_is(frame, object, "PyLong_Type"), number, other)
    code.begin(number)
    code.store("ptr", _address(frame, object), room)
    code.jump(ready)
    code.begin(other)
    found = code.value(f"call ptr @PyObject_GetAttr(ptr {object}, ptr {frame.slot('cuda_stream')})")
    code.require(code.value(f"icmp ne ptr {found}, null"), UNREADABLE)
    code.store("ptr", _address(frame, found, dropped=True), room)
    code.jump(ready)
    code.begin(ready)
    return code.load("ptr", room)


def current_stream(frame: Frame) -> str:
    """The handle of the device's current stream. An error of the getter is the call's."""
    code = frame.code
    if not frame.way.stream:
        return "null"
    found = code.value(f"call ptr @PyObject_CallNoArgs(ptr {frame.slot('stream')})")
    frame.succeed(found)
    return _address(frame, found, dropped=True)


def _address(frame: Frame, object: str, dropped: bool = False) -> str:
    """An int as an address. `dropped`: the reference is ours."""
    code = frame.code
    address = code.value(f"call ptr @PyLong_AsVoidPtr(ptr {object})")
    if dropped:
        code.do(f"call void @Py_DecRef(ptr {object})")
    _unless_failed(frame, code.value(f"icmp ne ptr {address}, null"))
    return address
