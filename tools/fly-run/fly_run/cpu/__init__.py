"""The device `cpu`: code for NVIDIA's GPUs, compiled for the host from the LLVM IR that llc was
given (the section `.fly.llvm` of a cubin or PTX).

section      bitcode → text of the module
rewrite      the module for the host: runtime calls, checks of memory, polls in loops
text         lines of LLVM IR: operands, sizes of types
assembly     known texts of inline assembly
intrinsics   `llvm.nvvm.*` as functions in LLVM IR
generic      LLVM's intrinsics that every target has
body         the lines of a function
locations    source lines of debug metadata
printing     what kernels print
warp         those that lanes of a warp execute together
conversions  those of floats
runtime/     fibers, barriers, the grid, checks of memory, in LLVM IR
state        what the runtime and Python share
compile      text → shared library; its cache
loading      modules and functions of the device
execution    a launch: slices, host threads, faults
faults       what a fault says
device       the device
"""
