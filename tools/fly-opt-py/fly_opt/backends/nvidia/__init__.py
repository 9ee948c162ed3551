"""The backend `cuda` of fly-opt-py: NVIDIA GPUs through LLVM's NVPTX backend."""
