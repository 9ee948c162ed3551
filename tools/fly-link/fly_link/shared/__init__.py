"""Libraries with a C interface: `fly-link --host shared`.

inputs     what fly-llc and fly-link make → images, one for each target, which agree
header     the C header
modules    LLVM IR: the function that C calls, tables, the code for each target
cpu        the kernels for the host's processor
building   all of it → a shared library
runtime/   what such a library needs beside the code of its program, in C
"""
