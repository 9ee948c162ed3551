"""Whether two revisions of the compiler make the same HSACOs of the same kernels.

scripts/same-bytes REV            everything, on every target that both revisions have
scripts/same-bytes REV --list     what is compared

Modules may have been moved and renamed between the two, so that only surfaces are used that last:
the five commands by the entry points that each revision's pyproject.toml names, pytest, and LLVM's
linker, through which every HSACO goes.
"""
