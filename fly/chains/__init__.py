"""The chain of stages from MLIR to a code object, and its LLVM options."""
