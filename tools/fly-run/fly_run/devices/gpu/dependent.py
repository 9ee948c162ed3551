"""Launches by cuLaunchKernelEx: dependent ones, and ones whose caller says how large clusters are.

By programmatic dependent launch a kernel begins before the launch in front of it has ended. Such
kernels are those that wait for it by themselves (`griddepcontrol.wait`), which the image says. On a
driver without cuLaunchKernelEx, and in a library of fly-link, they are launched as others are, and
do not wait.

Source: cuda.h, "CUlaunchConfig", "CUlaunchAttribute"; the CUDA C++ Programming Guide, "Programmatic
Dependent Launch and Synchronization", "Thread Block Clusters".
"""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_uint, c_void_p

from fly_image.image import KernelInterface, Triple

CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute. Its value is a union of 64 bytes."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_int * 16))


class LaunchConfiguration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("count", c_uint),
    )


def is_dependent(interface: KernelInterface) -> bool:
    """Whether launches of a kernel are; kernels of other vendors' images are not."""
    return bool(getattr(interface, "dependent", False))


def configuration(
    grid: Triple,
    block: Triple,
    shared: int,
    stream: int | None,
    dependent: bool,
    cluster: Triple | None,
) -> tuple[LaunchConfiguration, ctypes.Array[LaunchAttribute]]:
    """A configuration, and its attributes, which it points to."""
    asked = [(SERIALIZATION, (1,))] if dependent else []
    asked += [(CLUSTER, cluster)] if cluster else []
    attributes = (LaunchAttribute * len(asked))(
        *(LaunchAttribute(id=kind, value=(c_int * 16)(*values)) for kind, values in asked)
    )
    sizes = (c_uint * 3)(*grid), (c_uint * 3)(*block)
    start = ctypes.addressof(attributes)
    return LaunchConfiguration(*sizes, shared, stream, start, len(asked)), attributes
