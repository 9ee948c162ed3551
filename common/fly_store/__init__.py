"""What keeps results, and what identifies them.

store           a stage's results, found again by what made them
explanation     why a stage had to run
identity        what identifies code: sources, LLVM's programs, MLIR's bindings
file_digests    what identifies a file
built_library   shared libraries that are built when they are first wanted
"""
