"""Checks that two revisions of the compiler produce the same HSACOs from the same kernels.

scripts/same-bytes REV            everything, on every target that both revisions have
scripts/same-bytes REV --list     what is compared

Modules may have been moved and renamed between the two, so only stable interfaces are used: the
five commands by the entry points in each revision's pyproject.toml, pytest, and LLVM's linker,
through which every HSACO goes.
"""
