"""Kernels for a run on an H200: compiled here, launched there.

    python -m h200_kernels OUT/       in tests/: writes PTX, cubins, inputs and expected results
    python OUT/run.py                 on the machine with the GPU: launches and compares

assembler  ptxas
chain      the filters up to PTX
cases      the kernels' inputs and expected results
kernels    kernels that use what the examples do not
recording  the launches of a host program, as data
run        launches them: needs only NumPy and the driver
"""
