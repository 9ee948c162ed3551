"""The AMD backend of fly-llc: LLVM's AMDGPU code generation."""
