"""The LLVM IR of launchers: guards, values, steps."""
