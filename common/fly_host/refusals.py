"""What a call is told that does not fit a host program, where Python and a library without Python
say the same.

Python gives the values. The generator of libraries (`fly_host.native.c_interface`) gives
placeholders, which format as marks, and makes code of the text that fills them in. So a function
here only formats its arguments; it does not compute with them.
"""

from __future__ import annotations

from typing import Any

from fly_host.program import Parameter, Scalar, Stream, Triple


def describe(parameter: Parameter) -> str:
    """`f32[n,4], read only`."""
    if isinstance(parameter, Stream):
        return "a stream, the current one by default"
    if isinstance(parameter, Scalar):
        default = parameter.default
        if default is None:
            return parameter.dtype
        # As the f32 that it is: 1e-05, not its digits as a double.
        shown = f"{default:.7g}" if isinstance(default, float) else str(default).lower()
        return f"{parameter.dtype}, {shown} by default"
    shape = ",".join("?" if extent is None else str(extent) for extent in parameter.shape)
    access = {"r": "read", "w": "written", "rw": "read and written"}[parameter.access]
    aligned = f", aligned to {parameter.alignment} bytes" if parameter.alignment else ""
    return f"{parameter.dtype}[{shape}]{aligned}, {access}"


# -- tensors


def dtype(name: str, wanted: str, found: Any) -> str:
    return f"{name} must be {wanted}, but the array is {found}"


def rank(name: str, wanted: int, found: Any, shape: Any) -> str:
    return f"{name} must have {wanted} dimensions, but the array has {found}: shape {shape}"


def extent(name: str, dimension: int, wanted: int, shape: Any) -> str:
    return f"extent {dimension} of {name} must be {wanted}, but the array's shape is {shape}"


def stride(name: str, contiguous: bool, dimension: int, wanted: Any, found: Any) -> str:
    what = "must be contiguous in C order" if contiguous else "has fixed strides"
    wanted = f"stride {dimension} must be {wanted} elements"
    return f"{name} {what}: {wanted}, but the array's is {found}"


def multiple(name: str, what: str, dimension: int, divisor: int, found: Any) -> str:
    """`what` is "extent" or "stride"."""
    noun = " elements" if what == "stride" else ""
    return f"{name}: {what} {dimension} must be a multiple of {divisor}{noun}, but is {found}"


def overlap(name: str, described: str, shape: Any, strides: Any) -> str:
    return (
        f"{name} is {described}, but elements of the array overlap in memory:"
        f" shape {shape}, strides {strides}"
    )


def alignment(name: str, nbytes: int = 0) -> str:
    """`nbytes` is what the parameter asks for; 0 where the element type does."""
    if nbytes:
        return (
            f"{name} must begin at a multiple of {nbytes} bytes in memory, but the array does not"
        )
    return f"the elements of {name} are not aligned in memory"


def symbol(extent: str, first: str, before: Any, second: str, now: Any) -> str:
    return f"extent {extent} is {before} in {first}, but {now} in {second}"


def places(first: str, where: Any, second: str, elsewhere: Any) -> str:
    return f"{first} is {where}, but {second} is {elsewhere}"


# -- scalars
def scalar(name: str, value: Any, dtype: str) -> str:
    return f"{name}={value} does not fit in {dtype}"


# -- values
def value(shown: str, why: Any) -> str:
    """`shown` is the expression that has no value."""
    return f"the host program can't be evaluated: {shown}: {why}"


DIVISION = "division by zero"
WIDTH = "the value does not fit in 64 bits"


def shift(count: Any) -> str:
    return f"a shift by {count}"


def endless(entry: str) -> str:
    return f"a loop of {entry} does not end"


# -- tensors that the program makes
def made_shape(name: str, shape: Any, elements: Any) -> str:
    return f"{name} would have the shape {shape}, {elements} elements"


def made_strides(name: str, shape: Any, strides: Any, elements: Any) -> str:
    return f"{name}: shape {shape} with strides {strides} does not fit {elements} elements"


# -- launches; `block` and `grid` as people write them: 64, 8×8
def show(triple: Triple) -> str:
    """Formats (64, 1, 1) as "64", (8, 8, 1) as "8×8"."""
    count = 3 if triple[2] != 1 else 2 if triple[1] != 1 else 1
    return "×".join(str(n) for n in triple[:count])


def no_items(kernel: str, block: Any) -> str:
    return f"{kernel}: a block of {block} work items"


def many_items(kernel: str, block: Any, count: Any, most: int) -> str:
    return (
        f"{kernel}: a block of {block} is {count} work items, but the kernel was compiled for"
        f" at most {most}"
    )


def other_block(kernel: str, block: Any, required: str) -> str:
    return f"{kernel}: a block of {block}, but the kernel was compiled for {required}"


def part_clusters(kernel: str, grid: Any, cluster: str) -> str:
    return (
        f"{kernel}: a grid of {grid} workgroups is not made of whole clusters, which have {cluster}"
    )


def other_clusters(kernel: str, cluster: str, own: str) -> str:
    return f"{kernel}: clusters of {cluster} workgroups, but the kernel was compiled for {own}"


def no_cluster(kernel: str, cluster: str) -> str:
    return f"{kernel}: a cluster of {cluster} workgroups"


def large_cluster(kernel: str, cluster: str, target: str, most: int) -> str:
    return f"{kernel}: a cluster of {cluster} workgroups; {target} has at most {most}"


def negative_grid(kernel: str, grid: Any) -> str:
    return f"{kernel}: a grid of {grid} workgroups"


def wide_grid(kernel: str, count: Any, axis: str, target: str, most: int) -> str:
    return f"{kernel}: {count} workgroups in {axis}; {target} has {most}"


def many_workgroups(kernel: str, count: Any, items: Any, axis: str, most: int) -> str:
    return f"{kernel}: {count} workgroups of {items} in {axis} are more than {most} work items"


def shared(kernel: str, static: int, dynamic: Any, target: str, room: int) -> str:
    return f"{kernel}: {static} bytes of static and {dynamic} of dynamic LDS; {target} has {room}"


def narrow(value: Any, bits: int, kernel: str) -> str:
    return f"{value} does not fit in a {bits}-bit argument of {kernel}"
