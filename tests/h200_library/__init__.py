"""Libraries of `fly-link --host shared` on a GPU, called by a C program, on a machine with neither
LLVM nor a compiler.

    PYTHONPATH=tests python -m h200_library FOLDER      compiles libraries and program, here
    FOLDER/program FOLDER/foreign/libsaxpy.so           on the machine with the GPU: "0 failed"
"""
