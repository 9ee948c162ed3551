"""Translation of MLIR in the LLVM dialect to LLVM IR text that LLVM 22 reads."""
