"""From an instruction to what it does, and the machine that executes kernels."""
