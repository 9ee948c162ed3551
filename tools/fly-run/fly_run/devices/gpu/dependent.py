"""Programmatic dependent launch: kernels that begin before the launch in front of them has ended.

They are those that wait for it by themselves (`griddepcontrol.wait`), which the image says. CUDA
launches them by cuLaunchKernelEx, with an attribute. On a driver without it, and in a library of
fly-link, they are launched as others are, and do not wait.

Source: cuda.h, "CUlaunchConfig", "CUlaunchAttribute"; the CUDA C++ Programming Guide, "Programmatic
Dependent Launch and Synchronization".
"""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_uint, c_void_p

from fly_image.image import KernelInterface, Triple

SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute. Its value is a union of 64 bytes."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_int), ("rest", c_int * 15))


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
    grid: Triple, block: Triple, shared: int, stream: int | None
) -> tuple[LaunchConfiguration, LaunchAttribute]:
    """A configuration, and its attribute, which it points to."""
    attribute = LaunchAttribute(id=SERIALIZATION, value=1)
    made = LaunchConfiguration(
        (c_uint * 3)(*grid), (c_uint * 3)(*block), shared, stream, ctypes.addressof(attribute), 1
    )
    return made, attribute
