"""What native code launches by: a C function with cuLaunchKernel's signature.

It is the driver's own function, but for threads whose current context is another one, or none.
There the driver refuses ("invalid context", "invalid handle"); then the stub makes the kernel's
context current, launches again, and restores what was current. In place of a kernel's handle it
gets the address of a record:

    kernel, launch function, function that tells the context, function that sets it, context,
    function of dependent launches, or 0 for a kernel that has none (`dependent`)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fly_host.native import library
from fly_host.native.specialisation import DriverEntry, Options

from fly_run.devices.gpu.context import Context
from fly_run.devices.gpu.dependent import SERIALIZATION, is_dependent
from fly_run.devices.gpu.modules import GpuFunction

_TEXT = """
%configuration = type { i32, i32, i32, i32, i32, i32, i32, ptr, ptr, i32 }
define internal i32 @issue(ptr %record, i32 %x, i32 %y, i32 %z, i32 %bx, i32 %by, i32 %bz,
    i32 %shared, ptr %stream, ptr %parameters, ptr %extra) nounwind {
  %configuration = alloca %configuration
  %attribute = alloca [18 x i32], align 8
  %kernel = load ptr, ptr %record
  %dependent.at = getelementptr i8, ptr %record, i64 40
  %dependent = load ptr, ptr %dependent.at
  %usual = icmp eq ptr %dependent, null
  br i1 %usual, label %plain, label %early
plain:
  %launch.at = getelementptr i8, ptr %record, i64 8
  %launch = load ptr, ptr %launch.at
  %status = call i32 %launch(ptr %kernel, i32 %x, i32 %y, i32 %z, i32 %bx, i32 %by, i32 %bz,
    i32 %shared, ptr %stream, ptr %parameters, ptr %extra)
  ret i32 %status
early:
  store [18 x i32] zeroinitializer, ptr %attribute
  store i32 SERIALIZATION, ptr %attribute
  %value = getelementptr i8, ptr %attribute, i64 8
  store i32 1, ptr %value
  %c.1 = insertvalue %configuration zeroinitializer, i32 %x, 0
  %c.2 = insertvalue %configuration %c.1, i32 %y, 1
  %c.3 = insertvalue %configuration %c.2, i32 %z, 2
  %c.4 = insertvalue %configuration %c.3, i32 %bx, 3
  %c.5 = insertvalue %configuration %c.4, i32 %by, 4
  %c.6 = insertvalue %configuration %c.5, i32 %bz, 5
  %c.7 = insertvalue %configuration %c.6, i32 %shared, 6
  %c.8 = insertvalue %configuration %c.7, ptr %stream, 7
  %c.9 = insertvalue %configuration %c.8, ptr %attribute, 8
  %c.10 = insertvalue %configuration %c.9, i32 1, 9
  store %configuration %c.10, ptr %configuration
  %early.status = call i32 %dependent(ptr %configuration, ptr %kernel, ptr %parameters, ptr %extra)
  ret i32 %early.status
}
define i32 @launch(ptr %record, i32 %x, i32 %y, i32 %z, i32 %bx, i32 %by, i32 %bz, i32 %shared,
    ptr %stream, ptr %parameters, ptr %extra) nounwind {
  %before = alloca i64
  %status = call i32 @issue(ptr %record, i32 %x, i32 %y, i32 %z, i32 %bx, i32 %by, i32 %bz,
    i32 %shared, ptr %stream, ptr %parameters, ptr %extra)
  switch i32 %status, label %done [ i32 101, label %other
                                    i32 201, label %other
                                    i32 400, label %other ]
done:
  ret i32 %status
other:
  store i64 0, ptr %before
  %get.at = getelementptr i8, ptr %record, i64 16
  %get = load ptr, ptr %get.at
  %set.at = getelementptr i8, ptr %record, i64 24
  %set = load ptr, ptr %set.at
  %context.at = getelementptr i8, ptr %record, i64 32
  %context = load i64, ptr %context.at
  %told = call i32 %get(ptr %before)
  %known = icmp eq i32 %told, 0
  br i1 %known, label %compare, label %done
compare:
  %current = load i64, ptr %before
  %same = icmp eq i64 %current, %context
  br i1 %same, label %done, label %again
again:
  %set.status = call i32 %set(i64 %context)
  %again.status = call i32 @issue(ptr %record, i32 %x, i32 %y, i32 %z, i32 %bx, i32 %by, i32 %bz,
    i32 %shared, ptr %stream, ptr %parameters, ptr %extra)
  %restored = call i32 %set(i64 %current)
  ret i32 %again.status
}
""".replace("SERIALIZATION", str(SERIALIZATION))


class Launches:
    """The functions of an entry, kept loaded, and their records."""

    def __init__(self, context: Context, functions: Sequence[GpuFunction]):
        driver = context.driver
        self.context, self.functions = context, functions
        roles = [driver.address(role) for role in ("launch", "current", "switch")]
        early = driver.extended_launch()
        address = 0 if early is None else driver.address(early)
        record = ctypes.c_uint64 * 6
        self._records = [
            record(
                one.handle,
                *roles,
                context.handle,
                address if is_dependent(one.interface) else 0,
            )
            for one in functions
        ]
        self.kernels = [ctypes.addressof(one) for one in self._records]

    def error(self, launch: int, status: int) -> NoReturn:
        """Raises for a launch that the driver refused."""
        name = self.functions[launch].interface.name
        raise self.context.error("launch", status, kernel=name)


def entry_of(
    context: Context, functions: Sequence[GpuFunction], stream: Callable[[], int] | None
) -> DriverEntry:
    """The entry for these functions, one for each launch of a program."""
    for one in functions:
        one.allow_shared()
    made = Launches(context, functions)
    context.launches_natively(one.interface.name for one in functions)
    stub: Any = library.load(_TEXT, Options()).launch
    address = ctypes.cast(stub, ctypes.c_void_p).value
    assert address
    # A launch does not wait for the device unless its queue is full, so the GIL is kept.
    driver = context.driver
    return DriverEntry(
        address,
        made.kernels,
        made.error,
        stream=stream,
        end=driver.END,
        describing=driver.describing(),
    )
