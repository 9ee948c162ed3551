"""The chain from MLIR to a code object as data, its stages, and what LLVM does differently."""
