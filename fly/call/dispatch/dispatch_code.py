"""The native code of dispatchers, as LLVM IR: one function for all of them, which reads a table
(`fly.call.dispatch.dispatch_table`)."""

from __future__ import annotations

from fly_host.native.probing import CELL_CONTENTS, OBJECT_TYPE

from fly.call.dispatch.dispatch_table import AT, MOST_ARGUMENTS, PLACES


def _rows(part: str, body: str, step: int) -> str:
    """A loop over the rows of a part: `%p` is a row, and `body` goes to %miss or %{part}.next."""
    return f"""
{part}.begin:
  %{part}.count.at = getelementptr i64, ptr %table, i64 {AT[part]}
  %{part}.count = load i64, ptr %{part}.count.at
  %{part}.rows = getelementptr i64, ptr %table, i64 {PLACES[part]}
  br label %{part}.test
{part}.test:
  %{part}.i = phi i64 [ 0, %{part}.begin ], [ %{part}.following, %{part}.next ]
  %{part}.more = icmp ult i64 %{part}.i, %{part}.count
  br i1 %{part}.more, label %{part}.body, label %{part}.end
{part}.body:
  %{part}.offset = mul i64 %{part}.i, {step}
  %{part}.p = getelementptr i64, ptr %{part}.rows, i64 %{part}.offset
{body}
{part}.next:
  %{part}.following = add i64 %{part}.i, 1
  br label %{part}.test
"""


def _field(part: str, number: int, name: str) -> str:
    return f"""  %{part}.{name}.at = getelementptr ptr, ptr %{part}.p, i64 {number}
  %{part}.{name} = load ptr, ptr %{part}.{name}.at"""


def _word(part: str, number: int, name: str) -> str:
    return f"""  %{part}.{name}.at = getelementptr i64, ptr %{part}.p, i64 {number}
  %{part}.{name} = load i64, ptr %{part}.{name}.at"""


TAG = 24  # offset of PyDictObject.ma_version_tag: behind the head and ma_used

_DICTS = _rows(
    "dicts",
    f"""{_field("dicts", 0, "dict")}
  %dicts.tag.at = getelementptr i8, ptr %dicts.dict, i64 {TAG}
  %dicts.tag = load i64, ptr %dicts.tag.at
  %dicts.known.at = getelementptr i64, ptr %dicts.p, i64 1
  %dicts.known = load i64, ptr %dicts.known.at
  %dicts.same = icmp eq i64 %dicts.tag, %dicts.known
  store i64 %dicts.tag, ptr %dicts.known.at
  %dicts.changed = xor i1 %dicts.same, true
  %dicts.was = load i1, ptr %changed
  %dicts.now = or i1 %dicts.was, %dicts.changed
  store i1 %dicts.now, ptr %changed
  br label %dicts.next""",
    2,
)
_NAMES = _rows(
    "names",
    f"""{_field("names", 0, "dict")}
{_field("names", 1, "key")}
{_field("names", 2, "value")}
  %names.found = call ptr @PyDict_GetItem(ptr %names.dict, ptr %names.key)
  %names.same = icmp eq ptr %names.found, %names.value
  br i1 %names.same, label %names.next, label %forget""",
    3,
)
_SIZES = _rows(
    "sizes",
    f"""{_field("sizes", 0, "dict")}
{_word("sizes", 1, "wanted")}
  %sizes.now = call i64 @PyDict_Size(ptr %sizes.dict)
  %sizes.same = icmp eq i64 %sizes.now, %sizes.wanted
  br i1 %sizes.same, label %sizes.next, label %forget""",
    2,
)
_CELLS = _rows(
    "cells",
    f"""{_field("cells", 0, "cell")}
{_field("cells", 1, "value")}
  %cells.ref.at = getelementptr i8, ptr %cells.cell, i64 {CELL_CONTENTS}
  %cells.ref = load ptr, ptr %cells.ref.at
  %cells.same = icmp eq ptr %cells.ref, %cells.value
  br i1 %cells.same, label %cells.next, label %miss""",
    2,
)


def _part(number: int, name: str, getter: str) -> str:
    following = f"functions.part{number}" if number < 4 else "functions.next"
    opening = "" if number == 1 else f"functions.part{number - 1}:\n"
    return f"""{opening}  %functions.{name}.now = call ptr @{getter}(ptr %functions.function)
{_field("functions", number, name)}
  %functions.{name}.same = icmp eq ptr %functions.{name}.now, %functions.{name}
  br i1 %functions.{name}.same, label %{following}, label %miss"""


_FUNCTIONS = _rows(
    "functions",
    "\n".join(
        (
            _field("functions", 0, "function"),
            _part(1, "code", "PyFunction_GetCode"),
            _part(2, "defaults", "PyFunction_GetDefaults"),
            _part(3, "kwdefaults", "PyFunction_GetKwDefaults"),
            _part(4, "annotations", "PyFunction_GetAnnotations"),
        )
    ),
    5,
)


