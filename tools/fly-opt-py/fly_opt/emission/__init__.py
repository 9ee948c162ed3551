"""MLIR in the LLVM dialect → LLVM IR text that LLVM 22 reads."""
