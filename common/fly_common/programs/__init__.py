"""Programs that tools run: processes, and where LLVM's and NVIDIA's programs are."""
