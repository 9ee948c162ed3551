"""The NVIDIA backend of fly-llc: LLVM's NVPTX code generation."""
