"""Caches results, and identifies what they depend on.

store           caches the results of stages
explanation     explains cache misses
identity        identifies code: sources, LLVM's programs, MLIR's bindings
file_digests    digests of files
built_library   shared libraries that are built on first use
"""
