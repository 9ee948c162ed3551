"""The library's code: LLVM IR.

Each exported function jumps through a table. While its entry is empty, `fly_start` is called, which
executes `bootstrap` in the process's Python:

- In a Python process, the first caller acquires the GIL and does this.
- In another process, `FLY_HIP_PYTHON` names the shared library of a Python (`fly-run --hip` sets
  it), which is loaded and initialised first.
- Otherwise a message on stderr says what is missing, and calls return hipErrorNotInitialized.

When Python ends, the table is emptied. Calls that come later, from destructors, succeed if they
only release something, and return hipErrorDeinitialized otherwise.
"""

from __future__ import annotations

import functools
import json
from importlib import util
from pathlib import Path

from fly_run.hip_runtime import bootstrap
from fly_run.hip_runtime.interface import ENDED, FAILED, NAME, PYTHON, STARTED, digest
from fly_run.hip_runtime.prototypes import Prototype, prototypes

SUCCESS, NOT_INITIALISED, DEINITIALISED = 0, 3, 4
RELEASING = ("Free", "Destroy", "Unload", "Unregister", "Release")  # parts of names

NO_PYTHON = (
    f"fly-run: error: {NAME}: this process has no Python to run the emulator in\n"
    f"  start it with fly-run --hip TARGET -- COMMAND, or set {PYTHON} to a libpython3.so\n"
)
NOT_LOADED = f"fly-run: error: {NAME}: the library that {PYTHON} names can't be loaded\n"


def roots() -> list[str]:
    """Returns the folders that have the packages of `bootstrap`, except those that this Python
    lacks."""
    found = dict.fromkeys(
        str(Path(spec.origin).parent.parent)
        for name in sorted(bootstrap.OWN | bootstrap.OTHERS)
        if (spec := util.find_spec(name)) is not None and spec.origin
    )
    return list(found)


@functools.cache
def text() -> str:
    """The library's LLVM IR."""
    functions = list(prototypes().values())
    code = Path(bootstrap.__file__).read_text()
    code += f"\nstart(TABLE, STATE, EXPORTS, {digest()!r}, {json.dumps(roots())})\n"
    constants = {
        "code": code,
        "no_python": NO_PYTHON,
        "not_loaded": NOT_LOADED,
        "variable": PYTHON,
        "unstarted": "hipErrorNotInitialized",
        "ended": "hipErrorDeinitialized",
        **{f"name.{name}": name for name in (*_CALLED, *_WORDS)},
    }
    exports = ", ".join(f"ptr @{one.name}" for one in functions)
    lines = [
        f"@fly_table = internal global [{len(functions)} x ptr] zeroinitializer",
        "@fly_state = internal global i32 0",
        "@fly_lock = internal global i32 0",
        *(f"@{name} = internal constant {_bytes(value)}" for name, value in constants.items()),
        f"@fly_exports = internal constant [{len(functions)} x ptr] [{exports}]",
        *(f"define {one}" for one in map(_function, functions, range(len(functions)))),
    ]
    fixed = _START.replace("ENTRIES", str(len(functions)))
    for name, value in (("NO_PYTHON", NO_PYTHON), ("NOT_LOADED", NOT_LOADED)):
        fixed = fixed.replace(f"LENGTH_OF_{name}", str(len(value.encode())))
    return "\n".join([*lines, fixed])


def _bytes(value: str) -> str:
    data = value.encode() + b"\0"
    shown = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
    return f'[{len(data)} x i8] c"{shown}"'


def _function(one: Prototype, number: int) -> str:
    """An exported function. It is a tail call, so arguments are only passed on."""
    arguments = ", ".join(f"{p.llvm} %a{i}" for i, p in enumerate(one.parameters))
    ended = SUCCESS if any(part in one.name for part in RELEASING) else DEINITIALISED
    kind, code = "i32", (f"{NOT_INITIALISED}", f"{ended}")
    if one.returns_text:
        kind, code = "ptr", ("@unstarted", "@ended")
    return f"""{one.llvm} @{one.name}({arguments}) {{
  %function = call ptr @fly_entry(i64 {number})
  %missing = icmp eq ptr %function, null
  br i1 %missing, label %failed, label %call
call:
  %result = tail call {one.llvm} %function({arguments})
  ret {one.llvm} %result
failed:
  %state = load atomic i32, ptr @fly_state acquire, align 4
  %ended = icmp eq i32 %state, {ENDED}
  %code = select i1 %ended, {kind} {code[1]}, {kind} {code[0]}
  ret {kind} %code
}}"""


# Functions of Python that are looked up in the process, and strings that are passed to them.
_CALLED = (
    *("Py_IsInitialized", "Py_InitializeEx", "PyEval_SaveThread", "PyEval_GetBuiltins"),
    *("PyGILState_Ensure", "PyGILState_Release", "PyErr_Fetch", "PyErr_Restore", "PyErr_Print"),
    *("PyDict_New", "PyDict_SetItemString", "PyLong_FromVoidPtr", "PyRun_String"),
)
_WORDS = ("__builtins__", "TABLE", "STATE", "EXPORTS")
FILE_INPUT = 257  # Py_file_input
GLOBAL_NOW = 0x102  # RTLD_GLOBAL | RTLD_NOW


