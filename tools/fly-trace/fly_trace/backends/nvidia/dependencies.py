"""Programmatic dependent launch of sm_90: a kernel begins while the one before it still runs."""

from __future__ import annotations

from fly_trace.backends.nvidia.intrinsics import intrinsic, require

__all__ = ["griddepcontrol_launch_dependents", "griddepcontrol_wait"]


def griddepcontrol_wait() -> None:
    """Waits until the launches before this one have ended, and their writes to memory are visible.

    A kernel that calls it is launched by programmatic dependent launch: it may begin before the
    launch in front of it on its stream has ended, as soon as all blocks of that one have called
    `griddepcontrol_launch_dependents` or ended. Whatever earlier launches write, or still read
    where this kernel writes, it may access only behind this call, which every thread that does so
    makes."""
    what = "fx.nvvm.griddepcontrol_wait"
    require(what, "sm_90+")
    intrinsic(what, "griddepcontrol.wait", [])


def griddepcontrol_launch_dependents() -> None:
    """Lets the launch behind this one begin, if its kernel calls `griddepcontrol_wait`: once every
    block has made this call, by any of its threads, or ended. It promises nothing about memory;
    `griddepcontrol_wait` there still waits for the end of this grid."""
    what = "fx.nvvm.griddepcontrol_launch_dependents"
    require(what, "sm_90+")
    intrinsic(what, "griddepcontrol.launch.dependents", [])