# The rules first; then the arguments that the launcher gets, which are packed where some are left
# out.
_LAUNCHERS = _rows(
    "launchers",
    f"""{_field("launchers", 0, "function")}
{_field("launchers", 1, "owner")}
{_word("launchers", 2, "wanted")}
{_word("launchers", 3, "passed")}
{_word("launchers", 4, "first")}
{_word("launchers", 5, "last")}
  %right = icmp eq i64 %launchers.wanted, %nargs
  br i1 %right, label %rules.test, label %launchers.next
rules.test:
  %rule = phi i64 [ %launchers.first, %launchers.body ], [ %rule.following, %rules.next ]
  %ruled = icmp ult i64 %rule, %launchers.last
  br i1 %ruled, label %rules.body, label %pack.begin
rules.body:
  %rule.offset = mul i64 %rule, 3
  %rules.p = getelementptr i64, ptr %rules, i64 %rule.offset
{_word("rules", 0, "position")}
{_field("rules", 1, "type")}
{_field("rules", 2, "value")}
  %argument.at = getelementptr ptr, ptr %args, i64 %rules.position
  %argument = load ptr, ptr %argument.at
  %kind.at = getelementptr i8, ptr %argument, i64 {OBJECT_TYPE}
  %kind = load ptr, ptr %kind.at
  %typed = icmp eq ptr %kind, %rules.type
  br i1 %typed, label %rules.value.test, label %launchers.next
rules.value.test:
  %any = icmp eq ptr %rules.value, null
  %itself = icmp eq ptr %rules.value, %argument
  %fits = or i1 %any, %itself
  br i1 %fits, label %rules.next, label %rules.compare
rules.compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %argument, ptr %rules.value, i32 2)
  %is.equal = icmp eq i32 %equal, 1
  br i1 %is.equal, label %rules.next, label %launchers.next
rules.next:
  %rule.following = add i64 %rule, 1
  br label %rules.test
pack.begin:
  %all.shifted = shl i64 -1, %nargs
  %all.mask = xor i64 %all.shifted, -1
  %full = icmp eq i64 %nargs, 64
  %all = select i1 %full, i64 -1, i64 %all.mask
  %whole.call = icmp eq i64 %all, %launchers.passed
  br i1 %whole.call, label %launch, label %pack.test
pack.test:
  %from = phi i64 [ 0, %pack.begin ], [ %from.following, %pack.next ]
  %to = phi i64 [ 0, %pack.begin ], [ %to.following, %pack.next ]
  %unpacked = icmp ult i64 %from, %nargs
  br i1 %unpacked, label %pack.next, label %launch
pack.next:
  %one.at = getelementptr ptr, ptr %args, i64 %from
  %one = load ptr, ptr %one.at
  %room.at = getelementptr ptr, ptr %room, i64 %to
  store ptr %one, ptr %room.at
  %bits = lshr i64 %launchers.passed, %from
  %bit = and i64 %bits, 1
  %from.following = add i64 %from, 1
  %to.following = add i64 %to, %bit
  br label %pack.test
launch:
  %given = phi ptr [ %args, %pack.begin ], [ %room, %pack.test ]
  %given.count = phi i64 [ %nargs, %pack.begin ], [ %to, %pack.test ]
  %made = call ptr %launchers.function(ptr %launchers.owner, ptr %given, i64 %given.count)
  %other = icmp eq ptr %made, %missing
  br i1 %other, label %launchers.drop, label %launchers.done
launchers.drop:
  call void @Py_DecRef(ptr %made)
  br label %launchers.next
launchers.done:
  ret ptr %made""",
    6,
)

TEXT = f"""
declare ptr @PyByteArray_AsString(ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyFunction_GetCode(ptr)
declare ptr @PyFunction_GetDefaults(ptr)
declare ptr @PyFunction_GetKwDefaults(ptr)
declare ptr @PyFunction_GetAnnotations(ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)

define ptr @call(ptr %self, ptr %args, i64 %nargs) {{
  %changed = alloca i1
  %clock = alloca [2 x i64]
  %room = alloca [{MOST_ARGUMENTS + 1} x ptr]
  %table = call ptr @PyByteArray_AsString(ptr %self)
  %rules = getelementptr i64, ptr %table, i64 {PLACES["rules"]}
  %missing.at = getelementptr ptr, ptr %table, i64 {AT["missing"]}
  %missing = load ptr, ptr %missing.at
  %busy.at = getelementptr ptr, ptr %table, i64 {AT["busy"]}
  %busy.word = load ptr, ptr %busy.at
  %busy = load atomic i64, ptr %busy.word monotonic, align 8
  %idle = icmp eq i64 %busy, 0
  br i1 %idle, label %clock.begin, label %miss
clock.begin:
  %status = call i32 @clock_gettime(i32 6, ptr %clock)
  %seconds = load i64, ptr %clock
  %rest.at = getelementptr i64, ptr %clock, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %deadline.at = getelementptr i64, ptr %table, i64 {AT["deadline"]}
  %deadline = load i64, ptr %deadline.at
  %early = icmp ult i64 %now, %deadline
  br i1 %early, label %names.look, label %miss
names.look:
  %tagged = getelementptr i64, ptr %table, i64 {AT["dicts"]}
  %dictionaries = load i64, ptr %tagged
  %untagged = icmp eq i64 %dictionaries, 0
  store i1 %untagged, ptr %changed
  br label %dicts.begin
{_DICTS}
dicts.end:
  %look = load i1, ptr %changed
  br i1 %look, label %sizes.begin, label %cells.begin
{_SIZES}
sizes.end:
  br label %names.begin
{_NAMES}
names.end:
  br label %cells.begin
{_CELLS}
cells.end:
  br label %functions.begin
{_FUNCTIONS}
functions.end:
  br label %launchers.begin
{_LAUNCHERS}
launchers.end:
  br label %miss
forget:
  ; the next call looks into the dictionaries again
  store i64 0, ptr %deadline.at
  br label %miss
miss:
  call void @Py_IncRef(ptr %missing)
  ret ptr %missing
}}
"""
