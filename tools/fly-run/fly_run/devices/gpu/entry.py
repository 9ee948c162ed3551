"""What native code launches by: a C function with cuLaunchKernel's signature.

It is the driver's own function, but for threads whose current context is another one, or none.
There the driver refuses ("invalid context", "invalid handle"); then the stub makes the kernel's
context current, launches again, and restores what was current. In place of a kernel's handle it
gets the address of a record:

    kernel, launch function, function that tells the context, function that sets it, context
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fly_host.native import library
from fly_host.native.specialisation import DriverEntry, Options

from fly_run.devices.gpu.context import Context
from fly_run.devices.gpu.modules import GpuFunction

_TEXT = """
define i32 @launch(ptr %record, i32 %x, i32 %y, i32 %z, i32 %bx, i32 %by, i32 %bz, i32 %shared,
    ptr %stream, ptr %parameters, ptr %extra) nounwind {
  %before = alloca i64
  %kernel = load ptr, ptr %record
  %launch.at = getelementptr i8, ptr %record, i64 8
  %launch = load ptr, ptr %launch.at
  %status = call i32 %launch(ptr %kernel, i32 %x, i32 %y, i32 %z, i32 %bx, i32 %by, i32 %bz,
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
  %again.status = call i32 %launch(ptr %kernel, i32 %x, i32 %y, i32 %z, i32 %bx, i32 %by, i32 %bz,
    i32 %shared, ptr %stream, ptr %parameters, ptr %extra)
  %restored = call i32 %set(i64 %current)
  ret i32 %again.status
}
"""


class Launches:
    """The functions of an entry, kept loaded, and their records."""

    def __init__(self, context: Context, functions: Sequence[GpuFunction]):
        driver = context.driver
        self.context, self.functions = context, functions
        roles = [driver.address(role) for role in ("launch", "current", "switch")]
        record = ctypes.c_uint64 * 5
        self._records = [record(one.handle, *roles, context.handle) for one in functions]
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