def _call(name: str, returned: str, arguments: str = "", result: str = "") -> str:
    """Calls a function of Python by name."""
    to = f"%{result} = " if result else ""
    return f"""  %{result or "at"}.{name} = call ptr @dlsym(ptr null, ptr @name.{name})
  {to}call {returned} %{result or "at"}.{name}({arguments})"""


def _set(name: str, value: str) -> str:
    at = f"set.{name}"
    return f"""  %{at} = call ptr @dlsym(ptr null, ptr @name.PyDict_SetItemString)
  call i32 %{at}(ptr %globals, ptr @name.{name}, ptr {value})"""


_START = f"""
declare ptr @dlsym(ptr, ptr)
declare ptr @dlopen(ptr, i32)
declare ptr @getenv(ptr)
declare i64 @write(i32, ptr, i64)
declare i32 @sched_yield()

define internal ptr @fly_entry(i64 %number) noinline {{
  %slot = getelementptr [ENTRIES x ptr], ptr @fly_table, i64 0, i64 %number
  %found = load atomic ptr, ptr %slot acquire, align 8
  %empty = icmp eq ptr %found, null
  br i1 %empty, label %start, label %done
start:
  %state = load atomic i32, ptr @fly_state acquire, align 4
  %begun = icmp ugt i32 %state, {STARTED}
  br i1 %begun, label %done, label %first
first:
  call void @fly_start()
  %made = load atomic ptr, ptr %slot acquire, align 8
  ret ptr %made
done:
  ret ptr %found
}}

define internal i1 @fly_has_python() noinline {{
  %at = call ptr @dlsym(ptr null, ptr @name.Py_IsInitialized)
  %none = icmp eq ptr %at, null
  br i1 %none, label %no, label %ask
ask:
  %answer = call i32 %at()
  %is = icmp ne i32 %answer, 0
  ret i1 %is
no:
  ret i1 false
}}

; Loads and initialises a Python. Threads that come meanwhile wait. None of them holds a GIL, since
; there is no Python yet.
define internal i1 @fly_embed() noinline {{
  br label %lock
lock:
  %pair = cmpxchg ptr @fly_lock, i32 0, i32 1 acquire monotonic
  %locked = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %locked, label %check, label %wait
wait:
  call i32 @sched_yield()
  br label %lock
check:
  %already = call i1 @fly_has_python()
  br i1 %already, label %good, label %load
load:
  %path = call ptr @getenv(ptr @variable)
  %unset = icmp eq ptr %path, null
  br i1 %unset, label %none, label %open
open:
  %handle = call ptr @dlopen(ptr %path, i32 {GLOBAL_NOW})
  %closed = icmp eq ptr %handle, null
  br i1 %closed, label %unusable, label %initialise
initialise:
{_call("Py_InitializeEx", "void", "i32 0")}
{_call("PyEval_SaveThread", "ptr", result="thread")}
  br label %good
none:
  call i64 @write(i32 2, ptr @no_python, i64 LENGTH_OF_NO_PYTHON)
  br label %bad
unusable:
  call i64 @write(i32 2, ptr @not_loaded, i64 LENGTH_OF_NOT_LOADED)
  br label %bad
bad:
  store atomic i32 {FAILED}, ptr @fly_state release, align 4
  br label %good
good:
  %result = phi i1 [ true, %check ], [ true, %initialise ], [ false, %bad ]
  store atomic i32 0, ptr @fly_lock release, align 4
  ret i1 %result
}}

define internal void @fly_start() noinline {{
  %type = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  %has = call i1 @fly_has_python()
  br i1 %has, label %run, label %embed
embed:
  %embedded = call i1 @fly_embed()
  br i1 %embedded, label %run, label %done
run:
{_call("PyGILState_Ensure", "i32", result="held")}
  ; A caller may have an exception pending.
{_call("PyErr_Fetch", "void", "ptr %type, ptr %value, ptr %trace")}
{_call("PyDict_New", "ptr", result="globals")}
{_call("PyEval_GetBuiltins", "ptr", result="builtins")}
{_set("__builtins__", "%builtins")}
{_call("PyLong_FromVoidPtr", "ptr", "ptr @fly_table", "table")}
{_set("TABLE", "%table")}
{_call("PyLong_FromVoidPtr", "ptr", "ptr @fly_state", "state")}
{_set("STATE", "%state")}
{_call("PyLong_FromVoidPtr", "ptr", "ptr @fly_exports", "exports")}
{_set("EXPORTS", "%exports")}
{_call("PyRun_String", "ptr", f"ptr @code, i32 {FILE_INPUT}, ptr %globals, ptr %globals", "ran")}
  %wrong = icmp eq ptr %ran, null
  br i1 %wrong, label %print, label %end
print:
  store atomic i32 {FAILED}, ptr @fly_state release, align 4
{_call("PyErr_Print", "void")}
  br label %end
end:
  %old.type = load ptr, ptr %type
  %old.value = load ptr, ptr %value
  %old.trace = load ptr, ptr %trace
{_call("PyErr_Restore", "void", "ptr %old.type, ptr %old.value, ptr %old.trace")}
{_call("PyGILState_Release", "void", "i32 %held")}
  br label %done
done:
  ret void
}}
"""
