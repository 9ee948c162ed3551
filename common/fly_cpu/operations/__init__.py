"""Operations of NVIDIA's GPUs as functions in LLVM IR for the host."""
