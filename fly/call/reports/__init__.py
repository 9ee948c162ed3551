"""What users read of a compiled function: LLVM's remarks, lines of faults, assembly, tracebacks."""
